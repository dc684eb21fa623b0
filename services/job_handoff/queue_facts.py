"""A team's queue as the cluster shows it.

Source: kueue.x-k8s.io/v1beta2 ClusterQueue and ResourceFlavor, Kueue v0.19.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hub_ext.quota.arithmetic import Amount, read_amount
from hub_ext.quota.verdicts import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """One kind of nodes within a queue."""

    name: str
    labels: Mapping[str, str]
    """Of its nodes."""
    most: Mapping[str, Amount | None]
    """What the queue may use of it, borrowed included; None where nobody knows the bound."""
    nominal: Mapping[str, Amount]
    used: Mapping[str, Amount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A team's queue as the cluster shows it."""

    name: str
    flavors: tuple[Flavor, ...] = ()
    stopped: bool = False
    ready: bool = True
    """Whether Kueue takes it for usable."""
    problem: str = ""
    waiting: int | None = None
    """Runs that wait in it; None where that is not known."""

    @property
    def covered(self) -> frozenset[str]:
        """Resources that it counts."""
        return frozenset(name for flavor in self.flavors for name in flavor.nominal)


def read_queue(
    cluster_queue: Mapping[str, Any],
    flavors: Mapping[str, Mapping[str, Any]],
    *,
    waiting: int | None = None,
    local_stopped: bool = False,
) -> Queue:
    """Read a ClusterQueue with the ResourceFlavors that it names, in API spelling.

    Parameters
    ----------
    flavors
        By name; one that cannot be seen counts as taking any node.
    """
    spec, status = cluster_queue.get("spec") or {}, cluster_queue.get("status") or {}
    used = {
        one["name"]: {
            part["name"]: read_amount(part["name"], part.get("total", "0"))
            for part in one.get("resources") or ()
        }
        for one in status.get("flavorsReservation") or status.get("flavorsUsage") or ()
    }
    borrows = bool(spec.get("cohortName") or spec.get("cohort"))
    active: Mapping[str, Any] = next(
        (c for c in status.get("conditions") or () if c.get("type") == "Active"), {}
    )
    return Queue(
        name=cluster_queue["metadata"]["name"],
        flavors=tuple(
            _read_flavor(one, used.get(one["name"], {}), flavors.get(one["name"]), borrows=borrows)
            for group in spec.get("resourceGroups") or ()
            for one in group.get("flavors") or ()
        ),
        stopped=local_stopped or spec.get("stopPolicy", "None") != "None",
        ready=active.get("status", "True") == "True",
        problem=active.get("message", "") if active.get("status") == "False" else "",
        waiting=waiting,
    )


def _read_flavor(
    quota: Mapping[str, Any], used: Mapping[str, int], flavor: Mapping[str, Any] | None, *, borrows: bool
) -> Flavor:
    nominal: dict[str, Amount] = {}
    most: dict[str, Amount | None] = {}
    for one in quota.get("resources") or ():
        name = one["name"]
        nominal[name] = read_amount(name, one.get("nominalQuota", "0"))
        limit = one.get("borrowingLimit")
        if not borrows:
            most[name] = nominal[name]
        else:
            most[name] = None if limit is None else nominal[name] + read_amount(name, limit)
    labels = ((flavor or {}).get("spec") or {}).get("nodeLabels") or {}
    return Flavor(name=quota["name"], labels=labels, most=most, nominal=nominal, used=dict(used))


def as_json(queue: Queue) -> dict[str, Any]:
    """Give what users may see of a queue: what it holds, what is used, how many wait."""
    return {
        "name": queue.name,
        "waiting": queue.waiting,
        "flavors": [
            {
                "name": flavor.name,
                "resources": {
                    name: {"nominal": plain(amount), "used": plain(flavor.used.get(name, 0))}
                    for name, amount in flavor.nominal.items()
                },
            }
            for flavor in queue.flavors
        ],
    }
