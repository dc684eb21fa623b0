"""Carries out what is judged: makes and deletes pods.

Shell: talks to the Kubernetes API by the client that it is given.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from hub_ext.catalog.model import Catalog
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.watch import utc_now

from ..kube import ConflictError, KubeError, UnavailableError, api_path
from .facts import registry_of
from .judge import Judge, Moment
from .manifest import build_pull_pod
from .metrics import Metrics
from .places import tolerations_for
from .plan import Fetch, worked_in
from .pods import PullPod
from .reasons import BLAMES, Blame, Reason
from .refusals import reason_of
from .release import Drop
from .settings import Settings
from .store import Store
from .troubles import Trouble
from .wants import Stray

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Pods that are asked for at the same time."""


class Client(Protocol):
    """What is used of `services.kube.Kube`."""

    async def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]: ...

    async def delete(self, path: str, *, uid: str | None = None) -> bool: ...


class Prepuller:
    """Keeps nodes warm. `once` is one pass; passes never overlap."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        kube: Client,
        metrics: Metrics,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.judge = Judge(settings, store)
        self.judging = 0.0
        """Seconds of the processor that the last look took; nothing else could run meanwhile."""
        self._last: Moment | None = None
        self._strays: tuple[Stray, ...] = ()
        self._pods = settings.pods
        self._limits = settings.limits
        self._store = store
        self._kube = kube
        self._metrics = metrics
        self._clock = clock

    @property
    def last(self) -> Moment | None:
        """What was judged last; None while nodes or pods are not in sight."""
        return self._last if self._store.complete else None

    async def once(self, catalog: Catalog) -> None:
        """Look at everything, and do what is to be done.

        Raises
        ------
        KubeError
            The API server does not answer, or lets nothing be deleted; the next pass goes on.
        """
        if not self._store.complete:
            # What is not seen is neither fetched nor let go, and nothing is said of it.
            self._last = None
            self._metrics.hide()
            return
        begun = time.perf_counter()
        moment = self.judge.judge(catalog, self._clock())
        self.judging = time.perf_counter() - begun
        self._last = moment
        self._tell(moment)
        problem = await self._let_go(moment)
        await self._fetch(moment)
        if problem is not None:
            raise problem

    async def _let_go(self, moment: Moment) -> KubeError | None:
        """Delete what is to go; gives the first refusal, which keeps nothing else from being done."""
        problem: KubeError | None = None
        for drop in moment.plan.drops:
            try:
                await self._delete(drop)
            except UnavailableError:
                raise
            except KubeError as error:
                self._metrics.calls.labels("delete", "refused").inc()
                problem = problem or error
        return problem

    async def _fetch(self, moment: Moment) -> None:
        """Make the pods of the plan: one of each image, then the others of those that were not refused."""
        firsts: dict[str, Fetch] = {}
        for fetch in moment.plan.fetches:
            firsts.setdefault(fetch.want.id, fetch)
        refused: set[str] = set()
        for want, fetch in firsts.items():
            why = await self._create(fetch, moment)
            if why is not None and BLAMES[why] is Blame.ALL:
                return
            if why is not None:
                refused.add(want)
        others = [
            fetch
            for fetch in moment.plan.fetches
            if fetch is not firsts[fetch.want.id] and fetch.want.id not in refused
        ]
        for start in range(0, len(others), AT_ONCE):
            some = others[start : start + AT_ONCE]
            found = await asyncio.gather(*(self._create(one, moment) for one in some), return_exceptions=True)
            if failure := next((one for one in found if isinstance(one, BaseException)), None):
                raise failure
            if any(found):
                return

    def _tell(self, moment: Moment) -> None:
        self._metrics.show(moment.summary)
        desired = moment.picture.desired
        if desired.strays != self._strays:
            self._strays = desired.strays
            for stray in desired.strays:
                log.warning(
                    "setting without effect: key=%s name=%s not in the catalog", stray.key, stray.name
                )
        for pod, found in moment.failed:
            self._metrics.count_failure(registry_of(pod.image), found.reason)
            log.warning(
                "pull failed: image=%s node=%s reason=%s try=%d next=%s detail=%s",
                pod.image,
                pod.node,
                found.reason.value,
                found.count,
                found.retry_at(self._limits).isoformat(timespec="seconds"),
                found.detail,
            )
        for pod in moment.pulled:
            self._metrics.count_pull(registry_of(pod.image), pod)
            log.info("pulled: image=%s node=%s seconds=%s", pod.image, pod.node, pod.seconds)

    async def _delete(self, drop: Drop) -> None:
        path = api_path("v1", "pods", drop.pod.name, namespace=self._pods.namespace)
        outcome = await self._deleted(path, drop.pod)
        self._metrics.calls.labels("delete", outcome).inc()
        self._store.end(drop.pod)
        log.info("let go: image=%s node=%s why=%s", drop.pod.image, drop.pod.node, drop.why.value)

    async def _deleted(self, path: str, pod: PullPod) -> str:
        try:
            return "done" if await self._kube.delete(path, uid=pod.uid) else "gone"
        except ConflictError:
            # Another pod has its name by now, which the watch has not told yet.
            return "gone"

    async def _create(self, fetch: Fetch, moment: Moment) -> Reason | None:
        """Make a pod; gives why the API server refuses it, so that there is no use in others of its kind."""
        try:
            made = await self._kube.create(
                api_path("v1", "pods", namespace=self._pods.namespace), self._body(fetch, moment)
            )
        except ConflictError:
            # It is there already, and the watch has not told yet.
            self._metrics.calls.labels("create", "exists").inc()
            return None
        except KubeError as error:
            why = reason_of(error)
            if why is None:
                raise
            self._metrics.calls.labels("create", "refused").inc()
            self._refused(fetch, why, str(error), moment)
            return why
        self._metrics.calls.labels("create", "done").inc()
        # Counted from this moment on, however late the watch is.
        self._store.put(Kind.PODS, made, self._clock())
        log.info("fetch: image=%s node=%s benefit=%d", fetch.want.image, fetch.node, fetch.benefit)
        return None

    def _body(self, fetch: Fetch, moment: Moment) -> dict[str, Any]:
        return build_pull_pod(
            fetch.want,
            fetch.node,
            settings=self.judge.settings,
            tolerations=tolerations_for(moment.picture.desired, fetch.pools),
            pools=fetch.pools,
        )

    def _refused(self, fetch: Fetch, why: Reason, detail: str, moment: Moment) -> None:
        found = Trouble(
            reason=why,
            detail=detail,
            at=moment.picture.at,
            node=fetch.node,
            want=fetch.want.id,
        )
        blame = BLAMES[why]
        key = (blame, "" if blame is Blame.ALL else fetch.want.id)
        noted = self.judge.troubles.add(key, found, worked_in(moment.picture), begun=found.at)
        log.error(
            "pod refused: image=%s reason=%s try=%d error=%s",
            fetch.want.image,
            why.value,
            noted.count,
            detail,
        )
