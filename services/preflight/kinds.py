"""Which objects a preflight looks at, and where the API has them.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final

KINDS: Final[dict[str, str]] = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "ResourceQuota": "/api/v1/resourcequotas",
    "LimitRange": "/api/v1/limitranges",
    "ConfigMap": "/api/v1/configmaps",
    "ServiceAccount": "/api/v1/serviceaccounts",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "VolumeSnapshotClass": "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/networkpolicies",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/endpointslices",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "Role": "/apis/rbac.authorization.k8s.io/v1/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ValidatingWebhookConfiguration": (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    ),
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ClusterPolicy": "/apis/nvidia.com/v1/clusterpolicies",
    "LocalQueue": "/apis/kueue.x-k8s.io/v1beta1/localqueues",
    "ClusterQueue": "/apis/kueue.x-k8s.io/v1beta1/clusterqueues",
    "ClusterTrainingRuntime": "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes",
    "TrainingRuntime": "/apis/trainer.kubeflow.org/v1alpha1/trainingruntimes",
}

OPTIONAL: Final = frozenset(
    {
        "VolumeSnapshotClass",
        "ResourceSlice",
        "ClusterPolicy",
        "LocalQueue",
        "ClusterQueue",
        "ClusterTrainingRuntime",
        "TrainingRuntime",
    }
)
"""Kinds of add-ons: a cluster that does not know one has no objects of it."""


def resource_of(kind: str) -> str:
    """Give the name that `kubectl get` and a dump's file have."""
    return KINDS[kind].rpartition("/")[2]


BY_RESOURCE: Final = {resource_of(kind): kind for kind in KINDS}
