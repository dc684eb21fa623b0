"""What the prepuller says is warm, in place of what nodes list.

Nodes list what is there, and not who may use it: since Kubernetes 1.35 kubelets refuse an image that another
pull secret brought, or ask the registry again. The prepuller fetches with the workspaces' own secrets, so its
word is the better one, and while it does not answer nothing is known.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from ..errors import BadValueError
from ..names import ImageReference
from .nodes import Node
from .warmth import Warmth


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One image in one pool."""

    warm: frozenset[str]
    """Nodes on which workspaces find it."""
    cold: frozenset[str]
    """Nodes on which they do not; of all others nothing is known."""
    usual: timedelta | None = None
    """How long a pull of it takes as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepulled:
    """All that the prepuller said last."""

    known: Mapping[tuple[str, str], Known] = field(default_factory=dict)
    """By reference, as the catalog writes it, and pool."""

    def warmth(self, image: ImageReference, pool: str, nodes: Iterable[Node]) -> Warmth:
        """Count the nodes on which an image is warm."""
        told = self.known.get((str(image), pool), _NOTHING)
        names = [node.name for node in nodes]
        warm, cold = (sum(1 for name in names if name in part) for part in (told.warm, told.cold))
        return Warmth(warm=warm, cold=cold, unknown=len(names) - warm - cold)

    def usual(self, image: ImageReference, pool: str) -> timedelta | None:
        """Say how long a pull takes as a rule; None if that is not known."""
        return self.known.get((str(image), pool), _NOTHING).usual


_NOTHING: Final = Known(warm=frozenset(), cold=frozenset())
SILENT: Final = Prepulled()
"""While it does not answer."""


def read_prepulled(answer: Any) -> Prepulled:
    """Read what ``/api/warm`` of the prepuller answers.

    Raises
    ------
    BadValueError
        It is something else.
    """
    known: dict[tuple[str, str], Known] = {}
    try:
        for one in answer["images"]:
            key = (str(one["image"]), str(one["pool"]))
            seconds = one["usualSeconds"]
            told = Known(
                warm=frozenset(one["warmNodes"]),
                cold=frozenset(one["coldNodes"]),
                usual=None if seconds is None else timedelta(seconds=seconds),
            )
            known[key] = _both(known[key], told) if key in known else told
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise BadValueError(f"the prepuller's answer cannot be read: {error!r}") from error
    return Prepulled(known=known)


def _both(one: Known, other: Known) -> Known:
    """Join what is said for two sets of secrets: a reference alone does not tell which is meant."""
    return Known(warm=one.warm & other.warm, cold=one.cold | other.cold, usual=one.usual or other.usual)
