"""The hub's side of the cluster: one watch, one ledger, one log of starts for all spawners of a process.

A spawner calls, in this order:

1. ``await cluster.ready()`` once, before it relies on anything.
2. ``cluster.offer(…)`` for each workspace on a page.
3. ``cluster.begin(…)`` before anything is created: a `Start`, or a `Refusal`.
4. ``start.take(…)`` with the pod's manifest, before the pod is created: perhaps a `Refusal`.
5. ``start.waits()`` for the progress page and for failing fast, until the server answers.
6. exactly one of ``start.succeeded``, ``start.refused`` and ``start.failed``; ``cluster.gone`` after a stop.

Shell: reads the clock, the watch and the ledger; the watch talks to the Kubernetes API.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from ..audit import StartLog
from ..catalog.compose import Workspace
from ..metrics import Metrics
from ..quota.demand import asked_by, holding_of
from ..quota.usage import Holding, Owner, server_key
from ..quota.verdicts import Refusal
from . import nature
from .bookings import Bookings
from .kinds import Kind
from .offer import Offer, Rules, View, judge
from .phases import Milestones, note, split
from .placement import ANYWHERE, Placement
from .pods import Pod
from .queueing import judge_end
from .scheduling import has_failed
from .snapshot import Snapshot
from .starts import Outcome, Subject, record
from .state import ClusterState
from .supplies import Supplies
from .waiting import explain
from .waits import Around, Place, Wait, WaitReason
from .watch import ClusterWatch, utc_now

REFRESH: Final = 2.0
"""Seconds after which a wait is told again though nothing happened: its text has the time in it."""


class HubCluster:
    """What a hub knows of its cluster, and what it has promised."""

    def __init__(
        self,
        watch: ClusterWatch,
        rules: Rules,
        *,
        starts: StartLog | None = None,
        metrics: Metrics | None = None,
        placement: Placement = ANYWHERE,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.watch = watch
        self.rules = rules
        self.starts = starts or StartLog()
        self.metrics = metrics
        self.clock = clock
        self.bookings = Bookings(watch.state, clock=clock, as_of=watch.as_of)
        self.supplies = Supplies(placement)

    @property
    def state(self) -> ClusterState:
        return self.watch.state

    async def ready(self) -> None:
        """Start the watch if it does not run, and wait for its first full picture."""
        await self.watch.start()
        await self.watch.loaded()

    def offer(
        self,
        workspace: Workspace,
        owner: Owner,
        *,
        namespace: str,
        server: str = "",
        home_zones: frozenset[str] = frozenset(),
    ) -> Offer:
        """Say what a user may start now; their own server of that name is not counted against them."""
        key = server_key(namespace, owner.user, server)
        usual = self.starts.usual(profile=workspace.profile.name, pool=workspace.pool_name)
        told = self.supplies.prepulled
        if usual.cold is None and told is not None:
            # No start says it yet: at least as long as the pull takes.
            usual = replace(usual, cold=told.usual(workspace.reference, workspace.pool_name))
        return judge(
            workspace,
            owner.team,
            rules=self.rules,
            usage=self.bookings.usage(owner, without=key),
            view=View(
                snapshot=self.watch.snapshot(),
                supplies=self.supplies,
                namespace=namespace,
                usual=usual,
                home_zones=home_zones,
            ),
        )

    def begin(
        self,
        workspace: Workspace,
        owner: Owner,
        *,
        namespace: str,
        name: str,
        server: str = "",
        requested: datetime | None = None,
    ) -> Start | Refusal:
        """Reserve room for a workspace before anything is created for it, or say why not.

        Parameters
        ----------
        name
            Of the pod that there will be.
        requested
            When the user asked; now, if that is not known.

        Raises
        ------
        RuntimeError
            `ready` was not awaited: what runs already is not known.
        """
        if not self.watch.is_loaded:
            raise RuntimeError("HubCluster.ready() was not awaited before the first start")
        key, taken = server_key(namespace, owner.user, server), asked_by(workspace, self.rules.weights)
        holding = Holding(key=key, owner=owner, taken=taken)
        refusal = self.bookings.reserve(holding, self.rules.limits(owner.team))
        if refusal is not None:
            return refusal
        return Start(
            self,
            holding,
            workspace,
            namespace=namespace,
            name=name,
            requested=requested or self.clock(),
        )

    def gone(self, *, namespace: str, user: str, server: str = "") -> None:
        """Note that a server is known to have no pod, as after a stop that waited for it."""
        self.bookings.gone(server_key(namespace, user, server))


class Start:
    """One start, from its reservation to its end."""

    def __init__(
        self,
        cluster: HubCluster,
        holding: Holding,
        workspace: Workspace,
        *,
        namespace: str,
        name: str,
        requested: datetime,
    ) -> None:
        self._cluster = cluster
        self._holding = holding
        self._workspace = workspace
        self._at = (namespace, name)
        self._requested = requested
        before = cluster.watch.pod(namespace, name)
        self._not_mine = before.uid if before else ""
        self._usual = cluster.starts.usual(
            profile=workspace.profile.name, pool=workspace.pool_name, image=workspace.image_key
        )
        self._milestones: Milestones | None = None
        self._last: Pod | None = None
        self._over = False
        self._held_up: Wait | None = None
        self.home_zones: frozenset[str] = frozenset()
        """Zones that the home can be attached in, once they are known."""

    def hold_up(self, problem: Refusal) -> None:
        """Note what keeps the API server from taking the pod, which is tried again."""
        self._held_up = nature.held_up(problem)

    def take(self, pod: Mapping[str, Any]) -> Refusal | None:
        """Change the reservation to what the pod asks for, or say why that cannot be.

        `pod` is the manifest in API spelling, with its namespace and with the labels and annotations that say
        whose it is: all its containers count, sidecars included.
        """
        holding = holding_of(pod, self._cluster.rules.weights)
        refusal = self._cluster.bookings.adjust(holding, self._cluster.rules.limits(holding.owner.team))
        if refusal is None:
            self._holding = holding
        return refusal

    def look(self) -> Wait:
        """Say what it waits for at this moment."""
        cluster, pod = self._cluster, self._pod()
        if pod is None:
            if self._last and (Kind.PODS, self._at[0]) in cluster.watch.snapshot().visible:
                return judge_end(self._last) or nature.wait(WaitReason.DELETED, fatal=True)
            return self._held_up or explain(None, (), Around(now=cluster.clock()))
        snapshot, events = cluster.watch.snapshot(), cluster.watch.events(pod.uid)
        # Looking at all nodes costs: it is only of use once the scheduler has found none.
        placed = pod.node or not has_failed(events)
        place = Place() if placed else self._place(snapshot, pod)
        around = Around(
            now=cluster.clock(),
            node=snapshot.node_of(pod),
            workload=snapshot.workload_of(pod),
            place=place,
            usual=self._usual,
        )
        return explain(pod, events, around)

    def _place(self, snapshot: Snapshot, pod: Pod) -> Place:
        pool = self._cluster.supplies.placement.of(self._workspace.pool)
        return snapshot.place(pod.requests, pool, home_zones=self.home_zones)

    async def waits(self) -> AsyncGenerator[Wait]:
        """Say what it waits for, each time that this changes, until `succeeded` or the like is called.

        The one who asks stops at a wait that is `fatal`.
        """
        told = ""
        async with self._cluster.watch.following(*self._at) as changed:
            while not self._over:
                changed.clear()
                wait = self.look()
                if wait.text != told:
                    told = wait.text
                    yield wait
                try:
                    async with asyncio.timeout(REFRESH):
                        await changed.wait()
                except TimeoutError:
                    continue

    def succeeded(self) -> None:
        """Note that the server answers."""
        pod = self._pod()
        if pod is not None:
            self._cluster.bookings.started(self._holding.key, pod.uid)
        else:
            self._cluster.bookings.failed(self._holding.key)
        self._end(Outcome.STARTED, "")

    def refused(self, reason: str) -> None:
        """Note that the API server created no pod."""
        self._cluster.bookings.refused(self._holding.key)
        self._end(Outcome.FAILED, reason)

    def failed(self, reason: str, outcome: Outcome = Outcome.FAILED) -> None:
        """Note that it was given up, and that a pod of it may exist."""
        self._cluster.bookings.failed(self._holding.key)
        self._end(outcome, reason)

    def _pod(self) -> Pod | None:
        """Give the pod of this start, and remember what it shows; the one before it is not it."""
        pod = self._cluster.watch.pod(*self._at)
        if pod is None or pod.uid == self._not_mine:
            return None
        self._milestones, self._last = note(pod, self._milestones), pod
        return pod

    def _end(self, outcome: Outcome, reason: str) -> None:
        if self._over:
            return
        self._over = True
        cluster, pod = self._cluster, self._pod() or self._last
        if pod is None:
            return
        snapshot = cluster.watch.snapshot()
        made = split(
            pod,
            cluster.watch.events(pod.uid),
            requested=self._requested,
            ended=cluster.clock(),
            milestones=self._milestones,
            node=snapshot.node_of(pod),
        )
        profile = self._workspace.profile
        subject = Subject(
            profile=profile.name,
            version=profile.version,
            pool=self._workspace.pool_name,
            image=self._workspace.image_key,
        )
        entry = record(made, subject, at=self._requested, outcome=outcome, reason=reason)
        cluster.starts.add(entry, user=self._holding.owner.user)
        if cluster.metrics is not None:
            cluster.metrics.count_start(entry)
