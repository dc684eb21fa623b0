"""What the idle-culler and reports measure with.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hub_ext.errors import Severity

from ..problems import Check, Problem
from ..scene import Scene

BUSY: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""The one field that tells use on whole cards and on slices alike."""
WANTED: Final = {
    BUSY: "use of whole cards and of MIG slices",
    "DCGM_FI_DEV_GPU_UTIL": "use of whole cards, for a second opinion",
    "DCGM_FI_PROF_DRAM_ACTIVE": "use of memory, for work that computes little",
    "DCGM_FI_DEV_FB_USED": "GPU memory in use, for reports",
}


def exporter_runs(scene: Scene) -> Iterator[Problem]:
    """Where there are NVIDIA GPUs, something measures them."""
    gpus = [node.name for node in scene.nodes if any(n.startswith("nvidia.com/") for n in node.allocatable)]
    if not gpus or any("dcgm-exporter" in image for image in _images(scene)):
        return
    yield Problem(
        message="nothing measures the use of GPUs: no DaemonSet runs dcgm-exporter",
        evidence=f"{len(gpus)} nodes with NVIDIA GPUs, such as {gpus[0]}",
        help="Enable dcgmExporter in the GPU Operator. Until then the culler judges by what servers report.",
        severity=Severity.WARNING,
    )


def _images(scene: Scene) -> Iterator[str]:
    for daemon in scene.objects.of("DaemonSet"):
        for container in daemon["spec"]["template"]["spec"].get("containers") or []:
            yield container.get("image", "")


def fields(scene: Scene) -> Iterator[Problem]:
    known = scene.metrics.fields if scene.metrics else frozenset()
    for name, use in WANTED.items():
        if name not in known:
            yield Problem(
                message=f"Prometheus has no {name}: {use}",
                evidence=f"of the exporter it has {len(known)} metrics",
                help="Add the field to the exporter's counters (dcgmExporter.config of the GPU Operator).",
                severity=Severity.ERROR if name == BUSY else Severity.WARNING,
            )


def pod_labels(scene: Scene) -> Iterator[Problem]:
    """The exporter names the pod that holds a card, and so nobody while all cards are free."""
    if scene.metrics and scene.metrics.fields and not scene.metrics.pod_label:
        yield Problem(
            message="metrics of GPUs do not say which pod uses a card",
            evidence=f"no series of {BUSY} has a label pod or exported_pod",
            help="The exporter needs DCGM_EXPORTER_KUBERNETES=true and the kubelet's pod-resources socket.",
        )


CHECKS = (
    Check(
        code="exporter",
        title="GPUs are measured",
        kinds=("Node", "DaemonSet"),
        run=exporter_runs,
    ),
    Check(code="exporter-fields", title="Prometheus has what is needed", needs=("metrics",), run=fields),
    Check(code="exporter-pods", title="Metrics name pods", needs=("metrics", "pods_on_gpus"), run=pod_labels),
)
