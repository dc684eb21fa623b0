"""What a cluster could leave on the host: looked at before, while and after.

Shell: reads /proc, /sys and the host's network.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

import psutil

from tests.devcluster import cgroups
from tests.devcluster.cluster import Cluster
from tests.devcluster.host import run
from tests.devcluster.network import host_interface
from tests.devcluster.node_init import PRIVATE_SYSCTLS
from tests.devcluster.record import Record
from tests.devcluster.sweep import leftovers, marked

OWN_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/run/containerd", "/run/netns")


@dataclass(frozen=True, kw_only=True)
class HostState:
    """What no cluster may change, running or not."""

    sysctls: dict[str, str]
    firewall: str
    folders: dict[str, tuple[str, ...] | None]
    """Content of folders that nodes have of their own; None where there is no such folder."""
    forwarding: str


def host_state() -> HostState:
    settings = [Path("/proc/sys") / name for name in PRIVATE_SYSCTLS]
    return HostState(
        sysctls={str(p): p.read_text().strip() for p in settings if p.exists()},
        firewall="".join(run("iptables", f"--table={table}", "--list-rules") for table in ("nat", "filter")),
        folders={
            f: tuple(sorted(p.name for p in Path(f).iterdir())) if Path(f).is_dir() else None
            for f in OWN_FOLDERS
        },
        forwarding=Path("/proc/sys/net/ipv4/ip_forward").read_text().strip(),
    )


@dataclass(frozen=True, kw_only=True)
class Known:
    """By what a cluster's traces are recognized once it is gone."""

    record: Record
    namespaces: frozenset[str]
    """Such as `net:[4026532345]`."""


def know(cluster: Cluster) -> Known:
    """Look at a running cluster."""
    pids = [node.init_pid for node in cluster.nodes.values()]
    kinds = ("net", "mnt", "pid", "uts")
    own = {str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for pid in pids for kind in kinds}
    return Known(record=cluster.record, namespaces=frozenset(own))


def traces(known: Known, *, ended: float = inf) -> dict[str, list[str]]:
    """All that is there of a cluster, by kind; empty when it left nothing.

    `ended` is when it was ended, as `time.time()` has it: namespaces that are made later may be given the
    numbers of its own.
    """
    record = known.record
    found = {
        "processes": processes(known, ended),
        "cgroups": [str(p) for h in cgroups.hierarchies() if (p := h / record.cgroup).exists()],
        "interfaces": interfaces(host_interface(record.addresses)),
        "routes": routes(record),
        "mounts": mounts(record.state_dir),
        "files": [str(path) for path in leftovers(record.state_dir)],
    }
    return {kind: things for kind, things in found.items() if things}


def processes(known: Known, ended: float) -> list[str]:
    """Processes that carry the cluster's mark, or run in its namespaces or cgroups."""
    found = {str(pid) for pid in marked(known.record.state_dir)}
    for process in psutil.process_iter():
        folder = Path(f"/proc/{process.pid}")
        with suppress(OSError, psutil.NoSuchProcess):
            namespaces = {str((folder / "ns" / kind).readlink()) for kind in ("net", "mnt", "pid", "uts")}
            own = bool(namespaces & known.namespaces) and process.create_time() <= ended
            if own or known.record.cgroup in (folder / "cgroup").read_text():
                found.add(str(process.pid))
    return sorted(found)


def interfaces(name: str) -> list[str]:
    return [link["ifname"] for link in json.loads(run("ip", "-json", "link")) if link["ifname"] == name]


def routes(record: Record) -> list[str]:
    lines = run("ip", "-4", "route", "show", "table", "all").splitlines()
    prefix = ".".join(str(record.addresses.network).split(".")[:2])
    return [line for line in lines if f"{prefix}." in line]


def mounts(state_dir: Path) -> list[str]:
    """Mounts of the host's own namespace that have to do with the cluster."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(state_dir) in line]
