"""What an API server says when it takes no pod, and whether that is so for one image or for all."""

from __future__ import annotations

import pytest

from services.kube import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotFoundError,
    UnavailableError,
)
from services.prepuller.reasons import BLAMES, Blame, Reason
from services.prepuller.refusals import reason_of

NAMED = 'pods "pull-n0-base" is forbidden: '
REFUSALS: list[tuple[type[KubeError], int, str, Reason]] = [
    (
        ForbiddenError,
        403,
        NAMED + "exceeded quota: few, requested: pods=1, used: pods=5, limited: pods=5",
        Reason.QUOTA_FULL,
    ),
    (
        ForbiddenError,
        403,
        NAMED + "failed quota: few: must specify limits.cpu for: image,tool",
        Reason.PULLS_REFUSED,
    ),
    (ForbiddenError, 403, NAMED + "status unknown for quota: few, resources: pods", Reason.QUOTA_FULL),
    (
        ForbiddenError,
        403,
        NAMED + "minimum memory usage per Container is 1Gi, but request is 8Mi",
        Reason.PULLS_REFUSED,
    ),
    (
        ForbiddenError,
        403,
        NAMED + 'violates PodSecurity "restricted:latest": runAsNonRoot != true (…)',
        Reason.PULLS_REFUSED,
    ),
    (
        ForbiddenError,
        403,
        (
            'pods is forbidden: User "system:serviceaccount:hub:prepuller" cannot create resource "pods" '
            'in API group "" in the namespace "gpu-workspaces-prepuller"'
        ),
        Reason.PULLS_REFUSED,
    ),
    (
        ForbiddenError,
        403,
        NAMED + 'error looking up service account p/default: serviceaccount "default" not found',
        Reason.PULLS_REFUSED,
    ),
    (ForbiddenError, 403, NAMED + "no PriorityClass with name low was found", Reason.PULLS_REFUSED),
    (
        ForbiddenError,
        403,
        NAMED + "unable to create new content in namespace p because it is being terminated",
        Reason.PULLS_REFUSED,
    ),
    (NotFoundError, 404, 'namespaces "gpu-workspaces-prepuller" not found', Reason.PULLS_REFUSED),
    (
        UnavailableError,
        500,
        'Internal error occurred: failed calling webhook "mpod.kb.io": Post "https://x": connection refused',
        Reason.PULLS_REFUSED,
    ),
    (ForbiddenError, 403, NAMED + 'pod rejected: RuntimeClass "nvidia" not found', Reason.POD_REFUSED),
    (
        ForbiddenError,
        403,
        'admission webhook "policy.example.org" denied the request: registry docker.io is not allowed',
        Reason.POD_REFUSED,
    ),
    (ForbiddenError, 403, NAMED + 'violates PodSecurity "RuntimeClass": privileged', Reason.PULLS_REFUSED),
    (
        ForbiddenError,
        403,
        'admission webhook "w" denied the request: exceeded quota: q, requested: a=1, used: a=5, limited: a',
        Reason.POD_REFUSED,
    ),
    (InvalidError, 422, 'Pod "x" is invalid: spec.containers[0].image: Invalid value', Reason.POD_REFUSED),
]


@pytest.mark.parametrize(("kind", "status", "message", "reason"), REFUSALS, ids=lambda one: str(one)[-40:])
def test_refusals(kind: type[KubeError], status: int, message: str, reason: Reason) -> None:
    error = kind(message, kind="pods", status=status)
    assert reason_of(error) is reason
    assert (BLAMES[reason] is Blame.IMAGE) == (reason is Reason.POD_REFUSED)


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        (UnavailableError, None, "no answer: TimeoutError()"),
        (UnavailableError, 429, "Too many requests, please try again later."),
        (UnavailableError, 500, "etcdserver: request timed out"),
        (UnavailableError, 503, "apiserver is shutting down"),
        (ConflictError, 409, 'pods "x" already exists'),
    ],
)
def test_a_server_that_has_not_judged_the_pod_says_nothing_about_it(
    kind: type[KubeError], status: int | None, message: str
) -> None:
    assert reason_of(kind(message, kind="pods", status=status)) is None
