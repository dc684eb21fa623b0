"""Accounts and roles from declared rights: exactly these, for whichever namespaces an installation has.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ..rights import HUB, Rights, Rule, Where
from .target import MANAGED_BY

_GROUP: Final = "rbac.authorization.k8s.io"
_API: Final = f"{_GROUP}/v1"
PREFIX: Final = "gpu-workspaces"
RUNS: Final = f"{PREFIX}-runs"
"""Namespace of runs, unless an installation has another."""
PULLS: Final = f"{PREFIX}-prepuller"
"""Namespace of the prepuller's pods, unless an installation has another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The namespaces of an installation."""

    hub: str = "jupyterhub"
    workspaces: tuple[str, ...] = ()
    """Those of teams, beside the hub's: whoever is in no such team has workspaces there."""
    jobs: str = RUNS
    pulls: str = PULLS

    @property
    def of_workspaces(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.hub, *self.workspaces)))

    def of(self, where: Where) -> tuple[str, ...]:
        """Give the namespaces that a rule holds in; empty for the whole cluster."""
        match where:
            case Where.CLUSTER:
                return ()
            case Where.HUB:
                return (self.hub,)
            case Where.JOBS:
                return (self.jobs,)
            case Where.PULLS:
                return (self.pulls,)
            case Where.WORKSPACES:
                return self.of_workspaces


def build_rights(rights: Rights, places: Places, *, account: str = "") -> list[dict[str, Any]]:
    """Build ServiceAccount, roles and bindings of one part.

    Parameters
    ----------
    account
        An account that exists, in the hub's namespace; left out, the part gets one of its own name. The chart
        makes that of the hub.
    """
    account = account or ("hub" if rights is HUB else "")
    made = [] if account else [build_service_account(rights.name, places.hub)]
    rules: dict[str, list[Rule]] = {}
    for rule in rights.rules:
        for namespace in places.of(rule.where) or ("",):
            rules.setdefault(namespace, []).append(rule)
    for namespace, found in rules.items():
        made += _role_and_binding(rights.name, account or rights.name, namespace, found, places.hub)
    return made


def build_service_account(name: str, namespace: str) -> dict[str, Any]:
    """Build an account whose token no pod gets that does not ask for it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(MANAGED_BY)},
        "automountServiceAccountToken": False,
    }


def _role_and_binding(
    name: str, account: str, namespace: str, rules: Iterable[Rule], hub: str
) -> list[dict[str, Any]]:
    metadata: dict[str, Any] = {"name": f"{PREFIX}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = dict(MANAGED_BY)
    kind = "Role" if namespace else "ClusterRole"
    reasons = {f"{PREFIX}.jupyter.org/why": "; ".join(dict.fromkeys(rule.why for rule in rules))}
    return [
        {
            "apiVersion": _API,
            "kind": kind,
            "metadata": {**metadata, "annotations": reasons},
            "rules": [_rule(rule) for rule in rules],
        },
        {
            "apiVersion": _API,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": hub}],
        },
    ]


def _rule(rule: Rule) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiGroups": [rule.group],
        "resources": list(rule.resources),
        "verbs": list(rule.verbs),
    }
    return made | ({"resourceNames": list(rule.names)} if rule.names else {})
