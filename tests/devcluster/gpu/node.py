"""NVIDIA's programs on one node of a cluster: device plugin, feature discovery and MPS control daemon.

Shell: starts programs inside a node, patches the node object.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

from tests.devcluster.cluster import Cluster
from tests.devcluster.control import Verb
from tests.devcluster.errors import StateError
from tests.devcluster.gpu.config import plugin_config
from tests.devcluster.gpu.driver import FOLDER, Machine, library
from tests.devcluster.gpu.labels import label_patch, parse_labels
from tests.devcluster.gpu.setup import GpuSetup, InstalledCard, install
from tests.devcluster.node import Node
from tests.devcluster.processes import Process, tail
from tests.devcluster.waiting import until

PLUGIN = "nvidia-device-plugin"
DISCOVERY = "gpu-feature-discovery"
MPS_DAEMON = "mps-control-daemon"
NVML_HEADER = "header:nvml"
RESOURCES = "nvidia.com/"


class GpuNode:
    """The GPUs of one node: any process of the host may make one for a running cluster."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        if node.spec.gpus is None:
            raise StateError(node.name, "has no GPUs", "give it `gpus` in the cluster file")
        self.cluster = cluster
        self.node = node
        self.machine = Machine(node.state_dir / "gpu")
        self.setup = node.spec.gpus
        """What the cluster file says."""
        self._plugin_config = self.machine.folder / "config.yaml"
        self._mps: Process | None = None

    def cards(self, setup: GpuSetup) -> tuple[InstalledCard, ...]:
        """The cards of this node under a set-up: the same UUIDs each time."""
        return install(setup, seed=f"{self.cluster.name}/{self.node.name}")

    def start(self) -> None:
        """Put in the cards of the cluster file and start the programs; they end with this Python process."""
        self._configure(self.setup)
        if self.setup.mps:
            self._start_mps()
        self.node.popen(PLUGIN, self._kept(PLUGIN, *self._plugin_flags), env=self._environment)

    def switch(self, setup: GpuSetup) -> None:
        """Give a running node other cards, or share them in another way, and label it anew."""
        self.control(Verb.STOP)
        if self._mps is not None:
            self._mps.stop()
            self._mps = None
        self._configure(setup)
        if setup.mps:
            self._start_mps()
        self.control(Verb.START)
        self.label()

    def control(self, verb: Verb) -> None:
        """Stop or start the device plugin of a running cluster."""
        self.cluster.control(verb, f"{self.node.name}/{PLUGIN}")

    def label(self) -> None:
        """Let feature discovery look at the cards once, and give the node the labels it found."""
        file = self.machine.folder / "labels"
        argv: list[str | Path] = [
            self.cluster.programs[DISCOVERY],
            *("--oneshot", "--no-timestamp"),
            *("--config-file", self._plugin_config),
            *("--machine-type-file", self.machine.product_name),
            *("--output-file", file),
        ]
        settings = [f"{name}={value}" for name, value in self._environment.items()]
        self.node.run(["env", *settings, *self.machine.command(argv)])
        annotations = self.cluster.get(f"/api/v1/nodes/{self.node.name}")["metadata"].get("annotations", {})
        patch = label_patch(parse_labels(file.read_text()), annotations)
        self.cluster.kubectl("patch", "node", self.node.name, "--type=merge", "--patch", json.dumps(patch))

    def allocatable(self) -> dict[str, int]:
        """What the kubelet offers of NVIDIA's resources; a resource whose plugin is gone stays, as 0."""
        status = self.cluster.get(f"/api/v1/nodes/{self.node.name}")["status"]
        return {
            name: int(count) for name, count in status["allocatable"].items() if name.startswith(RESOURCES)
        }

    def wait_until_offered(self) -> None:
        """Wait until the node offers a GPU of any kind; raises `NotReadyError`."""
        log = self.node.logs_dir / f"{PLUGIN}.log"

        def missing() -> str | None:
            offered = self.allocatable()
            return None if any(offered.values()) else f"allocatable {offered}; the plugin says:\n{tail(log)}"

        until(missing, what=f"GPUs of node {self.node.name}")

    @cached_property
    def _environment(self) -> dict[str, str]:
        path = self.cluster.processes.env["PATH"]
        header = self.cluster.programs[NVML_HEADER]
        return dict(self.machine.environment(library(header.parent), path=path))

    @property
    def _plugin_flags(self) -> tuple[str | Path, ...]:
        return (
            *("--config-file", self._plugin_config),
            *("--device-list-strategy", "envvar"),
            *("--mps-root", self.machine.mps),
        )

    def _configure(self, setup: GpuSetup) -> None:
        self.machine.install(setup, self.cards(setup))
        self._plugin_config.write_text(plugin_config(setup.plugin))

    def _start_mps(self) -> None:
        ready = self.machine.mps / ".ready"
        ready.unlink(missing_ok=True)
        self._mps = self.node.popen(MPS_DAEMON, self._kept(MPS_DAEMON), env=self._environment)
        until(lambda: None if ready.exists() else f"no {ready}", what="MPS control daemon")

    def _kept(self, program: str, *flags: str | Path) -> list[str]:
        flags = flags or ("--config-file", self._plugin_config)
        argv = self.machine.command([self.cluster.programs[program], *flags])
        return [str(FOLDER / "keep.sh"), *argv]
