"""Before a run is submitted: would it start now, wait, or never run in its team's queue.

An estimate: what the queue holds is read a moment before, and Kueue decides.

Source: kueue.x-k8s.io/v1beta2 ClusterQueue and ResourceFlavor, Kueue v0.19; every requested resource must be
covered by the queue, unless Kueue's configuration excludes its prefix.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from hub_ext.quota import texts as quota_texts
from hub_ext.quota.arithmetic import GPU_EQUIVALENTS, SERVERS, Amount, Resources
from hub_ext.quota.verdicts import Scope, Shortage
from hub_ext.quota.words import listed, named

from .queue_facts import Flavor, Queue
from .texts import of_run
from .verdicts import RefusalReason


class When(StrEnum):
    """When a run would start."""

    NOW = "now"
    WAIT = "wait"
    NEVER = "never"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What would become of a run. `text` is plain text: escape it in HTML."""

    when: When
    text: str
    reason: str = ""
    """A `RefusalReason` where it would never run."""
    help: str = ""
    ahead: int | None = None
    shortages: tuple[Shortage, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as JSON."""
        return {
            "when": self.when.value,
            "reason": self.reason,
            "text": self.text,
            "help": self.help,
            "ahead": self.ahead,
            "shortages": [shortage.as_dict() for shortage in self.shortages],
        }


_NOT_OF_KUBERNETES: Final = {SERVERS, GPU_EQUIVALENTS}


def uncovered(covered: Iterable[str], asked: Iterable[str], excluded: Sequence[str] = ()) -> tuple[str, ...]:
    """Name the resources that are asked for and that a queue does not count: Kueue admits nothing with them.

    Parameters
    ----------
    excluded
        `excludeResourcePrefixes` of Kueue's configuration.
    """
    known = set(covered) | _NOT_OF_KUBERNETES
    return tuple(
        name for name in asked if name not in known and not any(name.startswith(one) for one in excluded)
    )


def forecast(
    queue: Queue | None, asked: Resources, *, selector: Mapping[str, str], excluded: Sequence[str] = ()
) -> Forecast:
    """Say when a run would start.

    Parameters
    ----------
    queue
        None if the team has none.
    asked
        What all its pods take together.
    selector
        Labels that its nodes must have.
    """
    if queue is None:
        return _never(
            RefusalReason.QUEUE_MISSING,
            "Your team has no queue for runs.",
            "Please tell an administrator: `gpu-workspaces render kueue` makes the queues.",
        )
    if missing := uncovered(queue.covered, asked, excluded):
        names, words = ", ".join(missing), [*dict.fromkeys(map(named, missing))]
        return _never(
            RefusalReason.QUEUE_UNCOVERED,
            f"The queue {queue.name} does not count {listed(words)}, so Kueue would "
            "never let this run start.",
            f"An administrator can add {names} to coveredResources of the ClusterQueue, or to "
            "resources.excludeResourcePrefixes of Kueue's configuration.",
        )
    if queue.stopped or not queue.ready:
        return Forecast(
            when=When.WAIT,
            reason=RefusalReason.QUEUE_STOPPED,
            text="The queue of your team takes nothing at the moment; the run would wait.",
            help=queue.problem,
        )
    return _by_room(queue, asked, selector, excluded)


def _by_room(
    queue: Queue, asked: Resources, selector: Mapping[str, str], excluded: Sequence[str]
) -> Forecast:
    short_for_good: list[Shortage] = []
    short_now: list[Shortage] = []
    for name, amount in asked.items():
        if name in _NOT_OF_KUBERNETES or any(name.startswith(prefix) for prefix in excluded):
            continue
        fitting = [flavor for flavor in queue.flavors if name in flavor.nominal and _takes(flavor, selector)]
        if not fitting:
            return _never(
                RefusalReason.QUEUE_UNCOVERED,
                f"No kind of node in the queue {queue.name} has {named(name)} and this profile's labels.",
                "Please tell an administrator.",
            )
        if (short := _short(fitting, name, amount, ever=True)) is not None:
            short_for_good.append(short)
        elif (short := _short(fitting, name, amount, ever=False)) is not None:
            short_now.append(short)
    if short_for_good:
        return _never(
            RefusalReason.QUEUE_TOO_SMALL,
            of_run(quota_texts.over_limit(Scope.TEAM, short_for_good)),
            "",
            tuple(short_for_good),
        )
    return _now_or_later(queue, short_now)


def _now_or_later(queue: Queue, short: list[Shortage]) -> Forecast:
    if short:
        worst = short[0]
        used = (
            f"{plain_amount(worst.used, worst.resource)} of {quota_texts.amount(worst.resource, worst.limit)}"
        )
        text = f"It would wait in the queue: your team has {used} in use. {_ahead(queue.waiting)}".strip()
        return Forecast(when=When.WAIT, text=text, ahead=queue.waiting, shortages=tuple(short))
    if queue.waiting:
        text = f"It would wait its turn in the queue. {_ahead(queue.waiting)}"
        return Forecast(when=When.WAIT, text=text, ahead=queue.waiting)
    return Forecast(when=When.NOW, text="The queue has room for it now.", ahead=queue.waiting)


def plain_amount(value: Amount, resource: str) -> str:
    """Write the number of an amount without its unit."""
    return quota_texts.amount(resource, value).partition(" ")[0]


def _ahead(waiting: int | None) -> str:
    if waiting is None:
        return ""
    return (
        "Nobody waits before it."
        if waiting == 0
        else (f"{waiting} {'run waits' if waiting == 1 else 'runs wait'} before it.")
    )


def _takes(flavor: Flavor, selector: Mapping[str, str]) -> bool:
    """Say whether pods with this selector can be placed on nodes of a flavor, as far as both speak of it."""
    return all(flavor.labels.get(key, value) == value for key, value in selector.items())


def _short(flavors: Sequence[Flavor], name: str, amount: Amount, *, ever: bool) -> Shortage | None:
    """Give what is short in the flavor that has most of a resource; None if one of them has enough."""
    best: Shortage | None = None
    for flavor in flavors:
        most, used = flavor.most.get(name), flavor.used.get(name, 0)
        limit = most if most is not None else flavor.nominal[name]
        if (ever and (most is None or amount <= most)) or (not ever and used + amount <= limit):
            return None
        short = Shortage(resource=name, asked=amount, used=used, limit=limit)
        if best is None or short.left > best.left or (ever and short.limit > best.limit):
            best = short
    return best


def _never(reason: str, text: str, remedy: str, shortages: tuple[Shortage, ...] = ()) -> Forecast:
    return Forecast(when=When.NEVER, reason=str(reason), text=text, help=remedy, shortages=shortages)
