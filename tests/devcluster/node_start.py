"""Bringing a real node up: namespaces and network, containerd, then kubelet and kube-proxy.

Shell: starts processes inside namespaces.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster import cgroups, network
from tests.devcluster.addresses import Addresses
from tests.devcluster.node import CONTAINERD_SOCKET, Node
from tests.devcluster.node_files import NodeFiles, kubelet_arguments, proxy_arguments
from tests.devcluster.node_init import READY
from tests.devcluster.pki import Authority
from tests.devcluster.processes import Processes
from tests.devcluster.waiting import Check, until

NAMESPACES = ("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
INIT = Path(__file__).with_name("node_init.py")
DEVICE_PLUGIN_SOCKET = "device-plugins/kubelet.sock"


@dataclass(frozen=True, kw_only=True)
class NodeStart:
    """The start of one node of a cluster."""

    node: Node
    files: NodeFiles
    nodes: int
    """How many the cluster has."""
    programs: Mapping[str, Path]
    sandbox_layout: Path
    """OCI layout of the image that holds a pod's namespaces."""
    processes: Processes
    check: Check

    @property
    def addresses(self) -> Addresses:
        return self.files.addresses

    def boot(self, switch_pid: int) -> None:
        """Make the node and start its containerd; needs no API server."""
        cgroups.create(self.files.cgroup)
        self.files.write()
        argv: list[str | Path] = [
            *NAMESPACES,
            sys.executable,
            "-I",
            "-S",
            INIT,
            self.node.name,
            self.node.state_dir,
        ]
        log = self.node.logs_dir / "init.log"
        init = self.processes.start(f"{self.node.name}/init", argv, log=log, wrapped=True)
        self._until_exists(self.node.state_dir / READY)
        (self.node.state_dir / "init.pid").write_text(str(init.pid))
        network.connect_node(
            self.addresses, self.files.index, nodes=self.nodes, switch_pid=switch_pid, node_pid=init.pid
        )
        self.node.popen(
            "containerd", [self.programs["containerd"], "--config", self.files.folder / "containerd.toml"]
        )
        self._until_exists(Path(f"/proc/{init.pid}/root{CONTAINERD_SOCKET}"))
        self.node.import_image(self.sandbox_layout)

    def join(self, authority: Authority, server: str) -> None:
        """Start kubelet and kube-proxy and wait until device plugins can register."""
        name = self.node.name
        kubelet = authority.kubeconfig(
            self.node.state_dir / "kubelet.kubeconfig",
            server=server,
            cluster="devcluster",
            user=f"system:node:{name}",
            pair=authority.issue(f"node-{name}", f"system:node:{name}", groups=["system:nodes"]),
        )
        proxy = authority.kubeconfig(
            self.node.state_dir / "kube-proxy.kubeconfig",
            server=server,
            cluster="devcluster",
            user="system:kube-proxy",
            pair=authority.issue(f"proxy-{name}", "system:kube-proxy"),
        )
        for program, arguments in (
            ("kubelet", kubelet_arguments(self.files, name=name, kubeconfig=kubelet)),
            ("kube-proxy", proxy_arguments(self.files, name=name, kubeconfig=proxy)),
        ):
            self.node.popen(program, [self.programs[program], *arguments])
        self._until_exists(self.node.kubelet_dir / DEVICE_PLUGIN_SOCKET)

    def _until_exists(self, path: Path) -> None:
        until(
            lambda: None if path.exists() else f"there is no {path}",
            what=f"node {self.node.name} to start",
            check=self.check,
        )
