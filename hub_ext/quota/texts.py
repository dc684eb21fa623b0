"""The sentences about limits and refusals, each written once.

They are plain text: whoever puts one into HTML escapes it. A sentence says what is the matter, in numbers
where there are any, and what to do.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .verdicts import Reason, Scope, Shortage
from .words import amount, figure, named

__all__ = ["amount", "gave_up", "instead", "over_limit", "refused", "room", "takers"]


def _of(shortage: Shortage) -> str:
    """Say ``3 of 4 GPUs``."""
    return f"{figure(shortage.resource, shortage.used)} of {amount(shortage.resource, shortage.limit)}"


_HOLDER: Final = {
    Scope.USER: "You have",
    Scope.TEAM: "Your team has",
    Scope.CLUSTER: "All users together have",
    Scope.NAMESPACE: "The namespace has",
}
_BOUND: Final = {
    Scope.USER: "you may have",
    Scope.TEAM: "your team may have",
    Scope.CLUSTER: "all users together may have",
    Scope.NAMESPACE: "the namespace may have",
}
_ADVICE: Final = {
    Scope.USER: "Stop one of your workspaces or pick a smaller one.",
    Scope.TEAM: "Wait until somebody in your team stops a workspace, or pick a smaller one.",
    Scope.CLUSTER: "Wait until a workspace is stopped, or pick a smaller one.",
    Scope.NAMESPACE: "Wait until something is stopped, or pick a smaller workspace.",
}


def over_limit(scope: Scope, shortages: Sequence[Shortage], fits: Sequence[str] = ()) -> str:
    """Say that a limit leaves too little; `shortages` is not empty and the worst of them is named."""
    worst = next((s for s in shortages if s.never_fits), shortages[0])
    asked = amount(worst.resource, worst.asked)
    if worst.never_fits:
        allowed = amount(worst.resource, worst.limit) if worst.limit else f"no {named(worst.resource)}"
        text = f"This workspace needs {asked}, but {_BOUND[scope]} {allowed} at the same time."
        advice = "Pick a smaller one, or ask an administrator."
    else:
        text = f"{_HOLDER[scope]} {_of(worst)} in use, and this workspace needs {asked}."
        advice = _ADVICE[scope]
    return f"{text} {instead(fits) or advice}"


def instead(fits: Sequence[str]) -> str:
    """Name what would fit; empty for nothing."""
    if not fits:
        return ""
    shown = ", ".join(fits[:3])
    return f"What would fit now: {shown}{', …' if len(fits) > 3 else ''}."


def takers(resource: str, containers: Sequence[str]) -> str:
    """Say that several containers of one workspace each ask for a resource."""
    return f"{len(containers)} of its containers ask for {named(resource)}: {', '.join(containers)}."


def room(scope: Scope, more: int | None) -> str:
    """Say how many more of a workspace fit; empty where nothing is bounded."""
    if more is None:
        return ""
    whom = {Scope.USER: "for you", Scope.TEAM: "for your team"}.get(scope, "in all")
    return f"{more} more {whom}" if more else f"none left {whom}"


_ASK: Final = "Please tell an administrator."
_SELF: Final = "It is tried again by itself."


def _rule(what: str) -> str:
    why = f": {what.rstrip('.')}" if what else ""
    return f"A rule of the cluster refuses this workspace{why}. {_ASK}"


_FIXED: Final[dict[Reason, Callable[[str], str]]] = {
    Reason.LIMITS_REQUIRED: lambda what: (
        f"This workspace states {what or 'not all its limits'}, which the cluster requires. {_ASK}"
    ),
    Reason.QUOTA_NOT_READY: lambda what: (
        f"The cluster has not yet counted what is in use under the quota {what}. {_SELF}"
    ),
    Reason.QUOTA_CONFLICT: lambda _: f"Many workspaces start at this moment. {_SELF}",
    Reason.QUOTA_TIMEOUT: lambda _: f"The cluster took too long to check its quota. {_SELF}",
    Reason.QUOTA_ABSENT: lambda what: (
        f"No quota of the namespace covers {what}, so the cluster gives none. {_ASK}"
    ),
    Reason.LIMIT_RANGE: lambda what: (
        f"This workspace is outside the sizes that the namespace permits: {what}. {_ASK}"
    ),
    Reason.POD_SECURITY: lambda what: (
        f"The cluster's security level{f' {what}' if what else ''} does not permit this workspace. {_ASK}"
    ),
    Reason.WEBHOOK_UNREACHABLE: lambda what: (
        f"A part of the cluster that must approve each start ({what}) does not answer. {_SELF}"
    ),
    Reason.WEBHOOK_DENIED: _rule,
    Reason.POLICY_DENIED: _rule,
    Reason.NAMESPACE_ENDING: lambda _: f"The namespace of this workspace is being deleted. {_ASK}",
    Reason.MISSING_OBJECT: lambda what: f"Something that this workspace needs does not exist: {what}. {_ASK}",
    Reason.NOT_PERMITTED: lambda _: f"The hub may not create this workspace in its namespace. {_ASK}",
    Reason.INVALID_POD: lambda _: f"The cluster does not accept the way this workspace is described. {_ASK}",
    Reason.NAME_TAKEN: lambda _: f"The last run of this workspace has not quite ended. {_SELF}",
    Reason.API_BUSY: lambda _: f"The cluster has too much to do at the moment. {_SELF}",
    Reason.API_UNAVAILABLE: lambda _: f"The cluster does not answer at the moment. {_SELF}",
    Reason.API_ERROR: lambda _: f"The cluster could not create this workspace. {_ASK}",
}


def refused(reason: Reason, what: str = "") -> str:
    """Say why the API server created nothing; `what` names the quota, rule or object."""
    return _FIXED[reason](what)


def gave_up(text: str) -> str:
    """Turn the text of something that was retried into the one that ends the start."""
    return f"{text.removesuffix(_SELF).rstrip()} It did not get better in time; please try again later."
