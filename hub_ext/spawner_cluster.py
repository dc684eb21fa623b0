"""KubeSpawner on the hub's one watch: room is reserved before anything is made, and a wait explains itself.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `_start_watching_pods`, `_start_watching_events`: upstream lists all pods again every ten seconds, and
  sorts all events every second for everybody who waits.
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
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from kubernetes_asyncio.client.rest import ApiException
from tornado import web
from traitlets import Integer, List, TraitError, Unicode, validate

from .attempt import Attempt, unless
from .catalog.compose import Workspace
from .catalog.model import Catalog
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
from .config import OWN_NAMESPACES
from .form.room import Look
from .quota.usage import Owner
from .quota.verdicts import Refusal as QuotaRefusal
from .selection import Refusal, Selection
from .spawner_objects import explain_api_error, to_object
from .spawner_requests import UNANSWERED, RequestSpawner

_PAGE_SECONDS: Final = 1.0
"""How long a page waits for the first picture of the cluster after the hub has started."""

_LOOK: Final = 0.5
"""Seconds between two looks for an attempt that the hub has announced and not begun."""


class ClusterSpawner(RequestSpawner):
    """Starts and stops pods, and knows what the cluster and its limits have room for."""

    queue_timeout = Integer(
        1800,
        min=0,
        config=True,
        help="""
        Seconds that a start may wait in queues and for nodes that are being added, beyond `start_timeout`.

        Each start that waits takes one of `JupyterHub.concurrent_spawn_limit`.
        """,
    )
    run_namespaces = List(
        Unicode(),
        config=True,
        help="""
        Namespaces with runs that were made from workspaces, beside those of the hub and the teams: they count
        against the same limits. The hub has to be allowed to list and watch pods there.
        """,
    )
    start_log = Unicode(
        config=True,
        help="""
        File to keep one line of JSON about each start in, for `gpu-workspaces phases` and for what starts
        usually take. It names no user. Default: none is kept across restarts of the hub.
        """,
    )

    prepuller_url = Unicode(
        config=True,
        help="""
        Where the prepuller is, such as `http://hub:10103/services/prepuller/`: the spawn page then says what
        is warm by its word. Default: by what nodes list, which does not say who may use it.
        """,
    )
    prepuller_token = Unicode(config=True, help="Token that may use the prepuller; as a rule its own.")

    selection: Selection | None = None
    """What the current attempt starts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hub_namespace: str = self.namespace

    @property
    def _catalog(self) -> Catalog:
        raise NotImplementedError

    @validate("enable_user_namespaces")
    def _check_namespaces(self, proposal: Any) -> bool:
        if proposal["value"]:
            raise TraitError(OWN_NAMESPACES)
        return False

    @property
    def _cluster(self) -> HubCluster:
        teams = (team.namespace for team in self._catalog.teams.values())
        return shared_cluster(
            self.api.api_client,
            self._catalog,
            namespaces=[self._hub_namespace, *(name for name in teams if name)],
            run_namespaces=self.run_namespaces,
            start_log=self.start_log,
            prepuller=(self.prepuller_url, self.prepuller_token),
        )

    async def _look(self, server_name: str) -> Look | None:
        """Give what says what this user may start now; None if the cluster is not known as fast as a page.

        What runs under `server_name` is not counted against the user: it would be replaced.
        """
        cluster = self._cluster
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
        if _pods_health(cluster, self.namespace) is None:
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
        if _pods_health(cluster, self.namespace) is None:
            return await super()._start_watching_events(replace)
        return self.reflectors.setdefault(self._get_reflector_key("events"), NoEvents())

    # One attempt

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
        self._attempt.begin(begun)

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
        if not more and _pods_health(self._cluster, self.namespace) is not None:
            await self._until_running(manifest["metadata"]["name"])
        return True

    async def _until_running(self, name: str) -> None:
        """Wait for what KubeSpawner looks for every few seconds next; `_watch_over` bounds the time."""
        async with self._cluster.watch.following(self.namespace, name) as changed:
            while not self.is_pod_running(self.pod_reflector.pods.get(f"{self.namespace}/{name}")):
                changed.clear()
                await changed.wait()


_BLIND: Final = Refusal(
    reason="pods-not-visible",
    text="The hub may not see what runs in the cluster, so it starts nothing. Please tell an administrator.",
    status=HTTPStatus.SERVICE_UNAVAILABLE,
)


def _pods_health(cluster: HubCluster, namespace: str) -> Health | None:
    """Say how well the pods of a namespace are known; None if they are not watched at all."""
    return cluster.watch.health_of(f"{Kind.PODS.value} in {namespace}")
