"""The network of a cluster's nodes.

All nodes hang on one Linux bridge. It lives in a network namespace of its own, the switch: the host sees a
single interface, which vanishes together with its routes when the switch's last process ends, and the host's
firewall has no say between nodes. Nothing is translated: pods, nodes and host see each other's addresses.

Shell: changes interfaces and routes. The command lines are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

from tests.devcluster import host
from tests.devcluster.addresses import Addresses
from tests.devcluster.waiting import Check, until

SWITCH = ("unshare", "--net", "--", "sleep", "infinity")
"""The process that keeps the switch's namespace."""


def host_interface(addresses: Addresses) -> str:
    return f"gpuws{addresses.slot}"


def until_apart(pid: int, *, check: Check) -> None:
    """Wait until a process that is just starting has a network namespace of its own."""

    def shared() -> str | None:
        return "it is still in the host's" if host.shares_network(pid) else None

    until(shared, what=f"process {pid} to have its network namespace", check=check)


def connect_host(addresses: Addresses, *, switch_pid: int) -> None:
    """Make the switch and plug the host in."""
    interface = host_interface(addresses)
    host.ip_batch(
        ["link add name bridge type bridge", "link set bridge up", "link set lo up"], namespace_of=switch_pid
    )
    host.ip_batch(
        [
            f"link add name {interface} type veth peer name uplink netns {switch_pid}",
            f"address add {addresses.host}/{addresses.nodes.prefixlen} dev {interface}",
            f"link set {interface} up",
        ]
    )
    host.ip_batch(["link set uplink master bridge", "link set uplink up"], namespace_of=switch_pid)


def connect_node(addresses: Addresses, index: int, *, nodes: int, switch_pid: int, node_pid: int) -> None:
    """Plug node `index` of so many in."""
    host.ip_batch(
        [
            f"link add name node{index} type veth peer name eth0 netns {node_pid}",
            f"link set node{index} master bridge",
            f"link set node{index} up",
        ],
        namespace_of=switch_pid,
    )
    host.ip_batch(
        [
            "link set lo up",
            f"address add {addresses.node(index)}/{addresses.nodes.prefixlen} dev eth0",
            "link set eth0 up",
            f"route add default via {addresses.host}",
            *(route(addresses.node_pods(i), addresses.node(i)) for i in range(nodes) if i != index),
        ],
        namespace_of=node_pid,
    )
    host.ip_batch(host_routes(addresses, index))


def host_routes(addresses: Addresses, index: int) -> Sequence[str]:
    """How the host reaches a node's pods; the first node's kube-proxy also answers for the services."""
    services = [route(addresses.services, addresses.node(0))] if index == 0 else []
    return [route(addresses.node_pods(index), addresses.node(index)), *services]


def route(network: IPv4Network, via: str) -> str:
    return f"route add {network} via {via}"
