"""CoreDNS as the cluster's name service: Service `kube-dns`, as every cluster has it.

It knows the cluster's own names only; the nodes resolve none that it could ask further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster

PROGRAMS = ("image:coredns",)
NAMESPACE = "kube-system"
LABELS = {"k8s-app": "kube-dns"}
COREFILE = """.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        ttl 30
    }
    cache 30
}
"""


def install(cluster: Cluster) -> Callable[[], None]:
    """Install it; what is returned waits until it answers."""
    image = Registry(cluster).publish_built("coredns")
    account = {"name": "coredns", "namespace": NAMESPACE}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        *_build_rights(account),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": account, "data": {"Corefile": COREFILE}},
        build_deployment(image),
        build_service(cluster.addresses.dns),
    )
    return lambda: cluster.wait_for("deployment/coredns", "condition=Available", namespace=NAMESPACE)


def _build_rights(account: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    rules = [
        {
            "apiGroups": [""],
            "resources": ["endpoints", "services", "pods", "namespaces"],
            "verbs": ["list", "watch"],
        },
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    name = {"name": "system:coredns"}
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": name, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": name,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", **name},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    return role, binding


def build_deployment(image: str) -> dict[str, Any]:
    """Build the Deployment, as kubeadm's has it less what needs more than one node."""
    container = {
        "name": "coredns",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "40Mi"}, "limits": {"memory": "170Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "serviceAccountName": "coredns",
                    "priorityClassName": "system-cluster-critical",
                    "dnsPolicy": "Default",
                    "containers": [container],
                    "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
                },
            },
        },
    }


def build_service(address: str) -> dict[str, Any]:
    """Build the Service at the address that kubelets write into pods' resolv.conf."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kube-dns",
            "namespace": NAMESPACE,
            "labels": {**LABELS, "kubernetes.io/name": "CoreDNS"},
        },
        "spec": {
            "clusterIP": address,
            "selector": LABELS,
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            ],
        },
    }
