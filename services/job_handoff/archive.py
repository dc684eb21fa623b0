"""Looking into an archive that somebody sent: what is in it, and whether it keeps the rules.

Shell: reads files.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final

from .snapshot import (
    Limits,
    Member,
    MemberKind,
    check_member,
    check_packed,
    check_total,
    credential,
    find_credential,
    search,
)
from .verdicts import RefusalReason, RunRefusedError

_LARGEST_NOTEBOOK: Final = 32 * 1024 * 1024
_LARGEST_HEAD: Final = 1024 * 1024
"""Bytes of an archive between two files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in an archive that keeps the rules."""

    files: tuple[str, ...]
    size: int
    """Bytes, unpacked."""
    kernels: Mapping[str, str | None] = field(default_factory=dict)
    """Kernel that each notebook names; None where it names none."""


def inspect(file: IO[bytes], limits: Limits | None = None) -> Contents:
    """Look into an archive that somebody sent, member by member; nothing is unpacked onto a disk.

    Raises
    ------
    RunRefusedError
        Not an archive, or one that breaks the rules.
    """
    bounds = limits or Limits()
    files: list[str] = []
    kernels: dict[str, str | None] = {}
    members, size = 0, 0
    try:
        packed = _Packed(file, bounds)
        unpacked = _Unpacked(gzip.GzipFile(fileobj=packed, mode="rb"))
        with tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for info in archive:
                members, size = members + 1, size + info.size
                check_total(members, size, bounds)
                unpacked.allow(info.size)
                member = _read_member(info)
                if member.path == ".":
                    continue
                check_member(member)
                if member.kind is not MemberKind.FILE:
                    continue
                files.append(member.path)
                _look_into(archive, info, member.path, kernels)
    except (tarfile.TarError, EOFError, OSError, zlib.error, UnicodeError) as error:
        raise RunRefusedError(
            RefusalReason.SOURCE_UNSAFE, f"The upload is not an archive (tar.gz): {error}.", field="source"
        ) from error
    return Contents(files=tuple(files), size=size, kernels=kernels)


class _Packed(io.RawIOBase):
    """Reads no more of an archive than is allowed, whatever it says about itself."""

    def __init__(self, file: IO[bytes], limits: Limits) -> None:
        self._file = file
        self._limits = limits
        self._read = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self._read += len(chunk)
        check_packed(self._read, self._limits)
        return chunk


class _Unpacked(io.RawIOBase):
    """Unpacks no more than the files that were let through, and a little for what is said about the next.

    The names and notes of a member have no bound of their own, and are read into memory: a few bytes of an
    archive could ask for all of it.
    """

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._left = _LARGEST_HEAD

    def allow(self, size: int) -> None:
        """Let one file through, with what is said about the one after it."""
        self._left = size + _LARGEST_HEAD

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise RunRefusedError(
                RefusalReason.SOURCE_UNSAFE, "The archive says too much about one file.", field="source"
            )
        return chunk


def _read_member(info: tarfile.TarInfo) -> Member:
    path = info.name.rstrip("/").removeprefix("./")  # as `tar -czf … .` writes it
    if info.isreg():
        return Member(path=path, kind=MemberKind.FILE, size=info.size)
    if info.isdir():
        return Member(path=path, kind=MemberKind.FOLDER)
    if info.issym():
        return Member(path=path, kind=MemberKind.LINK, target=info.linkname)
    return Member(path=path, kind=MemberKind.OTHER)


def _look_into(
    archive: tarfile.TarFile, info: tarfile.TarInfo, path: str, kernels: dict[str, str | None]
) -> None:
    content = archive.extractfile(info)
    if content is None:
        return
    if path.endswith(".ipynb") and info.size <= _LARGEST_NOTEBOOK:
        whole = content.read(info.size)
        what = find_credential(whole)
        kernels[path] = kernel_of(whole)
    else:
        what = search(content)
    if what:
        raise credential(path, what)


def kernel_of(notebook: bytes) -> str | None:
    """Give the kernel that a notebook names; None where it names none or is no notebook."""
    try:
        found: Any = json.loads(notebook)
        name = found["metadata"]["kernelspec"]["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) else None
