"""Zones of homes and of nodes: a disk of one zone cannot go to the nodes of another.

Sources: Kubernetes PersistentVolume (`spec.nodeAffinity`, labels of older provisioners with zones joined by
``__``), topology keys of the CSI drivers of the large clouds, which all end in ``/zone``.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..quota.words import listed
from .nodes import ZONE_LABEL, Node

_OLD_LABEL: Final = "failure-domain.beta.kubernetes.io/zone"
_JOINT: Final = "__"
_TOPOLOGY: Final = "/zone"


def zones_of_volume(volume: Mapping[str, Any]) -> frozenset[str]:
    """Read off a PersistentVolume in API spelling where it can be attached; empty for anywhere."""
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    terms = [frozenset(_named(term)) for term in required.get("nodeSelectorTerms") or ()]
    if terms:
        # Any of the terms will do: one without a zone lets it go anywhere.
        return frozenset().union(*terms) if all(terms) else frozenset()
    labels = (volume.get("metadata") or {}).get("labels") or {}
    text = labels.get(ZONE_LABEL) or labels.get(_OLD_LABEL) or ""
    return frozenset(zone for zone in text.split(_JOINT) if zone)


def _named(term: Mapping[str, Any]) -> Iterator[str]:
    for rule in term.get("matchExpressions") or ():
        if str(rule.get("key", "")).endswith(_TOPOLOGY) and rule.get("operator") == "In":
            yield from (zone for zone in rule.get("values") or () if zone)


def zones_of_nodes(nodes: Iterable[Node]) -> frozenset[str]:
    """Give the zones of nodes; empty if one of them does not say its own, since it may be in any."""
    zones = frozenset(node.zone for node in nodes)
    return frozenset() if "" in zones else zones


def are_apart(home: frozenset[str], nodes: frozenset[str]) -> bool:
    """Say whether a home can certainly not be attached where nodes are."""
    return bool(home and nodes) and home.isdisjoint(nodes)


def zones_text(home: frozenset[str], nodes: frozenset[str]) -> str:
    """Say where both are: ``Your home is in zone-c; this workspace's machines are in zone-a and zone-b``."""
    return f"Your home is in {_list(home)}; this workspace's machines are in {_list(nodes)}"


def warning(home: frozenset[str], nodes: frozenset[str], *, scales: bool) -> str:
    """Say before a start that a home is elsewhere; empty where it is not, or where that is not known."""
    if not are_apart(home, nodes):
        return ""
    what = (
        f"It starts only if a machine can be added in {_list(home, 'or')}."
        if scales
        else "It cannot start with this home."
    )
    return f"{zones_text(home, nodes)}. {what}"


def _list(zones: Iterable[str], joint: str = "and") -> str:
    return listed(sorted(zones), joint)
