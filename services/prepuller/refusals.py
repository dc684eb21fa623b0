"""Why the API server does not take a pod, and whether that is so for one image or for all.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final

from hub_ext.errors import KubeError
from hub_ext.quota import refusals
from hub_ext.quota.refusals import Answer
from hub_ext.quota.verdicts import Reason as Said

from .reasons import Reason

_QUOTA: Final = frozenset(
    {Said.NAMESPACE_QUOTA, Said.QUOTA_NOT_READY, Said.QUOTA_CONFLICT, Said.QUOTA_TIMEOUT}
)
_ALL: Final = frozenset(
    {
        Said.NOT_PERMITTED,
        Said.NAMESPACE_ENDING,
        Said.MISSING_OBJECT,
        Said.POD_SECURITY,
        Said.LIMIT_RANGE,
        Said.LIMITS_REQUIRED,
        Said.QUOTA_ABSENT,
        Said.WEBHOOK_UNREACHABLE,
    }
)
"""What does not depend on the image: all pods of the prepuller are alike otherwise."""
_BY_IMAGE: Final = frozenset({Said.WEBHOOK_DENIED, Said.POLICY_DENIED, Said.INVALID_POD})
"""What may depend on it, such as a policy about registries."""
_RUNTIME_CLASS: Final = "RuntimeClass "
"""How the name of one begins among objects that are missing: pools have classes of their own."""


def reason_of(error: KubeError) -> Reason | None:
    """Say how a refusal is called; None where the API server has not judged the pod, as when it is busy."""
    answer = Answer(code=error.status or 0, reason=error.reason, message=error.what, kind=error.kind)
    said = refusals.explain(answer)
    if said.reason in _QUOTA:
        return Reason.QUOTA_FULL
    of_pool = said.reason is Said.MISSING_OBJECT and said.component.startswith(_RUNTIME_CLASS)
    if said.reason in _BY_IMAGE or of_pool:
        return Reason.POD_REFUSED
    return Reason.PULLS_REFUSED if said.reason in _ALL else None
