"""One look after the other at the same cluster: what is remembered between them, and what came since.

Pure: no clock, no network; `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime

from hub_ext.catalog.model import Catalog

from .benefit import Starts
from .picture import Picture, look
from .places import Layout, lay_out
from .plan import Plan, plan, worked_in
from .pods import PullPod, Step
from .release import note_unneeded
from .settings import Settings
from .store import Store
from .summary import Summary, summarize
from .troubles import Trouble, Troubles, Worked
from .wants import Desired, desire


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What there is and what is to be done."""

    picture: Picture
    plan: Plan
    summary: Summary
    failed: tuple[tuple[PullPod, Trouble], ...] = ()
    """Pulls that failed since the moment before."""
    pulled: tuple[PullPod, ...] = ()
    """Pulls that came since the moment before; those from before the first one are history."""


class Judge:
    """Judges a cluster again and again."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.troubles = Troubles()
        self.starts: Starts = {}
        self._unneeded: dict[str, datetime] = {}
        self._done: set[str] | None = None
        self._desired: tuple[Catalog, date, Desired] | None = None
        self._layout: tuple[Desired, int, Layout] | None = None

    def judge(self, catalog: Catalog, now: datetime) -> Moment:
        """Say what there is and what is to be done, and remember what failed."""
        desired = self._desire(catalog, now.date())
        layout, seen, limits = self._lay_out(desired), self.store.look(), self.settings.limits
        picture = look(desired, layout, seen, troubles=self.troubles, limits=limits, now=now)
        worked = worked_in(picture)
        failed = tuple(self._note(picture, worked))
        self._unneeded = note_unneeded(picture, self._unneeded)
        made = plan(
            picture,
            settings=self.settings,
            troubles=self.troubles,
            worked=worked,
            starts=self.starts,
            unneeded=self._unneeded,
        )
        return Moment(
            picture=picture,
            plan=made,
            summary=summarize(picture, made, self.troubles, limits),
            failed=failed,
            pulled=tuple(self._new(picture.pods)),
        )

    def _desire(self, catalog: Catalog, today: date) -> Desired:
        if self._desired is None or self._desired[0] is not catalog or self._desired[1] != today:
            self._desired = catalog, today, desire(catalog, self.settings, today=today)
        return self._desired[2]

    def _lay_out(self, desired: Desired) -> Layout:
        changed = self.store.nodes_changed
        if self._layout is None or self._layout[0] is not desired or self._layout[1] != changed:
            self._layout = desired, changed, lay_out(desired, self.store.machines.values())
        return self._layout[2]

    def _note(self, picture: Picture, worked: Worked) -> Iterator[tuple[PullPod, Trouble]]:
        self.troubles.forget(picture.pods, worked, picture.at)
        for pod in picture.pods:
            if pod.step is not Step.FAILED:
                continue
            want, machine = picture.desired.wants.get(pod.want), picture.machines.get(pod.node)
            architecture = machine.architecture if machine else ""
            found = self.troubles.note(pod, want, worked=worked, architecture=architecture, now=picture.at)
            if found is not None:
                yield pod, found

    def _new(self, pods: Iterable[PullPod]) -> Iterator[PullPod]:
        done = {pod.uid: pod for pod in pods if pod.step is Step.DONE}
        if self._done is not None:
            yield from (pod for uid, pod in done.items() if uid not in self._done)
        self._done = set(done)
