"""The book of all servers: what is known of each, what is remembered, and how it was judged last.

Shell in that it holds what changes; it asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hub_ext.catalog.model import Catalog

from .breaker import hold
from .facts import Facts, HubFacts, PodFacts
from .inbox import Inbox
from .judge import judge
from .limits import Limits
from .memory import Memory
from .observe import Key, Observer
from .policy import Mode, Policy
from .reasons import Reason
from .track import Track
from .verdict import Pace, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One server as it was judged last."""

    facts: Facts
    verdict: Verdict
    limits: Limits
    due: Verdict
    """The verdict before anything held back what it says."""


NEVER: Final = datetime.max.replace(tzinfo=UTC)


def _about(key: Key, judged: Judged) -> str:
    """Give what a server is found by."""
    pod, verdict = judged.facts.pod, judged.verdict
    parts = (*key, verdict.told, verdict.reason, *((pod.profile, pod.team, pod.node) if pod else ()))
    return "\n".join(parts).casefold()


@dataclass(slots=True, kw_only=True)
class Book:
    """All servers of a hub."""

    policy: Policy
    observer: Observer
    memory: Memory
    clock: Callable[[], datetime]
    every: timedelta
    inbox: Inbox = field(default_factory=Inbox)
    judged: dict[Key, Judged] = field(default_factory=dict)
    catalog: Catalog | None = None

    @property
    def acts(self) -> bool:
        """Whether anything is stopped by itself."""
        return self.policy.mode is Mode.ACT

    def running(self) -> tuple[Key, ...]:
        """Name all servers that run, as far as that is known."""
        view = self.observer.view
        return tuple(key for key in view.servers if key not in view.unlisted)

    def keys_of(self, user: str) -> Iterator[Key]:
        """Name the servers of a user that were judged."""
        return (key for key in self.judged if key[0] == user)

    def find(self, word: str) -> list[Key]:
        """Name the servers that were judged and are known by a word; those that end first stand first."""
        word = word.strip().casefold()
        found = [key for key, one in self.judged.items() if word in _about(key, one)]
        return sorted(found, key=lambda key: (self.judged[key].verdict.deadline or NEVER, key))

    def look(self, key: Key, *, announces: bool) -> Verdict:
        """Judge a server as it is known now, and remember it."""
        facts = self.facts(key, self.observer.view.servers[key], self._pod(key))
        limits = self._limits(facts)
        verdict, track = self._judge(facts, limits, announces=announces)
        self.memory.tracks[key] = track
        self.judged[key] = Judged(facts=facts, verdict=verdict, limits=limits, due=verdict)
        return verdict

    def hold_back(self, key: Key, reason: Reason) -> None:
        """Note why a stop that is due does not happen; once it may, it begins with a save of its own."""
        judged, track = self.judged[key], self.memory.tracks[key]
        self.judged[key] = replace(judged, verdict=hold(judged.due, reason))
        if track.saving is not None and track.saving.done is None:
            self.memory.tracks[key] = replace(track, saving=None)

    def look_again(self, key: Key, hub: HubFacts, pod: PodFacts | None) -> Verdict:
        """Judge a server by what was read anew, and remember nothing of it."""
        facts = self.facts(key, hub, pod if self.observer.sees_pods else PodFacts())
        return self._judge(facts, self._limits(facts), announces=False)[0]

    def _judge(self, facts: Facts, limits: Limits, *, announces: bool) -> tuple[Verdict, Track]:
        pace = Pace(every=self.every, acts=self.acts, announces=announces)
        track = self.memory.tracks.get(facts.key)
        return judge(facts, track, limits, self.policy.thresholds, pace=pace, now=facts.at)

    def facts(self, key: Key, hub: HubFacts, pod: PodFacts | None) -> Facts:
        """Bring together what is known about one server now."""
        metrics = self.observer.view.metrics
        place = (pod.namespace, pod.name) if pod else ("", "")
        return Facts(
            user=key[0],
            server=key[1],
            at=self.clock(),
            hub=hub,
            pod=pod,
            agent=self.inbox.facts(key, since=hub.started),
            gpu=metrics.gpus.get(place) if metrics and metrics.gpus is not None else None,
            cpu=metrics.cpus.get(place) if metrics and metrics.cpus is not None else None,
        )

    def _pod(self, key: Key) -> PodFacts | None:
        if not self.observer.sees_pods:
            return PodFacts()
        return (self.observer.view.pods or {}).get(key)

    def _limits(self, facts: Facts) -> Limits:
        return self.policy.limits(facts.pod, self.catalog, facts.at)

    def forget(self) -> None:
        """Drop what belongs to servers that do not run any more."""
        servers = self.observer.view.servers
        for key in [key for key in self.memory.tracks if key not in servers]:
            del self.memory.tracks[key]
        for key in [key for key in self.judged if key not in servers]:
            del self.judged[key]
        self.inbox.keep_only(servers)
