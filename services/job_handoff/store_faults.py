"""What an error of the object store means: it is full, it lets nobody in, or neither.

A message carries paths, addresses and durations beside what went wrong, and people name their files as they
like. So only the places where a store or an operating system says it are read: the status of an answer, the
code of an S3 error, the number of an error of the operating system.

Sources: `object_store` of Rust (``status code: 507 Insufficient Storage``, ``(os error 28)``); the error
codes of S3, MinIO (``XMinioStorageFull``) and Ceph (``QuotaExceeded``, sent with 403).

Pure: no clock, no network.
"""

from __future__ import annotations

import errno
import re
from http import HTTPStatus
from typing import Final, Literal

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

Fault = Literal["full", "denied"]

_STATUS: Final = re.compile(r"Server returned (?:non-2xx|error) status(?: code)?:? (?P<status>[0-9]{3})\b")
_CODE: Final = re.compile(r"<Error>\s*<Code>(?P<code>[A-Za-z]+)</Code>")
_SYSTEM: Final = re.compile(r"\(os error (?P<number>[0-9]+)\)")
_FULL_CODE: Final = re.compile(r"QuotaExceeded|StorageFull|InsufficientStorage", re.I)
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, HTTPStatus.INSUFFICIENT_STORAGE})
_DENIED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
)


def fault_of(error: Exception, path: str) -> Fault | None:
    """Judge what came of asking for `path`; None if the store is neither full nor closed to this service."""
    text = re.sub(rf"(?<!\w){re.escape(path)}(?!\w)", "", str(error))
    code = _CODE.search(text)
    numbers = _numbers(error, text)
    if (code is not None and _FULL_CODE.search(code["code"])) or numbers & _FULL:
        return "full"
    closed = isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError)
    if closed or (code is not None and code["code"] == "AccessDenied") or numbers & _DENIED:
        return "denied"
    return None


def _numbers(error: Exception, text: str) -> frozenset[int]:
    """Give the answer's status and the operating system's error numbers; no number is both."""
    status = [int(match["status"]) for match in _STATUS.finditer(text)]
    system = [int(match["number"]) for match in _SYSTEM.finditer(text)]
    own = [error.errno] if isinstance(error, OSError) and error.errno is not None else []
    return frozenset({*status, *system, *own})
