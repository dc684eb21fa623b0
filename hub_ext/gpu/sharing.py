"""How a GPU is given out, and what that means for the person who gets it.

Sources: NVIDIA device plugin README v0.18 to v0.20 (sharing), NVIDIA MIG user guide, NVIDIA MPS guide.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Sharing(StrEnum):
    """How a card is given out."""

    EXCLUSIVE = "exclusive"
    MIG = "mig"
    TIME_SLICING = "time-slicing"
    MPS = "mps"

    @property
    def is_share(self) -> bool:
        """Whether several users are on one card without walls between them."""
        return self in {Sharing.TIME_SLICING, Sharing.MPS}


class Strategy(StrEnum):
    """How the device plugin names MIG slices."""

    SINGLE = "single"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """What a user may rely on. The texts are shown as they are, wherever the GPU is mentioned."""

    title: str
    text: str
    own_memory: bool
    """Nobody else can use up the memory."""
    own_faults: bool
    """A crash of somebody else's program does not reach this one."""
    own_time: bool
    """The speed does not depend on what others do."""


@lru_cache(maxsize=256)
def semantics(sharing: Sharing, *, count: int = 1, slice_name: str = "", replicas: int = 1) -> Semantics:
    """Say in plain words what `count` cards, slices or shares mean."""
    match sharing:
        case Sharing.EXCLUSIVE:
            cards = "One full card" if count == 1 else f"{count} full cards"
            return Semantics(
                title=cards,
                text=f"{cards}, yours alone: nobody else uses its memory or its time."
                if count == 1
                else f"{cards}, yours alone: nobody else uses their memory or their time.",
                own_memory=True,
                own_faults=True,
                own_time=True,
            )
        case Sharing.MIG:
            title = f"One {slice_name} slice" if count == 1 else f"{count} slices of {slice_name}"
            more = "" if count == 1 else " Slices are separate devices: one program uses one of them."
            return Semantics(
                title=f"{title} of a card",
                text="A slice of a card with its own memory and its own processors: what others do on the "
                f"same card neither slows it down nor crashes it.{more}",
                own_memory=True,
                own_faults=True,
                own_time=True,
            )
        case Sharing.TIME_SLICING:
            return Semantics(
                title=f"A share of a card (up to {replicas} users)",
                text=f"You take turns with up to {replicas - 1} others on one card. Memory is not kept "
                "apart: somebody else can use it up, and one crash can end everybody's work on the card. "
                "Two shares would not be twice the GPU.",
                own_memory=False,
                own_faults=False,
                own_time=False,
            )
        case Sharing.MPS:
            return Semantics(
                title=f"One of {replicas} equal parts of a card",
                text=f"You run side by side with up to {replicas - 1} others on one card. Each may use one "
                f"part in {replicas} of its memory and processors, but faults are not kept apart: one crash "
                "can end everybody's work on the card. Two parts would not be twice the GPU.",
                own_memory=False,
                own_faults=False,
                own_time=False,
            )
