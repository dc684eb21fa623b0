"""KubeSpawner on the hub's one watch: room is reserved before a pod is made, and a wait explains itself.

Overridden seams of KubeSpawner 7.0 and 7.1, and why nothing else will do:

- `_start_watching_pods`, `_start_watching_events`: upstream lists all pods again every ten seconds, and
  sorts all events every second for everybody who waits.
- `start`, `_start`: around a whole attempt, so that what it reserved is held exactly as long as it lasts, and
  so that what cannot succeed ends at once.
- `_make_create_pod_request`: the last step before a pod exists, with the pod as admins' hooks left it.
  Upstream also writes the manifest, tokens included, to the log when the API server refuses it.
- `_make_create_pvc_request`, `_make_delete_pod_request`: clear refusals, and a grace period of at least a
  second.
- `progress`, `stop`.

Shell: talks to the hub and the Kubernetes API; judges nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

from jupyterhub.utils import exponential_backoff
from kubernetes_asyncio.client.rest import ApiException
from kubespawner import KubeSpawner
from pydantic import ValidationError
from tornado import web
from traitlets import Dict, TraitError, Unicode, validate

from .attempt import Attempt, unless
from .catalog.model import Catalog, Quota
from .cluster.hub import HubCluster
from .cluster.kinds import Kind
from .cluster.reflector import NoEvents, SharedPods
from .cluster.shared import shared_cluster
from .cluster.sources import DeniedError
from .cluster.starts import Outcome
from .cluster.texts import sentence, timed_out
from .cluster.waits import Wait, WaitReason
from .cluster.watch import Health
from .hub_errors import hub_error
from .quota.verdicts import Reason
from .quota.verdicts import Refusal as QuotaRefusal
from .selection import Refusal, Selection
from .spawner_objects import NO_ANSWER, explain_api_error, to_object

_CREATE_SHARE: Final = 0.8
"""Part of the start timeout in which creating the pod is retried; after it the reason can still be told."""

_WAIT_SHARE: Final = 0.95
"""Part of the start timeout after which a start ends with its reason; after all of it the hub gives none."""

_LOOK: Final = 0.5
"""Seconds between two looks for an attempt that the hub has announced and not begun."""


class ClusterSpawner(KubeSpawner):
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

    namespace: str  # KubeSpawner's traits
    start_timeout: int
    selection: Selection | None = None
    """What the current attempt starts."""
    _attempt: Attempt | None = None

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
            raise self._give_up(attempt, attempt.start.look() if attempt.start else None) from None

    def _give_up(self, attempt: Attempt, wait: Wait | None) -> web.HTTPError:
        late = attempt.outcome is Outcome.TIMED_OUT
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

    # What is asked of the API server

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

    async def _create_pod(self, pod: Any, request_timeout: int) -> None:
        problem = NO_ANSWER

        async def attempt() -> bool:
            nonlocal problem
            try:
                await asyncio.wait_for(self.api.create_namespaced_pod(self.namespace, pod), request_timeout)
            except TimeoutError:
                return False
            except ApiException as error:
                problem = explain_api_error(error)
                self.log.warning("No pod %s: reason=%s", pod.metadata.name, problem.reason)
                if not problem.retry:
                    if self._attempt is not None:
                        self._attempt.refuse(problem.reason.value)
                    raise self._refuse_by_api(problem) from None
                if problem.reason is Reason.NAME_TAKEN:
                    await self.stop(now=True)
                return False
            return True

        try:
            await exponential_backoff(attempt, problem.text, timeout=_CREATE_SHARE * self.start_timeout)
        except TimeoutError:
            raise self._refuse_by_api(problem) from None

    async def _make_create_pvc_request(self, pvc: Any, request_timeout: int) -> bool:
        try:
            return bool(await super()._make_create_pvc_request(pvc, request_timeout))
        except ApiException as error:
            raise self._refuse_by_api(explain_api_error(error)) from None

    async def _make_delete_pod_request(
        self, pod_name: str, delete_options: Any, grace_seconds: int, request_timeout: int
    ) -> bool:
        """Give the kubelet at least a second: a pod that is gone at once can still hold its device."""
        grace = max(1, grace_seconds)
        delete_options.grace_period_seconds = grace
        return bool(await super()._make_delete_pod_request(pod_name, delete_options, grace, request_timeout))

    # Refusals

    def _refuse(self, refusal: Refusal) -> web.HTTPError:
        """Make the exception that shows one text on the form, the progress page and in REST answers."""
        self.log.warning(
            "Refused to start %s: reason=%s status=%d", self._log_name, refusal.reason, refusal.status
        )
        return hub_error(refusal, self.handler.settings if self.handler else None)

    def _refuse_by_api(self, problem: QuotaRefusal) -> web.HTTPError:
        self.log.warning("The API server on %s: %r", self._log_name, problem.detail)
        if self._attempt is not None:
            self._attempt.reason = problem.reason.value
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem.retry else HTTPStatus.FORBIDDEN
        return self._refuse(Refusal(reason=problem.reason, text=problem.text, status=status))


_BLIND: Final = Refusal(
    reason="pods-not-visible",
    text="The hub may not see what runs in the cluster, so it starts nothing. Please tell an administrator.",
    status=HTTPStatus.SERVICE_UNAVAILABLE,
)


def _pods_health(cluster: HubCluster, namespace: str) -> Health | None:
    """Say how well the pods of a namespace are known; None if they are not watched at all."""
    return cluster.watch.health().get(f"{Kind.PODS.value} in {namespace}")
