"""What the API server would say to a pod of each profile.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from hub_ext.errors import Severity
from hub_ext.quota.refusals import explain
from hub_ext.quota.verdicts import Reason, Refusal

from ..problems import Check, Problem
from ..scene import Scene

_MOST_NAMED: Final = 5
_REMEDIES: Final = {
    Reason.POD_SECURITY: "See the checks pod-security, cloud-metadata and privilege-escalation.",
    Reason.LIMITS_REQUIRED: "Add a LimitRange: gpu-workspaces render --target limitrange prints one.",
    Reason.QUOTA_ABSENT: "The API server wants a quota for GPUs (limitedResources): "
    "gpu-workspaces render --target resourcequota prints one.",
    Reason.QUOTA_NOT_READY: "Wait for the quota controller, or see the controller manager.",
    Reason.MISSING_OBJECT: "Make what is missing; `gpu-workspaces manifests` prints what this bundle needs.",
    Reason.WEBHOOK_UNREACHABLE: "Bring the webhook's pods up, or leave the namespace out by its selector.",
}
_PASSING: Final = frozenset(
    {
        Reason.API_BUSY,
        Reason.API_ERROR,
        Reason.API_UNAVAILABLE,
        Reason.QUOTA_CONFLICT,
        Reason.QUOTA_NOT_READY,
        Reason.QUOTA_TIMEOUT,
    }
)
"""What may be over when it is asked again."""
_OTHERWISE: Final = "Change the profile, the values, or the rule that refuses it."


def refused(scene: Scene) -> Iterator[Problem]:
    """One pod of each profile in each namespace that it is started in; a dry run makes nothing."""
    alike: dict[tuple[Reason, str, str], list[str]] = defaultdict(list)
    refusals: dict[tuple[Reason, str, str], Refusal] = {}
    for trial in scene.trials or ():
        if trial.refusal is not None:
            refusal = explain(trial.refusal)
            key = (refusal.reason, trial.namespace, refusal.component)
            alike[key].append(trial.profile)
            refusals.setdefault(key, refusal)
    for key, profiles in alike.items():
        yield _problem(refusals[key], profiles, namespace=key[1])


def _problem(refusal: Refusal, profiles: list[str], *, namespace: str) -> Problem:
    more = f" and {len(profiles) - _MOST_NAMED} more" if len(profiles) > _MOST_NAMED else ""
    named = ", ".join(profiles[:_MOST_NAMED]) + more
    if refusal.reason is Reason.NAMESPACE_QUOTA:
        never = any(one.never_fits for one in refusal.shortages)
        message = "fits no quota of" if never else "does not fit what is left at this moment of the quota of"
        return Problem(
            message=f"{named}: it {message} namespace {namespace}",
            evidence=refusal.detail,
            help="Raise the quota, or take the profile from these teams."
            if never
            else "Nothing is wrong if others are at work.",
            path=f"resourcequotas/{namespace}",
            severity=Severity.ERROR if never else Severity.NOTE,
        )
    return Problem(
        message=f"{named}: the API server refuses such a pod in {namespace} ({refusal.reason})",
        evidence=refusal.detail,
        help=_REMEDIES.get(refusal.reason, _OTHERWISE),
        path=f"namespaces/{namespace}",
        severity=Severity.WARNING if refusal.reason in _PASSING else Severity.ERROR,
    )


CHECKS = (
    Check(
        code="dry-run",
        title="The API server takes a pod of every profile",
        needs=("trials",),
        run=refused,
    ),
)
