"""One start: room is reserved before anything is made, the wait explains itself, and hopeless ones end.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `start`, `_start`: around a whole attempt, so that what it reserved is held exactly as long as it lasts, and
  so that what cannot succeed ends at once.
- `_make_create_pod_request`: the last step before a pod exists, with the pod as admins' hooks left it; and
  until it runs, because upstream only looks now and then.
- `progress`, `stop`.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

from kubernetes_asyncio.client.rest import ApiException
from tornado import web
from traitlets import Integer

from .attempt import Attempt, unless
from .cluster.starts import Outcome
from .cluster.texts import sentence, timed_out
from .cluster.waits import Wait, WaitReason
from .quota.usage import Owner
from .quota.verdicts import Refusal as QuotaRefusal
from .selection import Refusal, Selection
from .spawner_cluster import ClusterSpawner, pods_health
from .spawner_objects import explain_api_error, to_object
from .spawner_requests import UNANSWERED

_LOOK: Final = 0.5
"""Seconds between two looks for an attempt that the hub has announced and not begun."""


class AttemptSpawner(ClusterSpawner):
    """Starts and stops pods."""

    queue_timeout = Integer(
        1800,
        min=0,
        config=True,
        help="""
        Seconds that a start may wait in queues and for nodes that are being added, beyond `start_timeout`.

        Each start that waits takes one of `JupyterHub.concurrent_spawn_limit`. 0 ends a start that would have
        to wait, with the reason.
        """,
    )

    selection: Selection | None = None
    """What the current attempt starts."""

    def start(self) -> Any:
        self._attempt = Attempt()
        # The hub reads it once, when this returns; `_start` begins after that.
        self.start_timeout = int(self._patience.whole)
        return super().start()

    async def _start(self) -> Any:
        self.start_timeout = int(self._patience.own)
        attempt = self._attempt = self._attempt or Attempt()
        try:
            url = await unless(super()._start(), self._watch_over(attempt))
        except asyncio.CancelledError:
            attempt.outcome = Outcome.CANCELLED
            attempt.fail()
            raise
        except TimeoutError:  # KubeSpawner's own, which says neither why nor what to do
            attempt.outcome = Outcome.TIMED_OUT
            refusal = self._give_up(attempt)
            attempt.fail()
            raise refusal from None
        except (ApiException, *UNANSWERED) as error:  # of a request that nobody tries again
            refusal = self._refuse_by_api(explain_api_error(error))
            attempt.fail()
            raise refusal from None
        except BaseException:
            attempt.fail()
            raise
        attempt.hand_over(self._spawn_future)
        return url

    async def _watch_over(self, attempt: Attempt) -> None:
        """End the attempt with the reason once it cannot succeed any more, or when its time is over."""
        try:
            wait = await attempt.trouble(self._patience)
        except TimeoutError:
            attempt.outcome = Outcome.TIMED_OUT
            raise self._give_up(attempt) from None
        if wait is not None:
            raise self._give_up(attempt, wait)

    def _give_up(self, attempt: Attempt, wait: Wait | None = None) -> web.HTTPError:
        """Make the refusal out of a wait that cannot end well, or out of the last one when time is over."""
        late = attempt.outcome is Outcome.TIMED_OUT
        if wait is None and attempt.start is not None:
            wait = attempt.start.look()
        reason = wait.reason if wait else WaitReason.REQUESTED
        text = wait.text if wait else sentence(WaitReason.REQUESTED)
        again = late or (wait is not None and wait.again)
        attempt.reason = reason.value
        if wait is not None and wait.detail:
            self.log.warning("The cluster on %s: %r", self._log_name, wait.detail)
        status = HTTPStatus.SERVICE_UNAVAILABLE if again else HTTPStatus.FAILED_DEPENDENCY
        return self._end(Refusal(reason=reason.value, text=timed_out(text) if late else text, status=status))

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell in plain language what a start waits for."""
        while (attempt := self._attempt) is None or attempt.over:  # noqa: ASYNC110 - the next one is another
            await asyncio.sleep(_LOOK)
        async for event in attempt.progress():
            yield event

    async def stop(self, now: bool = False) -> None:
        await super().stop(now)
        if self._attempt is None or not self._attempt.running:
            self._cluster.gone(namespace=self.namespace, user=self.user.name, server=self.name)

    async def _reserve(self, selection: Selection) -> None:
        """Hold room, or refuse: from here on no other start can be promised the same room.

        Nothing has been made yet, so that a refusal leaves nothing behind.
        """
        if self._attempt is None:
            return  # only looked at, as by a command
        await self._start_watching_pods()
        begun = self._cluster.begin(
            selection.workspace,
            Owner(user=self.user.name, team=selection.team or ""),
            namespace=self.namespace,
            name=self.pod_name,
            server=self.name,
        )
        if isinstance(begun, QuotaRefusal):
            raise self._refuse_by_limit(await self._with_fits(begun, selection))
        begun.home_zones = self._zones_of_home(selection.workspace, self.namespace)
        self._attempt.begin(begun)

    async def _helped(self, problem: QuotaRefusal) -> QuotaRefusal:
        if self.selection is None or self._attempt is None or self._attempt.start is None:
            return problem
        return await self._with_fits(problem, self.selection) if problem.shortages else problem

    async def _with_fits(self, refusal: QuotaRefusal, selection: Selection) -> QuotaRefusal:
        """Say what would fit instead."""
        raise NotImplementedError

    async def _make_create_pod_request(self, pod: Any, request_timeout: int) -> bool:
        attempt, manifest = self._attempt, to_object(self.api.api_client, pod)
        if attempt is None or attempt.start is None or self.selection is None:
            raise RuntimeError("a pod is made in an attempt that has reserved room")
        manifest["metadata"]["namespace"] = self.namespace
        if refusal := attempt.start.take(manifest):
            attempt.note(refusal)
            raise self._refuse_by_limit(await self._with_fits(refusal, self.selection))
        await self._create_pod(manifest, request_timeout)
        attempt.created.set()
        more = self.internal_ssl or self.services_enabled or self.after_pod_created_hook
        if not more and pods_health(self._cluster, self.namespace) is not None:
            await self._until_running(manifest["metadata"]["name"])
        return True

    async def _until_running(self, name: str) -> None:
        """Wait for what KubeSpawner looks for every few seconds next; `_watch_over` bounds the time."""
        async with self._cluster.watch.following(self.namespace, name) as changed:
            while not self.is_pod_running(self.pod_reflector.pods.get(f"{self.namespace}/{name}")):
                changed.clear()
                await changed.wait()
