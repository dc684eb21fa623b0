"""The one shape of a "no": why, with which numbers, whose matter it is, and what would help.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .arithmetic import Amount


class Scope(StrEnum):
    """Whose use is bounded."""

    USER = "user"
    """One member, as far as they work for one team."""
    TEAM = "team"
    CLUSTER = "cluster"
    """Everything that this hub starts."""
    NAMESPACE = "namespace"
    """A ResourceQuota of Kubernetes."""


class Reason(StrEnum):
    """Why something may not start; the same word is in the log, the metric and the JSON."""

    USER_LIMIT = "user-limit"
    TEAM_LIMIT = "team-limit"
    CLUSTER_LIMIT = "cluster-limit"
    NAMESPACE_QUOTA = "namespace-quota"
    LIMITS_REQUIRED = "limits-required"
    QUOTA_NOT_READY = "quota-not-ready"
    QUOTA_CONFLICT = "quota-conflict"
    QUOTA_TIMEOUT = "quota-timeout"
    QUOTA_ABSENT = "quota-absent"
    LIMIT_RANGE = "limit-range"
    POD_SECURITY = "pod-security"
    WEBHOOK_UNREACHABLE = "webhook-unreachable"
    WEBHOOK_DENIED = "webhook-denied"
    POLICY_DENIED = "policy-denied"
    NAMESPACE_ENDING = "namespace-ending"
    MISSING_OBJECT = "missing-object"
    NOT_PERMITTED = "not-permitted"
    INVALID_POD = "invalid-pod"
    NAME_TAKEN = "name-taken"
    API_BUSY = "api-busy"
    API_UNAVAILABLE = "api-unavailable"
    API_ERROR = "api-error"


class Fault(StrEnum):
    """Who can do something about it."""

    USER = "user"
    ADMIN = "admin"
    CLUSTER = "cluster"
    """A part of the cluster is down or busy; it usually comes back by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """One resource of which there is not enough, in the units of `arithmetic`."""

    resource: str
    asked: Amount
    used: Amount
    limit: Amount

    @property
    def left(self) -> Amount:
        return max(0, self.limit - self.used)

    @property
    def never_fits(self) -> bool:
        """Whether it would not fit even if nothing else ran."""
        return self.asked > self.limit

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON; fractions become numbers."""
        numbers = {"asked": self.asked, "used": self.used, "limit": self.limit, "left": self.left}
        return {"resource": self.resource, **{name: plain(amount) for name, amount in numbers.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a workspace may not start. `text` is plain text for the user: escape it in HTML."""

    reason: Reason
    text: str
    fault: Fault
    retry: bool = False
    """Whether the same request may succeed a moment later without anybody doing anything."""
    shortages: tuple[Shortage, ...] = ()
    component: str = ""
    """What said no: a quota, a webhook, a policy, a missing object."""
    detail: str = ""
    """For admins and the log: what the API server said, without the manifest."""
    fits: tuple[str, ...] = ()
    """Workspaces that would fit now, by the names that users read."""

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON; fractions become numbers."""
        return {
            "reason": self.reason.value,
            "text": self.text,
            "fault": self.fault.value,
            "retry": self.retry,
            "component": self.component,
            "detail": self.detail,
            "fits": list(self.fits),
            "shortages": [shortage.as_dict() for shortage in self.shortages],
        }


def plain(amount: Amount) -> int | float:
    """Give an amount as JSON writes it."""
    return amount if isinstance(amount, int) else round(float(amount), 6)
