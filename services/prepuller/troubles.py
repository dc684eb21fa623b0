"""What failed, and until when it is left alone.

A failure is put down to something: to the image, its registry, its node. Whatever that is, is left alone for
a while, longer after each failure in a row. Then one pull tries, and only when it worked the others follow.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from .pods import PullPod, Step
from .reasons import BLAMES, Blame, Reason
from .settings import Limits
from .wants import Want

Key = tuple[Blame, str]
REMEMBERED: Final = timedelta(days=1)
"""How long a failure counts that is not tried again, because its node or image is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Failures in a row of one thing; the last one stands for all."""

    reason: Reason
    detail: str
    """What Kubernetes said."""
    at: datetime
    node: str
    want: str
    count: int = 1

    def retry_at(self, limits: Limits) -> datetime:
        """Say when it is tried again."""
        steps = min(self.count - 1, 20)
        wait: timedelta = min(limits.first_retry * 2**steps, limits.longest_retry)
        return self.at + wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """When something last worked."""

    by_key: Mapping[Key, datetime] = field(default_factory=dict)

    def since(self, key: Key, moment: datetime) -> bool:
        """Say whether it worked at `moment` or later."""
        last = self.by_key.get(key)
        return last is not None and last >= moment

    def ever(self, key: Key) -> bool:
        return key in self.by_key


def what_worked(pods: Iterable[PullPod], wants: Mapping[str, Want], arches: Mapping[str, str]) -> Worked:
    """Collect when images, registries and nodes last worked, from pods that are done."""
    last: dict[Key, datetime] = {}
    for pod in pods:
        if pod.step is not Step.DONE:
            continue
        for key in keys_of(pod.want, pod.node, wants.get(pod.want), arches.get(pod.node, "")):
            if key not in last or last[key] < pod.since_here:
                last[key] = pod.since_here
    return Worked(by_key=last)


def keys_of(want_id: str, node: str, want: Want | None, architecture: str) -> Iterator[Key]:
    """Name everything that a pull of an image to a node depends on."""
    yield Blame.ALL, ""
    yield Blame.IMAGE, want_id
    if want is not None:
        yield Blame.REGISTRY, want.registry
    yield Blame.PLATFORM, f"{want_id}/{architecture}"
    yield Blame.NODE, node
    yield Blame.PAIR, f"{want_id}/{node}"


class Troubles:
    """Failures, remembered while the service runs. After a restart one pull tries anew."""

    def __init__(self) -> None:
        self._found: dict[Key, Trouble] = {}
        self._pairs: dict[tuple[str, str], Trouble] = {}
        self._noted: dict[str, None] = {}

    def note(
        self, pod: PullPod, want: Want | None, *, worked: Worked, architecture: str, now: datetime
    ) -> Trouble | None:
        """Remember how a pod failed; None if that was noted before."""
        if pod.reason is None or pod.uid in self._noted:
            return None
        self._noted[pod.uid] = None
        keys = dict(keys_of(pod.want, pod.node, want, architecture))
        blame = self._blame(pod.reason, pod, keys, worked)
        found = Trouble(reason=pod.reason, detail=pod.detail, at=now, node=pod.node, want=pod.want)
        self._pairs[pod.want, pod.node] = found
        return self.add((blame, keys.get(blame, pod.want)), found, worked, begun=pod.created)

    def _blame(self, reason: Reason, pod: PullPod, keys: Mapping[Blame, str], worked: Worked) -> Blame:
        """Put a failure down to something, by what worked elsewhere in the meantime.

        What nowhere worked may be the image as well as the node: one try at a time is enough. What works for
        others is the node's own trouble: it must not keep a registry from all the rest. A registry that
        limits what is fetched does so for all.
        """
        blame = BLAMES[reason]
        if blame is Blame.PAIR and not worked.ever((Blame.IMAGE, pod.want)):
            return Blame.IMAGE
        if blame in {Blame.REGISTRY, Blame.ALL} and reason is not Reason.REGISTRY_BUSY:
            before = self._pairs.get((pod.want, pod.node))
            begun = min(pod.created, before.at) if before is not None else pod.created
            known = (Blame.PAIR, keys[Blame.PAIR]) in self._found
            if known or worked.since((blame, keys.get(blame, "")), begun):
                return Blame.PAIR
        return blame

    def add(self, key: Key, found: Trouble, worked: Worked, *, begun: datetime) -> Trouble:
        """Remember a failure of something, counting those in a row.

        Pulls that had begun before the last failure was known belong to the same incident.
        """
        before = self._found.get(key)
        count = 1
        if before is not None and not worked.since(key, before.at):
            count = before.count + (begun > before.at)
        self._found[key] = replace(found, count=count)
        return self._found[key]

    def forget(self, pods: Iterable[PullPod], worked: Worked, now: datetime) -> None:
        """Drop what is over: what has worked since or was never tried again, and the names of gone pods.

        A failure of the future is from before the clock was set back: it counts from now on.
        """
        self._found = {key: replace(one, at=min(one.at, now)) for key, one in self._found.items()}
        self._pairs = {key: replace(one, at=min(one.at, now)) for key, one in self._pairs.items()}
        there = {pod.uid for pod in pods}
        self._noted = {uid: None for uid in self._noted if uid in there}
        self._found = {
            key: one
            for key, one in self._found.items()
            if now - one.at < REMEMBERED and not worked.since(key, one.at)
        }
        self._pairs = {
            (want, node): one
            for (want, node), one in self._pairs.items()
            if now - one.at < REMEMBERED and not worked.since((Blame.PAIR, f"{want}/{node}"), one.at)
        }

    def of(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Trouble]]:
        """Give what stands in the way of something that depends on `keys`."""
        for key in keys:
            if (found := self._found.get(key)) is not None:
                yield key, found

    def at(self, want: str, node: str) -> Trouble | None:
        """Say how an image failed on a node when it was last tried there."""
        return self._pairs.get((want, node))

    def __iter__(self) -> Iterator[tuple[Key, Trouble]]:
        return iter(self._found.items())

    def __bool__(self) -> bool:
        return bool(self._found)
