"""Whether a run may mount the user's home volume.

ReadWriteOnce is one *node*, ReadWriteOncePod one pod, and `readOnly` on the mount changes neither: a run on
another node would hang in its creation with its GPUs already counted, or keep the user's next start from its
home.

Source: Kubernetes access modes; Multi-Attach of the attach-detach controller.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SHARED: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_SNAPSHOT: Final = "Send a snapshot of the folder instead"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeVerdict:
    """Whether the home may be mounted."""

    mount: bool
    text: str = ""
    """Why not, and what to do; empty where it may."""


def judge_home(access_mode: str, *, running: bool | None, reachable: bool = True) -> HomeVerdict:
    """Judge a mount.

    Parameters
    ----------
    running
        Whether a server of the user has the volume; None if that is not known.
    reachable
        Whether the claim exists in the namespace of the runs: a claim belongs to one namespace.
    """
    if not reachable:
        return HomeVerdict(mount=False, text=f"Your home does not exist where runs are. {_SNAPSHOT}.")
    if access_mode in _SHARED:
        return HomeVerdict(mount=True)
    if running is None:
        return HomeVerdict(
            mount=False, text=f"It is not known whether your home is in use at the moment. {_SNAPSHOT}."
        )
    if running:
        whom = "one pod" if access_mode == "ReadWriteOncePod" else "one node"
        return HomeVerdict(
            mount=False,
            text=f"Your home can be used on {whom} at a time, and your server has it. {_SNAPSHOT}, or stop "
            "the server first.",
        )
    return HomeVerdict(mount=True)
