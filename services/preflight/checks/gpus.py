"""How GPUs are given out: what the device plugin does against what users are told.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from hub_ext.catalog.pools import MpsGpu, TimeSlicedGpu
from hub_ext.cluster.nodes import findings
from hub_ext.errors import Severity
from hub_ext.gpu.products import split_product
from hub_ext.gpu.sharing import Sharing

from ..problems import Check, Problem
from ..scene import Object, Scene

_TOOLKIT_FLOOR: Final = (1, 17, 8)
"""NVIDIA container toolkit without CVE-2025-23266."""
ENVVAR: Final = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def nodes_offer(scene: Scene) -> Iterator[Problem]:
    """Say what is wrong with GPU nodes themselves; the hub's own watch says the same."""
    for found in findings(scene.nodes, now=_LONG_AGO):
        yield Problem(message=found.message, help=found.help, path=found.path, severity=found.severity)
    for node in scene.nodes:
        vendor = any(label.startswith("feature.node.kubernetes.io/pci-") for label in node.labels)
        nvidia = any("pci-" in label and "10de" in label for label in node.labels)
        if vendor and nvidia and not any(name.startswith("nvidia.com/") for name in node.allocatable):
            yield Problem(
                message=f"node {node.name} has an NVIDIA card and offers none",
                evidence=next(label for label in node.labels if "10de" in label),
                help="The driver or the device plugin is missing there; see the pods of the GPU Operator.",
                path=f"nodes/{node.name}",
            )


def mig_settled(scene: Scene) -> Iterator[Problem]:
    for node in scene.nodes:
        state = node.labels.get("nvidia.com/mig.config.state", "")
        if state not in {"", "success"}:
            yield Problem(
                message=f"the MIG layout of node {node.name} is not settled",
                evidence=f"nvidia.com/mig.config.state={state}, "
                f"nvidia.com/mig.config={node.labels.get('nvidia.com/mig.config', '')}",
                help="Wait for it; if it failed, read the log of the MIG manager. Changing it ends what uses "
                "the GPUs.",
                path=f"nodes/{node.name}",
                severity=Severity.ERROR if state == "failed" else Severity.WARNING,
            )


def sharing_as_told(scene: Scene) -> Iterator[Problem]:
    """Users are told what they share; nodes have to do it that way."""
    for name, pool in scene.pools.items():
        gpu = pool.gpu
        if gpu is None or gpu.via == "dra":
            continue
        shares = gpu.sharing.value if isinstance(gpu, TimeSlicedGpu | MpsGpu) else "none"
        for node in scene.nodes_of(pool):
            labels = node.labels
            really = labels.get("nvidia.com/gpu.sharing-strategy")
            if really is not None and really != shares:
                yield Problem(
                    message=f"pool {name} is told to users as {gpu.sharing.value}; "
                    f"node {node.name} does {'not share' if really == 'none' else really}",
                    evidence=f"nvidia.com/gpu.sharing-strategy={really}",
                    help="Correct pools.<name>.gpu, or the device plugin's configuration of the node.",
                    path=f"pools.{name}.gpu.sharing",
                )
            strategy = labels.get("nvidia.com/mig.strategy", "none")
            if gpu.sharing is Sharing.MIG and strategy not in {gpu.strategy.value, "none"}:
                yield Problem(
                    message=f"pool {name} counts on the MIG strategy {gpu.strategy.value}; node {node.name} "
                    "has another",
                    evidence=f"nvidia.com/mig.strategy={strategy}",
                    help="Resource names differ between the strategies: make both the same.",
                    path=f"pools.{name}.gpu.strategy",
                )
            yield from _replicas(name, gpu, node.name, labels)


def _replicas(pool: str, gpu: Any, node: str, labels: Mapping[str, str]) -> Iterator[Problem]:
    told = gpu.replicas if isinstance(gpu, TimeSlicedGpu | MpsGpu) else None
    really = labels.get("nvidia.com/gpu.replicas")
    if told is not None and really is not None and really != str(told):
        yield Problem(
            message=f"pool {pool} tells users that {told} share a card; on node {node} it is {really}",
            evidence=f"nvidia.com/gpu.replicas={really}",
            help="Prices and quotas count with replicas: make both the same.",
            path=f"pools.{pool}.gpu.replicas",
            severity=Severity.WARNING,
        )


def products(scene: Scene) -> Iterator[Problem]:
    for name, pool in scene.pools.items():
        promised = pool.gpu.product if pool.gpu else None
        for node in scene.nodes_of(pool) if promised else ():
            label = node.labels.get("nvidia.com/gpu.product", "")
            really, _ = split_product(label)
            if really and really != promised:
                yield Problem(
                    message=f"pool {name} promises {promised}; node {node.name} has another card",
                    evidence=f"nvidia.com/gpu.product={label}",
                    help="Give each card a pool of its own, or correct pools.<name>.gpu.product.",
                    path=f"pools.{name}.gpu.product",
                    severity=Severity.WARNING,
                )


def single_shares(scene: Scene) -> Iterator[Problem]:
    """Two shares of a card are not twice the card: the plugin has to refuse them."""
    for config, key, sharing in _plugin_configurations(scene):
        for method in ("timeSlicing", "mps"):
            about = sharing.get(method)
            if isinstance(about, Mapping) and not about.get("failRequestsGreaterThanOne"):
                where = f"{config['metadata'].get('namespace', '')}/{config['metadata']['name']}"
                yield Problem(
                    message="the device plugin gives one pod several shares of a card, which are not more of "
                    "it",
                    evidence=f"ConfigMap {where}, {key}: sharing.{method} without failRequestsGreaterThanOne",
                    help="Set failRequestsGreaterThanOne: true.",
                    path=f"configmaps/{where}",
                    severity=Severity.WARNING,
                )


