"""What an autoscaler says when it adds no node, in words.

Groups of nodes, taints and resources are named as admins called them. So a list is read item by item, each
from its beginning, and of a cloud's error only its codes, which are spelled as no name is.

Sources: cluster-autoscaler 1.32 to 1.36: `skippedreasons.go` (`NotTriggerScaleUp` lists, for each node group,
the first thing that speaks against it), `clusterstate.go` (``Failed adding N nodes to group NAME due to
CLASS.CODE; source errors: …``); GKE's own sentence on pods; error codes of the large clouds.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from typing import Final

from ..quota.words import too_little

_ITEM: Final = re.compile(r"(?:^|: |, )\d+ (?=[A-Za-z])")
_INSUFFICIENT: Final = re.compile(r"Insufficient (?P<resource>\S+?)[.,]?$")
_SKIPPED: Final = (
    (re.compile(r"max node group size reached\b"), "there are as many nodes as there may be"),
    (re.compile(r"max cluster .*limit reached\b"), "the cluster is as large as it may be"),
    (re.compile(r"in backoff after failed scale-up\b"), "the last try failed"),
)
_LIST: Final = re.compile(r"(?:\(combined from similar events\): )?[Pp]od didn't trigger scale-up\b")
_GROUP: Final = re.compile(r"\bgroup \S+")
_CODES: Final = (
    (
        re.compile(r"QUOTA_EXCEEDED|(?:Quota|Limit)Exceeded|\bquota exceeded\b|exceeding quota"),
        "the cloud's own limit is reached",
    ),
    (
        re.compile(
            r"STOCKOUT|RESOURCE_POOL_EXHAUSTED|OutOfCapacity|InsufficientInstanceCapacity|AllocationFailed|"
            r"\bOutOfResource|\bout of resources\b"
        ),
        "the cloud has no such machine left",
    ),
)
"""A code of a limit first: cluster-autoscaler counts limits among what is out of resources."""


def in_words(message: str) -> str:
    """Say why no node is added; empty where nothing is known that people can use.

    That other groups of nodes are for other pods is not told: it is true of nearly every message.
    """
    items = _ITEM.split(message)
    why = [text for pattern, text in _SKIPPED if any(pattern.match(item) for item in items)]
    short = too_little(match["resource"] for item in items if (match := _INSUFFICIENT.match(item)))
    why += [f"{short} on a new one"] if short else []
    return "; ".join(why) if why or _LIST.match(message) else _of_cloud(_GROUP.sub("", message))


def _of_cloud(message: str) -> str:
    return next((text for pattern, text in _CODES if pattern.search(message)), "")
