"""The order in which a cluster comes up, side by side where it can.

Shell: starts everything, in threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from tests.devcluster import build, control_plane, host, kwok, network
from tests.devcluster.addon import Loaded, Wait
from tests.devcluster.api import Api, is_ready
from tests.devcluster.cluster import Cluster
from tests.devcluster.control_plane import ControlPlane
from tests.devcluster.errors import DevClusterError
from tests.devcluster.node_files import NodeFiles
from tests.devcluster.node_start import NodeStart
from tests.devcluster.objects import build_node
from tests.devcluster.report import Report
from tests.devcluster.spec import Addon, ClusterSpec
from tests.devcluster.waiting import PATIENCE_SECONDS

Job = Callable[[], None]
CONTROL_PROGRAMS = ("etcd", "kubectl")
VERSIONED_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE_PROGRAMS = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr")
NODE_TOOLS = ("runc", "cni-plugins", "ip", "iptables", "conntrack")
NEWEST = "1.36"
SANDBOX_IMAGE = "pause"


def wanted_programs(spec: ClusterSpec, addons: Iterable[Loaded]) -> dict[str, str]:
    """Name in the build's table of each thing a cluster needs, by the name it has in `Cluster.programs`."""
    suffix = "" if spec.kubernetes == NEWEST else f"@{spec.kubernetes}"
    plain = [*CONTROL_PROGRAMS, *(NODE_PROGRAMS if spec.nodes else ()), *(("kwok",) if spec.kwok else ())]
    plain += [f"image:{SANDBOX_IMAGE}"] if spec.nodes else []
    plain += [program for addon in addons for program in addon.programs]
    return {name: name for name in plain} | {name: name + suffix for name in VERSIONED_PROGRAMS}


class Bringup:
    """One start of one cluster."""

    def __init__(self, cluster: Cluster, addons: Sequence[Loaded], report: Report) -> None:
        self._cluster = cluster
        self._addons = addons
        self._report = report
        self._api: Future[Api] = Future()
        """Done when the API server is ready and knows the nodes."""
        self._secrets = control_plane.issue_secrets(
            cluster.state_dir / "pki",
            name=cluster.name,
            addresses=cluster.addresses,
            bind_address=cluster.host_address,
        )

    def run(self) -> None:
        """Bring everything up; raises the first error, whereupon the rest gives up by itself."""
        switch_pid = self._make_network() if self._cluster.nodes else 0
        jobs: list[Job] = [self._start_control_plane, self._until_accounts]
        if self._cluster.spec.kwok:
            jobs.append(self._start_kwok)
        if self._cluster.nodes:
            jobs.append(self._until_nodes_ready)
        jobs += [functools.partial(self._prepare, addon) for addon in self._addons]
        jobs += [functools.partial(self._start_node, start, switch_pid) for start in self._node_starts()]
        self._side_by_side(jobs)
        self._install()

    def _check(self) -> None:
        """Cut waits short when a program died, or another job failed."""
        if self._api.done():
            self._api.result()
        self._cluster.processes.check()

    def _side_by_side(self, jobs: Sequence[Job]) -> None:
        pool = ThreadPoolExecutor(max_workers=len(jobs), thread_name_prefix="start")
        done, _ = wait([pool.submit(job) for job in jobs], return_when=FIRST_EXCEPTION)
        pool.shutdown(wait=False)
        for future in done:
            if error := future.exception():
                if not self._api.done():
                    self._api.set_exception(DevClusterError("another part of the start failed"))
                raise error

    def _make_network(self) -> int:
        with self._report.step("network is there"):
            switch = self._cluster.popen("switch", network.SWITCH)
            network.until_apart(switch.pid, check=self._check)
            network.connect_host(self._cluster.addresses, switch_pid=switch.pid)
        return switch.pid

    def _start_control_plane(self) -> None:
        cluster, secrets = self._cluster, self._secrets
        plane = ControlPlane(
            programs=cluster.programs,
            folder=cluster.state_dir,
            logs=cluster.logs_dir,
            addresses=cluster.addresses,
            bind_address=cluster.host_address,
            port=cluster.port("kube-apiserver"),
            etcd_port=cluster.port("etcd"),
            etcd_peer_port=cluster.port("etcd-peer"),
            secrets=secrets,
        )
        secrets.authority.kubeconfig(
            cluster.kubeconfig, server=cluster.server, cluster=cluster.name, user="admin", pair=secrets.admin
        )
        with self._report.step("API server is ready"):
            api = control_plane.start_server(plane, cluster.processes, check=self._check)
        control_plane.start_controllers(plane, cluster.processes)
        for index, node in enumerate(cluster.spec.nodes):
            api.request("POST", "/api/v1/nodes", build_node(node, cluster.addresses, index))
        self._api.set_result(api)

    def _until_accounts(self) -> None:
        api = self._api.result()
        with self._report.step("controllers work"):
            path = "/api/v1/namespaces/default/serviceaccounts/default"
            what = "the controllers to make the default service account"
            api.until_answering(path, what=what, timeout=PATIENCE_SECONDS, check=self._check)

    def _start_kwok(self) -> None:
        api = self._api.result()
        with self._report.step("kwok nodes are Ready"):
            kwok.start(self._cluster, api, check=self._check)

    def _node_starts(self) -> Iterator[NodeStart]:
        cluster = self._cluster
        if not cluster.nodes:
            return
        tools = build.ensure_tools(NODE_TOOLS)
        snapshotter = "native" if host.is_overlay(cluster.state_dir) else "overlayfs"
        for index, node in enumerate(cluster.nodes.values()):
            files = NodeFiles(
                folder=node.state_dir,
                index=index,
                addresses=cluster.addresses,
                cgroup=f"{cluster.record.cgroup}/{node.name}",
                sandbox_image=build.image_reference(SANDBOX_IMAGE),
                snapshotter=snapshotter,
                runc=tools["runc"],
                cni_folder=tools["cni-plugins"].parent,
                ca=self._secrets.authority.certificate,
                serving=self._secrets.authority.issue(
                    f"serving-{node.name}", f"system:node:{node.name}", hosts=[node.name, node.address]
                ),
            )
            files.write()
            yield NodeStart(
                node=node,
                files=files,
                nodes=len(cluster.nodes),
                programs=cluster.programs,
                sandbox_layout=cluster.programs[f"image:{SANDBOX_IMAGE}"],
                processes=cluster.processes,
                check=self._check,
            )

    def _start_node(self, start: NodeStart, switch_pid: int) -> None:
        start.boot(switch_pid)
        self._api.result()
        start.join(self._secrets.authority, self._cluster.server)
        for addon in self._addons:
            addon.install_on_node(self._cluster, start.node)

    def _until_nodes_ready(self) -> None:
        api, names = self._api.result(), set(self._cluster.nodes)
        with self._report.step(f"{len(names)} nodes are Ready"):
            what = "the nodes to be Ready"
            api.until_all(
                "/api/v1/nodes", names, is_ready, what=what, timeout=PATIENCE_SECONDS, check=self._check
            )

    def _prepare(self, addon: Loaded) -> None:
        self._api.result()
        addon.prepare(self._cluster)

    def _install(self) -> None:
        waits: list[tuple[Addon, Wait]] = []
        for addon in self._addons:
            if wait_ready := addon.install(self._cluster):
                waits.append((addon.addon, wait_ready))
            else:
                self._report.say(f"{addon.addon} is there")
        for name, wait_ready in waits:
            wait_ready()
            self._report.say(f"{name} is ready")
