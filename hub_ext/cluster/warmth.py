"""Whether a start finds its software on the node already, and how long starts of its kind usually take.

A node lists what it has in `status.images`. Kubelets list at most 50 images, the largest first, so what a
full list does not name may be there all the same: that is not known, and never called cold.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from ..names import ImageReference
from .capacity import Supply
from .nodes import Node
from .texts import span
from .waits import Usual

_HUB: Final = "docker.io"
_HUB_NAMES: Final = ("", _HUB, "index.docker.io")
"""How a reference may say that it means Docker Hub."""
_OFFICIAL: Final = "library"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """How many of the nodes that would take a workspace have its image."""

    warm: int = 0
    cold: int = 0
    unknown: int = 0
    """Whose list may be cut."""

    @property
    def certain(self) -> bool | None:
        """True if it starts warm wherever it is placed, False if cold; None if that depends or is unknown."""
        if self.unknown or bool(self.warm) is bool(self.cold):
            return None
        return bool(self.warm)

    def as_dict(self, usual: Usual) -> dict[str, Any]:
        """Give the fields as JSON, with what is usual in whole seconds."""
        times = {"usualWarm": usual.warm, "usualCold": usual.cold, "usualScaleUp": usual.scale_up}
        seconds = {f"{name}Seconds": time and round(time.total_seconds()) for name, time in times.items()}
        nodes = {"warmNodes": self.warm, "coldNodes": self.cold, "unknownNodes": self.unknown}
        return {"warm": self.certain, **nodes, **seconds}


NOT_SEEN: Final = Warmth()


def listed_name(image: ImageReference) -> str:
    """Write a reference as kubelets list it: with its registry, and by digest if it has one."""
    name = image.name
    if image.registry in _HUB_NAMES:
        name = image.repository if "/" in image.repository else f"{_OFFICIAL}/{image.repository}"
        name = f"{_HUB}/{name}"
    return f"{name}@{image.digest}" if image.digest else f"{name}:{image.tag or 'latest'}"


def warmth_of(image: ImageReference, nodes: Iterable[Node]) -> Warmth:
    """Count the nodes that have an image."""
    name = listed_name(image)
    warm = cold = unknown = 0
    for node in nodes:
        if name in node.images:
            warm += 1
        elif node.images_complete and node.images:
            cold += 1
        else:
            unknown += 1
    return Warmth(warm=warm, cold=cold, unknown=unknown)


def start_text(warmth: Warmth, usual: Usual, supply: Supply) -> str:
    """Say how a start will be: ``warm start, usually 20 s``; empty where nothing is known."""
    if supply is Supply.WILL_SCALE:
        return f"a new node usually takes {span(usual.scale_up)}" if usual.scale_up else ""
    if supply is not Supply.FREE:
        return ""
    if warmth.certain is True:
        return f"warm start{_comma(usual.warm)}"
    if warmth.certain is False:
        return f"cold start: its software is fetched first{_comma(usual.cold)}"
    if warmth.warm:
        nodes = warmth.warm + warmth.cold + warmth.unknown
        return f"warm start on {warmth.warm} of {nodes} nodes{_comma(usual.warm)}"
    return ""


def _comma(time: timedelta | None) -> str:
    return f", usually {span(time)}" if time else ""
