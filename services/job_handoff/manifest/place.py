"""What an admin puts into the cluster before the first run: the namespace and the rules that hold in it.

Source: Kubernetes NetworkPolicy and ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1).

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Any, Final

from hub_ext.cluster.pods import QUEUE_LABEL
from hub_ext.install.network import NOT_PUBLIC
from hub_ext.names import LABEL_JOB

from ..settings import HandoffSettings
from .pod import COMPONENT, MANAGED_BY

Object = dict[str, Any]

_NAME_LABEL: Final = "kubernetes.io/metadata.name"


def build_place(settings: HandoffSettings) -> list[Object]:
    """Build everything that the namespace of the runs needs."""
    return [
        _namespace(settings),
        _account(settings),
        build_base_policy(settings),
        _admission_policy(settings),
        _admission_binding(settings),
    ]


def _namespace(settings: HandoffSettings) -> Object:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    metadata = {"name": settings.namespace, "labels": MANAGED_BY | levels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _account(settings: HandoffSettings) -> Object:
    metadata = {"name": settings.service_account, "namespace": settings.namespace, "labels": MANAGED_BY}
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,
    }


def build_base_policy(settings: HandoffSettings) -> Object:
    """Build the policy of all pods of runs: nobody comes in, and they reach what is told."""
    network = settings.network
    everywhere = {"ipBlock": {"cidr": "0.0.0.0/0", "except": list(NOT_PUBLIC)}}
    egress: list[Object] = [
        {
            "to": [{"namespaceSelector": {"matchLabels": {_NAME_LABEL: "kube-system"}}}],
            "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
        },
        *({"to": [{"namespaceSelector": {"matchLabels": {_NAME_LABEL: n}}}]} for n in network.namespaces),
        *({"to": [{"ipBlock": {"cidr": cidr}}]} for cidr in network.addresses),
    ]
    if network.internet:
        egress.append({"to": [everywhere]})
    return _policy(
        settings,
        "runs",
        {"component": COMPONENT},
        {"policyTypes": ["Ingress", "Egress"], "ingress": [], "egress": egress},
    )


def build_run_policy(settings: HandoffSettings, run: str) -> Object:
    """Build the policy of a run with several pods: they reach each other, and nobody else's reach them.

    The dashboard of a Ray cluster runs whatever reaches it; besides the run only KubeRay's operator does.
    """
    own = {"podSelector": {"matchLabels": {LABEL_JOB: run}}}
    operators = [
        {"namespaceSelector": {"matchLabels": {_NAME_LABEL: name}}} for name in settings.network.operators
    ]
    rules = {
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [own, *operators]}],
        "egress": [{"to": [own]}],
    }
    policy = _policy(settings, run, {LABEL_JOB: run}, rules)
    policy["metadata"]["labels"] |= {LABEL_JOB: run}
    return policy


def _policy(settings: HandoffSettings, name: str, pods: dict[str, str], rules: Object) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": settings.namespace, "labels": dict(MANAGED_BY)},
        "spec": {"podSelector": {"matchLabels": pods}, **rules},
    }


def _admission_policy(settings: HandoffSettings) -> Object:
    """Refuse what would run beside the queues, whoever creates it.

    What a controller made is exempt, but for pods: those must have the account without rights.
    """
    owned = "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, o.controller)"
    queued = f"has(object.metadata.labels) && '{QUEUE_LABEL}' in object.metadata.labels"
    account = f"object.spec.serviceAccountName == '{settings.service_account}'"
    rules = [
        {"apiGroups": [""], "resources": ["pods"]},
        {"apiGroups": ["batch"], "resources": ["jobs"]},
        {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"]},
        {"apiGroups": ["ray.io"], "resources": ["rayjobs", "rayclusters"]},
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"{settings.namespace}-queued", "labels": dict(MANAGED_BY)},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [rule | {"apiVersions": ["*"], "operations": ["CREATE"]} for rule in rules]
            },
            "validations": [
                {
                    "expression": f"({owned}) || ({queued})",
                    "message": f"what runs here waits in a queue: the label {QUEUE_LABEL} is missing",
                },
                {
                    "expression": f"object.kind != 'Pod' || {account}",
                    "message": f"pods here run as {settings.service_account}",
                },
            ],
        },
    }


def _admission_binding(settings: HandoffSettings) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{settings.namespace}-queued", "labels": dict(MANAGED_BY)},
        "spec": {
            "policyName": f"{settings.namespace}-queued",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {_NAME_LABEL: settings.namespace}}},
        },
    }
