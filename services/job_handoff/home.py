"""Whether a run may mount the user's home volume.

ReadWriteOnce is one *node*, ReadWriteOncePod one pod, and `readOnly` on the mount changes neither: a run on
another node would hang in its creation with its GPUs already counted, or keep the user's next start from its
home. A disk of one zone goes to no node of another.

Source: Kubernetes access modes, `nodeAffinity` of a PersistentVolume; Multi-Attach of the attach-detach
controller.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hub_ext.cluster.zones import are_apart, warning, zones_text

from .texts import of_run

_SHARED: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_ONE_POD: Final = "ReadWriteOncePod"
_SNAPSHOT: Final = "Send a snapshot of the folder instead"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFacts:
    """What the cluster says about the claim of a home; what may not be seen is left out."""

    found: bool | None = None
    """None where that is not known."""
    is_lost: bool = False
    """Whether its volume is gone."""
    modes: tuple[str, ...] = ()
    """Access modes of the claim; empty where they are not known."""
    zones: frozenset[str] = frozenset()
    """Where its volume can be attached; empty for anywhere."""
    node_zones: frozenset[str] = frozenset()
    """Of the nodes of the profile; empty where they are not known."""
    scales: bool = False
    """Whether nodes are added for the profile."""
    in_use: bool = False
    """Whether another run has it, or will when it starts."""

    def mode(self, declared: str) -> str:
        """Give the access mode that holds: the claim's own, and only else what the catalog says of it."""
        shared = next((mode for mode in self.modes if mode in _SHARED), None)
        return shared or next(iter(self.modes), declared)


UNSEEN: Final = HomeFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeVerdict:
    """Whether the home may be mounted."""

    mount: bool
    text: str = ""
    """Why not, and what to do; where it may, what its user should know."""


def is_shared(mode: str) -> bool:
    """Say whether a volume can be on several nodes at a time."""
    return mode in _SHARED


def judge_home(
    access_mode: str,
    *,
    running: bool | None,
    reachable: bool = True,
    pods: int = 1,
    facts: HomeFacts = UNSEEN,
) -> HomeVerdict:
    """Judge a mount.

    Parameters
    ----------
    access_mode
        As the catalog says.
    running
        Whether a server of the user has the volume; None if that is not known.
    reachable
        Whether the claim exists in the namespace of the runs: a claim belongs to one namespace.
    pods
        Of the run.
    """
    why = _out_of_reach(facts, reachable=reachable)
    if not why and not is_shared(mode := facts.mode(access_mode)):
        whom = "by one pod" if mode == _ONE_POD else "on one node"
        why = _taken(whom, running=running, pods=pods, in_use=facts.in_use)
    if why:
        return HomeVerdict(mount=False, text=why)
    return HomeVerdict(mount=True, text=of_run(warning(facts.zones, facts.node_zones, scales=facts.scales)))


def _out_of_reach(facts: HomeFacts, *, reachable: bool) -> str:
    """Say why no run of this profile could ever have it; empty where one could."""
    if not reachable or facts.found is False:
        return f"Your home does not exist where runs are. {_SNAPSHOT}."
    if facts.is_lost:
        return f"The volume of your home is gone. Please tell an administrator. {_SNAPSHOT}."
    if are_apart(facts.zones, facts.node_zones) and not facts.scales:
        where = of_run(zones_text(facts.zones, facts.node_zones))
        return f"{where}, so it could never start. {_SNAPSHOT}, or choose another profile."
    return ""


def _taken(whom: str, *, running: bool | None, pods: int, in_use: bool) -> str:
    """Say why a volume that only one has at a time is not free; empty where it is."""
    once = f"Your home can be used {whom} at a time"
    if pods > 1:
        return f"{once}, and this run has {pods} pods. {_SNAPSHOT}."
    if running is None:
        return f"It is not known whether your home is in use at the moment. {_SNAPSHOT}."
    if running:
        return f"{once}, and your server has it. {_SNAPSHOT}, or stop the server first."
    if in_use:
        return f"{once}, and another run has it or waits for it. {_SNAPSHOT}, or wait until that has ended."
    return ""
