"""What a fault proxy does to the requests of an image pull, and which requests it does it to.

Pure: no clock, no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from http import HTTPStatus
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Kind(StrEnum):
    """What a pull asks a registry for; anything else is never disturbed."""

    MANIFESTS = "manifests"
    BLOBS = "blobs"


class Fault(BaseModel):
    """One fault: for every matching request while it is set, or for the first `times` of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    repository: str | None = None
    """Only pulls of this repository; all of them if absent."""
    status: int | None = Field(default=None, ge=400, le=599)
    """Refuse with this HTTP status."""
    message: str = "fault injected by the development cluster"
    bytes_per_second: int | None = Field(default=None, gt=0)
    """Send the body no faster than this."""
    cut_after_bytes: int | None = Field(default=None, ge=0)
    """Drop the connection after so many bytes of the body."""
    hang: bool = False
    """Answer nothing until the fault is lifted, then go on as if nothing had been."""
    times: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        body = self.bytes_per_second is not None or self.cut_after_bytes is not None
        if [self.status is not None, self.hang, body].count(True) != 1:
            raise ValueError("a fault is one of: status, hang, or bytes_per_second and/or cut_after_bytes")
        return self

    def matches(self, path: str) -> bool:
        """Whether a request for this path (`/v2/<repository>/<kind>/<reference>`) is meant."""
        target = parse_path(path)
        return target is not None and target[1] is self.kind and self.repository in (None, target[0])


ERROR_CODES = {401: "UNAUTHORIZED", 403: "DENIED", 404: "MANIFEST_UNKNOWN", 429: "TOOMANYREQUESTS"}
"""The registry API's code for a status; OCI distribution specification 1.1, "Error Codes"."""


def parse_path(path: str) -> tuple[str, Kind] | None:
    """Read repository and kind off a registry path; `None` for any other path."""
    parts = path.partition("?")[0].split("/")
    if len(parts) < 5 or parts[:2] != ["", "v2"] or parts[-2] not in list(Kind):
        return None
    return "/".join(parts[2:-2]), Kind(parts[-2])


def refusal(fault: Fault, *, head: bool) -> bytes:
    """Build the whole HTTP response of a fault with a status."""
    assert fault.status is not None
    error = {"code": ERROR_CODES.get(fault.status, "UNKNOWN"), "message": fault.message}
    body = json.dumps({"errors": [error]}).encode()
    # Kubelets show the phrase to people.
    phrase = HTTPStatus(fault.status).phrase if fault.status in set(HTTPStatus) else "Injected Fault"
    lines = [
        f"HTTP/1.1 {fault.status} {phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if fault.status == 429:
        lines.append("Retry-After: 1")
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if head else body)


class FaultBook:
    """The faults that are set, with what is left of each."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self._faults = list(faults)
        self._seen = [0] * len(self._faults)

    def take(self, path: str) -> Fault | None:
        """Find the first fault for a request and count the request against it."""
        for index, fault in enumerate(self._faults):
            if fault.matches(path) and (fault.times is None or self._seen[index] < fault.times):
                self._seen[index] += 1
                return fault
        return None

    def holds(self, fault: Fault) -> bool:
        """Whether a fault that a request met is still set."""
        return any(known is fault for known in self._faults)

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(self._faults)
