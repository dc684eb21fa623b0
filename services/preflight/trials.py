"""Asks the API server about pods without making them: a dry run goes through quotas, defaults, pod security,
webhooks and policies, and charges nothing.

Shell: talks to the Kubernetes API.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from hub_ext.quota.refusals import Answer

from ..kube import ForbiddenError, Kube, KubeError, UnavailableError, api_path
from .attempts import Attempt
from .scene import Trial

MOST: Final = 200
"""Pods that are tried."""
AT_ONCE: Final = 4
"""Questions at the same time."""
_MAY_NOT: Final = re.compile(r"pods is forbidden: User \"(?:[^\"\\]|\\.)*\" cannot create resource \"pods\"")
"""Of the API server's authorization; what a webhook says begins with its name."""


async def try_pods(kube: Kube, wanted: Sequence[Attempt]) -> tuple[tuple[Trial, ...], str]:
    """Ask the API server about pods; gives its answers, and why it was not asked about some.

    Raises
    ------
    KubeError
        The API server does not answer.
    """
    trials: list[Trial] = []
    denied: list[str] = [f"{len(wanted)} pods are too many; {MOST} were tried"] if len(wanted) > MOST else []
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(attempt: Attempt) -> None:
        async with slots:
            answer = await _ask(kube, attempt)
        if isinstance(answer, ForbiddenError) and may_not_try(answer):
            denied.append(str(answer))
        else:
            said = _answer(answer) if answer else None
            trials.append(Trial(profile=attempt.profile, namespace=attempt.namespace, refusal=said))

    try:
        async with asyncio.TaskGroup() as group:
            for attempt in wanted[:MOST]:
                group.create_task(one(attempt))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return tuple(sorted(trials, key=lambda one: (one.profile, one.namespace))), "; ".join(denied[:1])


async def _ask(kube: Kube, attempt: Attempt) -> KubeError | None:
    path = api_path("v1", "pods", namespace=attempt.namespace)
    try:
        await kube.create(path, attempt.pod, dry_run=True)
    except UnavailableError as error:
        if error.status is None:
            raise
        return error  # a webhook that does not answer, or a quota that takes too long
    except KubeError as error:
        return error
    return None


def may_not_try(error: ForbiddenError) -> bool:
    """Say whether it was the account that was refused, and not the pod."""
    return _MAY_NOT.match(error.what) is not None or error.status == HTTPStatus.UNAUTHORIZED


def _answer(error: KubeError) -> Answer:
    return Answer(code=error.status or 0, reason=error.reason, message=error.what)
