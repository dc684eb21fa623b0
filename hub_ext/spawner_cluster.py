"""KubeSpawner on the hub's one watch: room is reserved before a pod is made, and a wait explains itself.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `_start_watching_pods`, `_start_watching_events`: upstream lists all pods again every ten seconds, and
  sorts all events every second for everybody who waits.
- `start`, `_start`: around a whole attempt, so that what it reserved is held exactly as long as it lasts, and
  so that what cannot succeed ends at once.
- `_make_create_pod_request`: the last step before a pod exists, with the pod as admins' hooks left it.
- `progress`, `stop`.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from tornado import web
from traitlets import Dict, TraitError, Unicode, validate

from .attempt import Attempt, unless
from .catalog.compose import Workspace
from .catalog.model import Catalog, Quota
from .cluster.hub import HubCluster
from .cluster.kinds import Kind
from .cluster.offer import Offer
from .cluster.reflector import NoEvents, SharedPods
from .cluster.shared import shared_cluster
from .cluster.sources import DeniedError
from .cluster.starts import Outcome
from .cluster.texts import sentence, timed_out
from .cluster.waits import Wait, WaitReason
from .cluster.watch import Health
from .form.room import Look
from .quota.usage import Owner
from .quota.verdicts import Refusal as QuotaRefusal
from .selection import Refusal, Selection
from .spawner_objects import to_object
from .spawner_requests import RequestSpawner

_WAIT_SHARE: Final = 0.95
"""Part of the start timeout after which a start ends with its reason; after all of it the hub gives none."""

_PAGE_SECONDS: Final = 1.0
"""How long a page waits for the first picture of the cluster after the hub has started."""

_LOOK: Final = 0.5
"""Seconds between two looks for an attempt that the hub has announced and not begun."""


class ClusterSpawner(RequestSpawner):
    """Starts and stops pods, and knows what the cluster and its limits have room for."""

    cluster_quota = Dict(
        config=True,
        help="""
        What all users together may use at once, in the words of a team's `quota` in the catalog:
        `{"gpuEquivalents": 40, "servers": 200}`. What is not named is not bounded.
        """,
    )
    start_log = Unicode(
        config=True,
        help="""
        File to keep one line of JSON about each start in, for `gpu-workspaces phases` and for what starts
        usually take. It names no user. Default: none is kept across restarts of the hub.
        """,
    )

    selection: Selection | None = None
    """What the current attempt starts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hub_namespace: str = self.namespace

    @property
    def _catalog(self) -> Catalog:
        raise NotImplementedError

    @validate("cluster_quota")
    def _check_cluster_quota(self, proposal: Any) -> dict[str, Any]:
        value: dict[str, Any] = proposal["value"]
        try:
            Quota.model_validate(value)
        except ValidationError as error:
            raise TraitError(f"cluster_quota: {error}") from None
        return value

    @property
    def _cluster(self) -> HubCluster | None:
        """The shared view; None where each user has a namespace of their own, which it does not cover."""
        if self.enable_user_namespaces:
            return None
        teams = (team.namespace for team in self._catalog.teams.values())
        return shared_cluster(
            self.api.api_client,
            self._catalog,
            namespaces=[self._hub_namespace, *(name for name in teams if name)],
            quota=Quota.model_validate(self.cluster_quota),
            start_log=self.start_log,
        )

    async def _look(self, server_name: str) -> Look | None:
        """Give what says what this user may start now; None if the cluster is not known as fast as a page.

        What runs under `server_name` is not counted against the user: it would be replaced.
        """
        cluster = self._cluster
        if cluster is None:
            return None
        with suppress(TimeoutError, DeniedError):
            async with asyncio.timeout(_PAGE_SECONDS):
                await cluster.ready()
        if not cluster.watch.is_loaded or _pods_health(cluster, self._hub_namespace) is Health.DENIED:
            return None

        def look(workspace: Workspace, team: str) -> Offer:
            found = self._catalog.teams.get(team)
            namespace = (found and found.namespace) or self._hub_namespace
            owner = Owner(user=self.user.name, team=team)
            return cluster.offer(workspace, owner, namespace=namespace, server=server_name)

        return look

    # The watch

    async def _start_watching_pods(self, replace: bool = False) -> Any:
        cluster = self._cluster
        if cluster is None or _pods_health(cluster, self.namespace) is None:
            return await super()._start_watching_pods(replace)
        try:
            await cluster.ready()
        except DeniedError as error:
            if _pods_health(cluster, self.namespace) is Health.DENIED:
                self.log.error("The hub may not list and watch the pods in %s: %s", self.namespace, error)
                raise self._refuse(_BLIND) from None
        key = self._get_reflector_key("pods")
        known = self.reflectors.get(key)
        if not isinstance(known, SharedPods) or not known.reads(cluster.watch):
            known = self.reflectors[key] = SharedPods(cluster.watch)
        return known

    async def _start_watching_events(self, replace: bool = False) -> Any:
        cluster = self._cluster
        if cluster is None or _pods_health(cluster, self.namespace) is None:
            return await super()._start_watching_events(replace)
        return self.reflectors.setdefault(self._get_reflector_key("events"), NoEvents())

    # One attempt

    def start(self) -> Any:
        self._attempt = Attempt()
        return super().start()

    async def _start(self) -> Any:
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
        except BaseException:
            attempt.fail()
            raise
        attempt.hand_over(self._spawn_future)
        return url

    async def _watch_over(self, attempt: Attempt) -> None:
        """End the attempt with the reason once it cannot succeed any more, or when its time is over."""
        try:
            async with asyncio.timeout(_WAIT_SHARE * self.start_timeout):
                await attempt.created.wait()
                if attempt.start is None:
                    return
                async for wait in attempt.start.waits():
                    if wait.fatal:
                        raise self._give_up(attempt, wait)
        except TimeoutError:
            attempt.outcome = Outcome.TIMED_OUT
            raise self._give_up(attempt) from None

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
        return self._refuse(
            Refusal(reason=reason.value, text=timed_out(text) if late else text, status=status)
        )

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell in plain language what a start waits for."""
        if self._cluster is None:
            async for event in super().progress():
                yield event
            return
        while (attempt := self._attempt) is None or attempt.over:  # noqa: ASYNC110 - the next one is another
            await asyncio.sleep(_LOOK)
        async for event in attempt.progress():
            yield event

    async def stop(self, now: bool = False) -> None:
        await super().stop(now)
        cluster, starting = self._cluster, self._attempt is not None and self._attempt.running
        if cluster is not None and not starting:
            cluster.gone(namespace=self.namespace, user=self.user.name, server=self.name)

    async def _make_create_pod_request(self, pod: Any, request_timeout: int) -> bool:
        self._reserve(pod)
        await self._create_pod(pod, request_timeout)
        if self._attempt is not None:
            self._attempt.created.set()
        return True

    def _reserve(self, pod: Any) -> None:
        """Hold room for a pod, or refuse: from here on no other start can be promised the same room."""
        cluster, attempt = self._cluster, self._attempt
        if cluster is None:
            return
        if attempt is None or self.selection is None:
            raise RuntimeError("a pod is made in an attempt that has chosen a workspace")
        manifest = to_object(self.api.api_client, pod)
        manifest["metadata"]["namespace"] = self.namespace
        begun = cluster.begin(manifest, self.selection.workspace)
        if isinstance(begun, QuotaRefusal):
            raise self._refuse(Refusal(reason=begun.reason, text=begun.text, status=HTTPStatus.FORBIDDEN))
        attempt.begin(begun)


_BLIND: Final = Refusal(
    reason="pods-not-visible",
    text="The hub may not see what runs in the cluster, so it starts nothing. Please tell an administrator.",
    status=HTTPStatus.SERVICE_UNAVAILABLE,
)


def _pods_health(cluster: HubCluster, namespace: str) -> Health | None:
    """Say how well the pods of a namespace are known; None if they are not watched at all."""
    return cluster.watch.health().get(f"{Kind.PODS.value} in {namespace}")
