"""NetworkPolicies, and webhooks that stand in the way of every pod.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from hub_ext.errors import Severity

from ..problems import Check, Problem
from ..scene import Object, Scene

USER_LABELS: Final = {"app": "jupyterhub", "component": "singleuser-server"}
"""Labels that KubeSpawner and the chart give every workspace."""
_METADATA: Final = IPv4Network("169.254.169.254/32")


def users_apart(scene: Scene) -> Iterator[Problem]:
    for namespace in scene.namespaces:
        policies = [p for p in scene.objects.inside("NetworkPolicy", namespace) if _selects_users(p)]
        for direction, danger in (
            ("Ingress", "users reach the servers of others"),
            ("Egress", "workspaces reach everything: nodes, the API server, the cloud's metadata"),
        ):
            if not any(direction in _types(policy) for policy in policies):
                yield Problem(
                    message=f"no NetworkPolicy bounds the {direction.lower()} of workspaces in {namespace}: "
                    f"{danger}",
                    evidence="policies there: "
                    f"{[p['metadata']['name'] for p in policies] or 'none that selects them'}",
                    help="Install the policies of helm-values/layers/network.yaml; the network plugin has to "
                    "enforce them.",
                    path=f"networkpolicies/{namespace}",
                )


def metadata_by_policy(scene: Scene) -> Iterator[Problem]:
    policies = [p for name in scene.namespaces for p in scene.objects.inside("NetworkPolicy", name)]
    for policy in policies:
        if not _selects_users(policy):
            continue
        where = f"{policy['metadata']['namespace']}/{policy['metadata']['name']}"
        for rule in policy["spec"].get("egress") or []:
            for peer in rule.get("to") or []:
                if _leads_to_metadata(peer.get("ipBlock") or {}):
                    yield Problem(
                        message=f"NetworkPolicy {where} lets workspaces ask for the node's credentials",
                        evidence=f"egress to {peer['ipBlock']['cidr']} without except {_METADATA}",
                        help=f"Add {_METADATA} to except.",
                        path=f"networkpolicies/{where}",
                    )


def _leads_to_metadata(block: Mapping[str, Any]) -> bool:
    """Say whether a block of addresses has that of metadata; networks that cannot be read have it not."""
    try:
        networks = [ip_network(one, strict=False) for one in (block["cidr"], *(block.get("except") or []))]
    except (KeyError, ValueError):
        return False
    within, *without = (
        isinstance(network, IPv4Network) and network.supernet_of(_METADATA) for network in networks
    )
    return within and not any(without)


def _types(policy: Object) -> list[str]:
    """Give the directions that a policy bounds; by default ingress, and egress if it has rules."""
    spec = policy["spec"]
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _selects_users(policy: Object) -> bool:
    """Say whether a policy selects workspaces; expressions count if these labels could meet them."""
    selector = policy["spec"].get("podSelector") or {}
    wanted = selector.get("matchLabels") or {}
    return all(USER_LABELS.get(key, value) == value for key, value in wanted.items())


def webhooks(scene: Scene) -> Iterator[Problem]:
    """A webhook that fails closed and does not answer stops every start."""
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        for configuration in scene.objects.of(kind):
            for hook in configuration.get("webhooks") or []:
                if hook.get("failurePolicy", "Fail") != "Fail" or not _takes_pods(hook):
                    continue
                selector = hook.get("namespaceSelector") or {}
                if covered := [name for name in scene.namespaces if _covers(scene, name, selector)]:
                    yield from _answering(scene, configuration["metadata"]["name"], hook, covered)


def _answering(scene: Scene, name: str, hook: Mapping[str, Any], covered: Sequence[str]) -> Iterator[Problem]:
    service = (hook.get("clientConfig") or {}).get("service")
    if service is None:
        return
    where = f"{service['namespace']}/{service['name']}"
    if not _has_endpoints(scene, service["namespace"], service["name"]):
        yield Problem(
            message=f"webhook {hook['name']} has to agree to every pod in {', '.join(covered)} and "
            "nobody answers for it",
            evidence=f"{name}: failurePolicy Fail, service {where} without ready endpoints",
            help="Bring its pods up, or leave the namespaces out by its namespaceSelector.",
            path=f"webhooks/{name}",
        )
    elif int(hook.get("timeoutSeconds", 10)) > 15:
        yield Problem(
            message=f"webhook {hook['name']} may hold up every start for {hook['timeoutSeconds']} seconds",
            evidence=f"{name}: timeoutSeconds {hook['timeoutSeconds']}",
            help="Lower its timeout.",
            path=f"webhooks/{name}",
            severity=Severity.WARNING,
        )


def _takes_pods(hook: Mapping[str, Any]) -> bool:
    return any(
        {"*", ""} & set(rule.get("apiGroups") or [])
        and {"*", "*/*", "pods", "pods/*"} & set(rule.get("resources") or [])
        and {"*", "CREATE"} & set(rule.get("operations") or [])
        for rule in hook.get("rules") or []
    )


def _covers(scene: Scene, name: str, selector: Mapping[str, Any]) -> bool:
    """Say whether a namespace selector takes a namespace of workspaces."""
    namespace = scene.objects.named("Namespace", name)
    labels = {"kubernetes.io/metadata.name": name}
    labels |= ((namespace or {"metadata": {}})["metadata"].get("labels")) or {}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_matches(labels, one) for one in selector.get("matchExpressions") or [])


def _matches(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _has_endpoints(scene: Scene, namespace: str, service: str) -> bool:
    return any(
        endpoint.get("addresses") and (endpoint.get("conditions") or {}).get("ready") is not False
        for one in scene.objects.inside("EndpointSlice", namespace)
        if (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service
        for endpoint in one.get("endpoints") or []
    )


CHECKS = (
    Check(
        code="network-policy",
        title="Workspaces are apart from one another and from the cluster",
        kinds=("NetworkPolicy",),
        run=users_apart,
    ),
    Check(
        code="policy-metadata",
        title="Policies leave out the cloud's metadata",
        kinds=("NetworkPolicy",),
        run=metadata_by_policy,
    ),
    Check(
        code="webhook",
        title="No webhook stands in the way of every start",
        kinds=(
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
            "EndpointSlice",
            "Namespace",
        ),
        run=webhooks,
    ),
)
