"""What an autoscaler says when it adds no node, in words.

Sources: cluster-autoscaler 1.32 to 1.36 (`NotTriggerScaleUp` lists, for each node group, the first thing that
speaks against it; `FailedScaleUp` quotes the cloud), error codes of the large clouds.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from typing import Final

from ..quota.words import too_little

_INSUFFICIENT: Final = re.compile(r"\d+ Insufficient (?P<resource>[^\s,]+?)[.,]?(?=\s|$)")
_WHY: Final = (
    (r"max node group size reached", "there are as many nodes as there may be"),
    (r"max cluster .*limit reached", "the cluster is as large as it may be"),
    (
        r"stockout|exhausted|OutOfResource|OutOfCapacity|InsufficientInstanceCapacity|AllocationFailed",
        "the cloud has no such machine left",
    ),
    (r"quota ?exceeded|limit ?exceeded|exceeded quota", "the cloud's own limit is reached"),
    (r"in backoff after failed scale-up", "the last try failed"),
)
_PATTERNS: Final = tuple((re.compile(pattern, re.IGNORECASE), text) for pattern, text in _WHY)


def in_words(message: str) -> str:
    """Say why no node is added; empty where nothing is known that people can use.

    That other groups of nodes are for other pods is not told: it is true of nearly every message.
    """
    why = [text for pattern, text in _PATTERNS if pattern.search(message)]
    short = too_little(match["resource"] for match in _INSUFFICIENT.finditer(message))
    return "; ".join([*why, *([f"{short} on a new one"] if short else [])])
