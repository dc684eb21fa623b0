"""What the accounts of hub and services may do, against what they need.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hub_ext.errors import Severity
from hub_ext.rights import Rights, Rule

from ..problems import Check, Problem
from ..scene import Object, Scene

EVERYWHERE: Final = ""
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection", "*"})
_DANGEROUS: Final = frozenset({"secrets", "pods/exec", "pods/attach", "serviceaccounts/token", "*"})


def account_of(scene: Scene, rights: Rights) -> str:
    """Name the account of a part: its own, or the hub's where the hub runs it."""
    own = scene.objects.named("ServiceAccount", rights.name, scene.hub_namespace)
    return rights.name if own else "hub"


def granted(scene: Scene, account: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give all rules of an account with the namespace that they hold in, `EVERYWHERE` for the cluster."""
    for binding in scene.objects.of("ClusterRoleBinding"):
        if _binds(binding, account, scene.hub_namespace):
            yield from ((EVERYWHERE, rule) for rule in _rules(scene, binding, EVERYWHERE))
    for binding in scene.objects.of("RoleBinding"):
        if _binds(binding, account, scene.hub_namespace):
            namespace = binding["metadata"]["namespace"]
            yield from ((namespace, rule) for rule in _rules(scene, binding, namespace))


def _binds(binding: Object, account: str, namespace: str) -> bool:
    groups = {"system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}"}
    return any(
        (subject["kind"], subject["name"], subject.get("namespace")) == ("ServiceAccount", account, namespace)
        or (subject["kind"] == "Group" and subject["name"] in groups)
        for subject in binding.get("subjects") or []
    )


def _rules(scene: Scene, binding: Object, namespace: str) -> list[Mapping[str, Any]]:
    role = binding["roleRef"]
    where = namespace if role["kind"] == "Role" else ""
    found = scene.objects.named(role["kind"], role["name"], where)
    return list((found or {}).get("rules") or [])


def may(rules: list[tuple[str, Mapping[str, Any]]], rule: Rule, verb: str, resource: str, where: str) -> bool:
    """Say whether some rule allows a verb on all objects of a resource that are meant."""
    return any(
        namespace in {EVERYWHERE, where}
        and {verb, "*"} & set(granted.get("verbs") or [])
        and {rule.group, "*"} & set(granted.get("apiGroups") or [])
        and {resource, "*"} & set(granted.get("resources") or [])
        and set(granted.get("resourceNames") or rule.names) >= set(rule.names)
        and not (granted.get("resourceNames") and not rule.names)
        for namespace, granted in rules
    )


def needed(scene: Scene) -> Iterator[Problem]:
    for rights in scene.rights:
        account = account_of(scene, rights)
        rules = list(granted(scene, account))
        for rule in rights.rules:
            for where in scene.places.of(rule.where) or (EVERYWHERE,):
                lacking = [
                    f"{verb} {resource}"
                    for resource in rule.resources
                    for verb in rule.verbs
                    if not may(rules, rule, verb, resource, where)
                ]
                if lacking:
                    yield _denied(scene, rights, rule, lacking=", ".join(lacking), where=where)


def _denied(scene: Scene, rights: Rights, rule: Rule, *, lacking: str, where: str) -> Problem:
    account = f"{scene.hub_namespace}/{account_of(scene, rights)}"
    group = f" of {rule.group}" if rule.group else ""
    return Problem(
        message=f"{rights.name} may not {lacking}{group} in {where or 'the whole cluster'}",
        evidence=f"no role grants it to ServiceAccount {account}",
        help=f"It {rule.why}. `gpu-workspaces manifests` prints the roles that grant it.",
        path=f"serviceaccounts/{account}",
        severity=Severity.NOTE if rule.optional else Severity.ERROR,
    )


def superfluous(scene: Scene) -> Iterator[Problem]:
    """Rights that would let a fault in a service take over the cluster."""
    for rights in scene.rights:
        account = account_of(scene, rights)
        if account == "hub":
            continue  # the chart decides what its hub may
        for namespace, rule in granted(scene, account):
            resources, verbs = set(rule.get("resources") or []), set(rule.get("verbs") or [])
            if resources & _DANGEROUS and not _declared(rights, rule) and verbs:
                yield Problem(
                    message=f"{rights.name} may {', '.join(sorted(verbs))} "
                    f"{', '.join(sorted(resources & _DANGEROUS))}"
                    f" {f'in {namespace}' if namespace else 'in the whole cluster'}, which it does not need",
                    evidence=f"ServiceAccount {scene.hub_namespace}/{account}",
                    help="Bind it to the roles that `gpu-workspaces manifests` prints, and to no others.",
                    path=f"serviceaccounts/{scene.hub_namespace}/{account}",
                    severity=Severity.ERROR if verbs & _WRITES else Severity.WARNING,
                )


def _declared(rights: Rights, rule: Mapping[str, Any]) -> bool:
    wanted = {(one.group, resource) for one in rights.rules for resource in one.resources}
    return {(g, r) for g in rule.get("apiGroups") or [] for r in rule.get("resources") or []} <= wanted


CHECKS = (
    Check(
        code="rights",
        title="Hub and services may do what they need",
        kinds=("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"),
        run=needed,
    ),
    Check(
        code="rights-beyond",
        title="Services may do nothing else that is dangerous",
        kinds=("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"),
        run=superfluous,
    ),
)