def _plugin_configurations(scene: Scene) -> Iterator[tuple[Object, str, Mapping[str, Any]]]:
    for config in scene.objects.of("ConfigMap"):
        for key, text in (config.get("data") or {}).items():
            if (sharing := sharing_of(text)) is not None:
                yield config, key, sharing


def sharing_of(text: Any) -> Mapping[str, Any] | None:
    """Give how cards are shared if a text is a configuration of the device plugin, else None."""
    if "sharing" not in str(text) or "resources" not in str(text):
        return None
    try:
        read = yaml.safe_load(str(text))
    except yaml.YAMLError:
        return None  # some other text that has these words
    sharing = read.get("sharing") if isinstance(read, Mapping) else None
    return sharing if isinstance(sharing, Mapping) else None


def plugin_or_driver(scene: Scene) -> Iterator[Problem]:
    """A card that both the device plugin and the DRA driver give out is given out twice."""
    claimed = {
        slice_["spec"].get("nodeName")
        for slice_ in scene.objects.of("ResourceSlice")
        if slice_["spec"].get("driver") == "gpu.nvidia.com"
    }
    for node in scene.nodes:
        if node.name in claimed and any(name.startswith("nvidia.com/") for name in node.allocatable):
            yield Problem(
                message=f"on node {node.name} both the device plugin and the DRA driver give out GPUs",
                evidence=f"ResourceSlice of gpu.nvidia.com, and {dict(_gpus(node.allocatable))} allocatable",
                help="Take one of them off the node: the same card would be promised twice.",
                path=f"nodes/{node.name}",
            )


def _gpus(resources: Any) -> Iterator[tuple[str, str]]:
    return ((name, str(number)) for name, number in resources.items() if name.startswith("nvidia.com/"))


def toolkit_version(scene: Scene) -> Iterator[Problem]:
    for daemon, image in _images(scene, "container-toolkit"):
        match = re.search(r":v?(\d+)\.(\d+)\.(\d+)", image)
        if match and tuple(map(int, match.groups())) < _TOOLKIT_FLOOR:
            yield Problem(
                message="NVIDIA's container toolkit lets a container take over its node (CVE-2025-23266)",
                evidence=f"DaemonSet {daemon}: {image}",
                help="Update to container toolkit 1.17.8, or GPU Operator 25.3.1, or newer.",
                path=f"daemonsets/{daemon}",
            )


def devices_by_variable(scene: Scene) -> Iterator[Problem]:
    """Without CDI, an image that sets a variable sees every card of its node, past all quotas."""
    for policy in scene.objects.of("ClusterPolicy"):
        spec = policy.get("spec") or {}
        cdi = (spec.get("cdi") or {}).get("enabled", True)
        variables = {one["name"]: one.get("value") for one in (spec.get("toolkit") or {}).get("env") or []}
        if not cdi and variables.get(ENVVAR) != "false":
            yield Problem(
                message="any image can take all GPUs of its node by the variable NVIDIA_VISIBLE_DEVICES",
                evidence=f"ClusterPolicy {policy['metadata']['name']}: cdi.enabled=false, toolkit.env has no "
                f"{ENVVAR}=false",
                help=f"Set cdi.enabled: true, or {ENVVAR}=false with the device list strategy volume-mounts.",
                path=f"clusterpolicies/{policy['metadata']['name']}",
                severity=Severity.WARNING,
            )


def _images(scene: Scene, part: str) -> Iterator[tuple[str, str]]:
    for daemon in scene.objects.of("DaemonSet"):
        containers = daemon["spec"]["template"]["spec"].get("containers") or []
        for container in containers:
            if part in container.get("image", ""):
                name = f"{daemon['metadata'].get('namespace', '')}/{daemon['metadata']['name']}"
                yield name, container["image"]


CHECKS = (
    Check(code="gpu-nodes", title="GPU nodes offer their GPUs", kinds=("Node",), run=nodes_offer),
    Check(code="mig-state", title="MIG layouts are settled", kinds=("Node",), run=mig_settled),
    Check(
        code="sharing",
        title="Cards are shared as users are told",
        kinds=("Node",),
        needs=("catalog", "pool_nodes"),
        run=sharing_as_told,
    ),
    Check(
        code="product",
        title="Cards are those that the catalog names",
        kinds=("Node",),
        needs=("catalog", "pool_nodes"),
        run=products,
    ),
    Check(
        code="single-shares",
        title="Nobody gets two shares of a card",
        kinds=("ConfigMap",),
        run=single_shares,
    ),
    Check(
        code="plugin-and-dra",
        title="Each card is given out by one driver",
        kinds=("Node", "ResourceSlice"),
        run=plugin_or_driver,
    ),
    Check(
        code="toolkit-version",
        title="The container toolkit has no known hole",
        kinds=("DaemonSet",),
        run=toolkit_version,
    ),
    Check(
        code="devices-by-variable",
        title="Images cannot take GPUs that nobody gave them",
        kinds=("ClusterPolicy",),
        run=devices_by_variable,
    ),
)
