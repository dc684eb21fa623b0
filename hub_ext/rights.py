"""What a part of the bundle may do, declared once: values, manifests, documentation and tests come from it.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    """Where a rule of Kubernetes holds; an installation says which namespaces these are."""

    CLUSTER = "cluster"
    """In all namespaces, and for what has none."""
    HUB = "hub"
    """Where the hub and the services run."""
    WORKSPACES = "workspaces"
    """Where workspaces run; often the hub's own namespace."""
    JOBS = "jobs"
    """Where runs of notebooks and scripts run."""
    PULLS = "pulls"
    """Where the prepuller's pods are, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that may be done to objects of Kubernetes."""

    where: Where
    group: str = ""
    """API group; empty for the core."""
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only objects of these names; empty for all."""
    why: str
    """For an admin who wonders whether to grant it."""
    optional: bool = False
    """Without it something is not known, but everything works; the reason says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One scope of JupyterHub."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """All that one part may do, and no more."""

    name: str
    """Of the service at the hub, and of its account in the cluster."""
    scopes: tuple[Scope, ...] = ()
    rules: tuple[Rule, ...] = ()
    opened_by: tuple[str, ...] = ()
    """Whom the hub has to let in, by names of its roles: ``user`` for people, ``server`` for their servers.
    Each gets the scope ``access:services!service=<name>``."""


_LOOK = ("get", "list", "watch")

HUB = Rights(
    name="hub",
    rules=(
        Rule(
            where=Where.WORKSPACES,
            resources=("pods", "persistentvolumeclaims"),
            verbs=(*_LOOK, "create", "delete"),
            why="starts and stops workspaces and makes their homes",
        ),
        Rule(
            where=Where.WORKSPACES,
            resources=("events",),
            verbs=_LOOK,
            why="says in plain words what a workspace waits for",
        ),
        Rule(
            where=Where.CLUSTER,
            resources=("nodes", "pods"),
            verbs=("list", "watch"),
            why="the spawn page says what is free; without it, that it does not know",
            optional=True,
        ),
        Rule(
            where=Where.CLUSTER,
            resources=("persistentvolumes",),
            verbs=("get",),
            why="the spawn page warns of a home in a zone where a workspace has no nodes; "
            "without it, nobody is warned",
            optional=True,
        ),
        Rule(
            where=Where.WORKSPACES,
            resources=("resourcequotas", "limitranges"),
            verbs=("list", "watch"),
            why="the spawn page counts with the namespace's own limits; without it, that it does not know",
            optional=True,
        ),
        Rule(
            where=Where.WORKSPACES,
            group="kueue.x-k8s.io",
            resources=("workloads",),
            verbs=("list", "watch"),
            why="says what a workspace waits for in a queue; only where Kueue is used",
            optional=True,
        ),
    ),
)
"""The hub. Zero to JupyterHub's chart grants the first two, and the same for secrets and services."""
