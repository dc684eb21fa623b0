"""Nodes: what they really offer, whether they take workspaces, and the traps of GPU nodes.

What can be given out stands in `status.allocatable`, never in labels: when the device plugin stops, the
labels stay and allocatable goes to zero.

Sources: NVIDIA GPU feature discovery and device plugin v0.18 to v0.20 (labels, mixed and single strategy),
MIG manager (`nvidia.com/mig.config.state`), Kubernetes taints and tolerations.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any, Final

from ..catalog.model import Toleration
from ..errors import Finding, Severity
from ..gpu.resources import MIG_PREFIX, NVIDIA_GPU, is_accelerator
from ..quota.arithmetic import NOTHING, Resources
from .pods import Condition, read_conditions
from .times import read_time

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_COUNT: Final = "nvidia.com/gpu.count"
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_PRODUCT: Final = "nvidia.com/gpu.product"
_SHARING: Final = "nvidia.com/gpu.sharing-strategy"
_MIG_STATE: Final = "nvidia.com/mig.config.state"
_MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
_PAUSED: Final = "paused-for-mig-change"
_MIG_SETTLED: Final = ("", "success")
MIG_PATIENCE: Final = timedelta(minutes=15)
"""A change of the MIG layout that lasts longer is stuck."""
_IMAGES_LISTED: Final = 50
"""Kubelets list at most so many images (`nodeStatusMaxImages`), the largest first."""
_PRESSURES: Final = ("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node at one moment."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    """Those that keep pods away (`NoSchedule`, `NoExecute`)."""
    cordoned: bool
    ready: bool | None
    """None while the kubelet has not said anything."""
    allocatable: Resources
    usable: Resources
    """What workspaces can really get of `allocatable`."""
    withheld: Resources = NOTHING
    """GPUs, slices and shares that are there and not given out, as those with a fault."""
    created: datetime | None
    ready_since: datetime | None
    pressures: tuple[str, ...]
    kubelet: str = ""
    images: frozenset[str] = frozenset()
    """References that the kubelet lists as present."""
    images_complete: bool = True
    """False where the list may be cut: an image that is missing may be there."""

    @property
    def zone(self) -> str:
        return self.labels.get(ZONE_LABEL, "")

    @property
    def takes_pods(self) -> bool:
        """Whether the scheduler may place anything here at all."""
        return self.ready is True and not self.cordoned

    @property
    def mig_changing(self) -> bool:
        """Whether the MIG manager is at work: devices come and go until it is done."""
        return self.labels.get(_MIG_STATE, "") not in _MIG_SETTLED


def read_node(node: Mapping[str, Any]) -> Node:
    """Reduce a Node in API spelling."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    conditions = read_conditions(status)
    ready = next((one for one in conditions if one.type == "Ready"), None)
    images = status.get("images") or ()
    seen = Node(
        name=metadata["name"],
        labels=dict(metadata.get("labels") or {}),
        taints=tuple(t for t in spec.get("taints") or () if t.get("effect") != "PreferNoSchedule"),
        cordoned=bool(spec.get("unschedulable")),
        ready=None if ready is None else ready.status,
        allocatable=Resources.read(status.get("allocatable")),
        usable=NOTHING,
        withheld=_withheld(status),
        created=read_time(metadata.get("creationTimestamp")),
        ready_since=ready.since if ready and ready.status else None,
        pressures=_pressures(conditions),
        kubelet=(status.get("nodeInfo") or {}).get("kubeletVersion") or "",
        images=frozenset(name for image in images for name in image.get("names") or ()),
        images_complete=len(images) < _IMAGES_LISTED,
    )
    return replace(seen, usable=_usable(seen))


def _withheld(status: Mapping[str, Any]) -> Resources:
    there, given = Resources.read(status.get("capacity")), Resources.read(status.get("allocatable"))
    return Resources({name: there[name] - given[name] for name in there if is_accelerator(name)})


def _pressures(conditions: Iterable[Condition]) -> tuple[str, ...]:
    return tuple(one.type for one in conditions if one.type in _PRESSURES and one.status)


def selects(node: Node, selector: Mapping[str, str]) -> bool:
    """Say whether the node carries all labels of a selector."""
    return all(node.labels.get(key) == value for key, value in selector.items())


def untolerated(
    node: Node, tolerations: Iterable[Toleration], asked: Resources
) -> tuple[Mapping[str, str], ...]:
    """List the taints that keep a workspace away.

    A taint whose key is an extended resource that the pod asks for is tolerated by itself where the admission
    plugin `ExtendedResourceToleration` is on, as managed GPU pools have it.
    """
    accepted = tuple(tolerations)
    return tuple(
        taint
        for taint in node.taints
        if taint.get("key") not in asked and not any(_tolerates(one, taint) for one in accepted)
    )


