"""Why something is refused: one error, with a reason that is the same in the log, the metric and the JSON.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from hub_ext.errors import WorkspaceError


class RefusalReason(StrEnum):
    """Why a run was refused; `SelectionReason` and `quota.Reason` are used beside it."""

    BAD_REQUEST = "bad-request"
    NOT_RUNNABLE = "not-runnable"
    """The profile is a workspace only."""
    GROUP_REQUIRED = "group-required"
    NO_TEAM = "no-team"
    OTHER_TEAM = "other-team"
    KIND_NOT_OFFERED = "kind-not-offered"
    KIND_UNAVAILABLE = "kind-unavailable"
    """The cluster lacks the controller, or has one that does not fit."""
    TOO_MANY_NODES = "too-many-nodes"
    TOO_LONG = "too-long"
    PRIORITY_NOT_ALLOWED = "priority-not-allowed"
    ENVIRONMENT_NOT_ALLOWED = "environment-not-allowed"
    CREDENTIAL_IN_ENVIRONMENT = "credential-in-environment"
    CREDENTIAL_IN_SOURCE = "credential-in-source"
    SOURCE_MISSING = "source-missing"
    SOURCE_TOO_LARGE = "source-too-large"
    SOURCE_UNSAFE = "source-unsafe"
    ENTRY_MISSING = "entry-missing"
    GIT_NOT_ALLOWED = "git-not-allowed"
    HOME_NOT_MOUNTABLE = "home-not-mountable"
    IMAGE_NOT_PINNED = "image-not-pinned"
    NO_SERVER = "no-server"
    KERNEL_MISSING = "kernel-missing"
    QUEUE_MISSING = "queue-missing"
    QUEUE_STOPPED = "queue-stopped"
    QUEUE_UNCOVERED = "queue-uncovered"
    QUEUE_TOO_SMALL = "queue-too-small"
    TOO_MANY_RUNS = "too-many-runs"
    TOO_MUCH_KEPT = "too-much-kept"
    SCHEDULE_KIND = "schedule-kind"
    BAD_SCHEDULE = "bad-schedule"
    KEY_REUSED = "key-reused"
    UNKNOWN_RUN = "unknown-run"
    NOT_ENDED = "not-ended"
    STORE_UNAVAILABLE = "store-unavailable"
    STORE_FULL = "store-full"
    CLUSTER_UNAVAILABLE = "cluster-unavailable"
    HUB_UNAVAILABLE = "hub-unavailable"


_STATUS = {
    RefusalReason.GROUP_REQUIRED: HTTPStatus.FORBIDDEN,
    RefusalReason.NO_TEAM: HTTPStatus.FORBIDDEN,
    RefusalReason.PRIORITY_NOT_ALLOWED: HTTPStatus.FORBIDDEN,
    RefusalReason.SOURCE_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RefusalReason.TOO_MUCH_KEPT: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RefusalReason.TOO_MANY_RUNS: HTTPStatus.TOO_MANY_REQUESTS,
    RefusalReason.KEY_REUSED: HTTPStatus.CONFLICT,
    RefusalReason.OTHER_TEAM: HTTPStatus.CONFLICT,
    RefusalReason.NOT_ENDED: HTTPStatus.CONFLICT,
    RefusalReason.UNKNOWN_RUN: HTTPStatus.NOT_FOUND,
    RefusalReason.STORE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    RefusalReason.STORE_FULL: HTTPStatus.INSUFFICIENT_STORAGE,
    RefusalReason.CLUSTER_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    RefusalReason.HUB_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


class RunRefusedError(WorkspaceError):
    """Something that was asked for is not done. `message` is plain text for the user: escape it in HTML."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        field: str = "",
        allowed: Iterable[str] = (),
        help: str = "",  # noqa: A002
        status: int | None = None,
    ) -> None:
        self.reason = str(reason)
        self.message = message
        self.field = field
        """Place in the request, as JSON paths are written; empty for the whole."""
        self.allowed = tuple(allowed)
        """What may stand there instead."""
        self.help = help
        self.status = int(status if status is not None else _status_of(self.reason))
        super().__init__(message)

    @property
    def text(self) -> str:
        """Message and remedy as one text."""
        return f"{self.message} {self.help}".strip()

    def as_dict(self) -> dict[str, Any]:
        """Give the body of the answer."""
        return {
            "reason": self.reason,
            "message": self.message,
            "help": self.help,
            "field": self.field,
            "allowed": list(self.allowed),
            "retry": self.status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS},
        }


def _status_of(reason: str) -> HTTPStatus:
    known = set(RefusalReason)
    return (
        _STATUS.get(RefusalReason(reason), HTTPStatus.BAD_REQUEST)
        if reason in known
        else HTTPStatus.BAD_REQUEST
    )
