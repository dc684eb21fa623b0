"""Which addresses a cluster uses: one /16 of its own, by slot. Pure.

Layout of `10.<n>.0.0/16`: nodes `.0.0/24` (the host has `.0.1`), pods `.64.0/18` (a /24 for each node),
services `.128.0/20`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

SLOTS = 40
FIRST_OCTET = 200
"""Slot 0 is `10.200.0.0/16`; the upper end of 10/8 is where home and office networks are least likely."""
FIRST_NODE = 11


@dataclass(frozen=True, slots=True)
class Addresses:
    slot: int

    @property
    def network(self) -> IPv4Network:
        return IPv4Network((int(IPv4Address("10.0.0.0")) + ((FIRST_OCTET + self.slot) << 16), 16))

    def _at(self, offset: int, prefix: int) -> IPv4Network:
        return IPv4Network((int(self.network.network_address) + offset, prefix))

    @property
    def nodes(self) -> IPv4Network:
        return self._at(0, 24)

    @property
    def pods(self) -> IPv4Network:
        return self._at(64 << 8, 18)

    @property
    def services(self) -> IPv4Network:
        return self._at(128 << 8, 20)

    @property
    def host(self) -> str:
        """The host's address on the nodes' network: pods reach it."""
        return str(self.nodes[1])

    @property
    def api_service(self) -> str:
        return str(self.services[1])

    @property
    def dns(self) -> str:
        """Cluster IP that kubelets write into pods' resolv.conf."""
        return str(self.services[10])

    def node(self, index: int) -> str:
        return str(self.nodes[FIRST_NODE + index])

    def node_pods(self, index: int) -> IPv4Network:
        return self._at((64 + index) << 8, 24)


def free_slots(taken: Iterable[IPv4Network]) -> list[Addresses]:
    """Slots whose network overlaps none of those that the host has routes to, lowest first."""
    known = [network for network in taken if network.prefixlen > 0]
    candidates = (Addresses(slot) for slot in range(SLOTS))
    return [a for a in candidates if not any(a.network.overlaps(network) for network in known)]