def _tolerates(toleration: Toleration, taint: Mapping[str, str]) -> bool:
    if toleration.effect is not None and toleration.effect != taint.get("effect"):
        return False
    if toleration.key is None:
        return toleration.operator == "Exists"
    if toleration.key != taint.get("key"):
        return False
    return toleration.operator == "Exists" or (toleration.value or "") == (taint.get("value") or "")


_SLICE: Final = re.compile(re.escape(MIG_PREFIX) + r"(?P<compute>[1-7])g\.")


def _sliced_cards(offered: Resources) -> int:
    """Give the least number of cards that the slices of a node can come from."""
    sevenths = 0
    for name, number in offered.items():
        if match := _SLICE.match(name):
            sevenths += int(match["compute"]) * int(number)
    return ceil(Fraction(sevenths, 7))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _usable(node: Node) -> Resources:
    """Give what workspaces can really get of a node.

    Whole cards that the plugin still announces although all of them are cut into slices are not there: a pod
    would be placed and find no device. While the layout changes, no device is promised.
    """
    offered = node.allocatable
    stale = stale_whole_cards(node)
    if not stale and not node.mig_changing:
        return offered
    kept = {
        name: number for name, number in offered.items() if not (node.mig_changing and is_accelerator(name))
    }
    if stale and NVIDIA_GPU in kept:
        kept[NVIDIA_GPU] = offered[NVIDIA_GPU] - stale
    return Resources(kept)


def stale_whole_cards(node: Node) -> int:
    """Count whole cards that are announced beside the slices that they were cut into."""
    cards = _number(node.labels.get(_COUNT))
    shared = node.labels.get(_SHARING, "none") not in {"", "none"}
    if node.labels.get(_MIG_STRATEGY) != "mixed" or shared or cards is None:
        return 0
    whole = max(0, cards - _sliced_cards(node.allocatable))
    return max(0, int(node.allocatable[NVIDIA_GPU]) - whole) if _sliced_cards(node.allocatable) else 0


def findings(
    nodes: Iterable[Node], *, now: datetime, changing_since: Mapping[str, datetime] | None = None
) -> tuple[Finding, ...]:
    """Say what is wrong with GPU nodes.

    `changing_since` tells since when a node's MIG layout has been seen to change; nodes do not say it.
    """
    since = changing_since or {}
    return tuple(found for node in nodes for found in _judge(node, now, since.get(node.name)))


def _judge(node: Node, now: datetime, changing_since: datetime | None) -> Iterable[Finding]:
    product, count = node.labels.get(_PRODUCT, ""), _number(node.labels.get(_COUNT))
    accelerators = [name for name in node.allocatable if is_accelerator(name)]
    if product.endswith("-MIG-INVALID"):
        yield _finding(
            node,
            Severity.ERROR,
            "mig-single-mixed-sizes",
            "its cards are cut into different sizes, which the strategy `single` cannot offer",
            "Use the strategy `mixed`, or cut every card alike.",
        )
    elif node.mig_changing:
        if changing_since is not None and now - changing_since >= MIG_PATIENCE:
            paused = sorted(key for key, value in node.labels.items() if value == _PAUSED)
            yield _finding(
                node,
                Severity.ERROR,
                "mig-change-stuck",
                f"its MIG layout has been changing since {changing_since:%H:%M} UTC "
                f"(state {node.labels[_MIG_STATE]}); paused: {', '.join(paused) or 'nothing'}",
                "Set the paused labels to true, then set nvidia.com/mig.config to another value and back.",
            )
    elif not accelerators and (count or (product and count is None)):
        yield _finding(
            node,
            Severity.ERROR,
            "gpu-node-without-resource",
            f"its labels speak of GPUs ({product or count}), but it offers none",
            "The device plugin does not run there; restart it.",
        )
    elif stale := stale_whole_cards(node):
        yield _finding(
            node,
            Severity.WARNING,
            "gpu-count-stale",
            f"it announces {stale} whole {'card' if stale == 1 else 'cards'} that are cut into slices",
            "Restart the device plugin on the node.",
        )
    elif count is not None and not any(name.startswith(MIG_PREFIX) for name in accelerators):
        yield from _check_count(node, count)


def _check_count(node: Node, count: int) -> Iterable[Finding]:
    replicas = _number(node.labels.get(_REPLICAS)) or 1
    offered = sum(int(number) for name, number in node.allocatable.items() if is_accelerator(name))
    single = node.labels.get(_MIG_STRATEGY) == "single"
    if offered and not single and offered > count * replicas:
        yield _finding(
            node,
            Severity.WARNING,
            "gpu-count-mismatch",
            f"it offers {offered} GPUs, while its labels speak of {count * replicas}",
            "The labels are out of date; restart GPU feature discovery. What is offered counts.",
        )


def _finding(node: Node, severity: Severity, code: str, message: str, remedy: str) -> Finding:
    return Finding(
        severity=severity,
        code=code,
        message=f"node {node.name}: {message}",
        path=f"nodes/{node.name}",
        help=remedy,
    )
