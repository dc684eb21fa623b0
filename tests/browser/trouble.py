"""Workspaces that meet trouble: hidden profiles beside the demo's own, for what goes wrong on real nodes.

They are started by a link or by the API; nobody who looks at the page sees them.

Shell: offers images.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from hub_ext.cluster.pods import KUEUE_GATE
from hub_ext.names import LABEL_PROFILE
from tests.demo.hub import IMAGE, NAMESPACE
from tests.devcluster.addons.faults import Fault, Kind
from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image
from tests.devcluster.cluster import Cluster
from tests.devcluster.rules import until_in_force

PADDING: Final = 8 << 20
"""Bytes of a layer that no node has."""
_TWO: Final = {"gpu": {"pool": "l40s-mistaken", "count": 2}}
SHORT: Final = "40s"
"""Start timeout of those that never get better: a busy machine gets as far as the trouble in it."""

PRIVATE: Final = "private"
SLOW: Final = "slow"
HANGING: Final = "hanging"
GREEDY: Final = "greedy"
WATCHED: Final = "watched"
QUEUED: Final = "queued"


def catalog_parts(registry: Registry) -> dict[str, Any]:
    """What is added to the demo's catalog."""
    mark = secrets.token_hex(4)
    images = {
        PRIVATE: registry.with_login(registry.publish(ensure_image(IMAGE), f"private/{IMAGE}")),
        SLOW: registry.publish_variant(IMAGE, mark=f"slow-{mark}", padding_bytes=PADDING),
        HANGING: registry.publish_variant("helper", mark=f"hanging-{mark}", padding_bytes=PADDING),
    }
    # A catalog cannot ask for two shares, unless it takes the node's shares for whole cards.
    mistaken = {
        "nodeSelector": {"gpu-workspaces.jupyter.org/pool": "l40s-shared"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "gpu": {
            "product": "NVIDIA-L40S",
            "sharing": "exclusive",
            "resourceName": "nvidia.com/gpu.shared",
            "weight": 0.1,
        },
    }
    return {
        "images": {key: {"ref": ref, "displayName": f"{key.title()} image"} for key, ref in images.items()},
        "pools": {"l40s-mistaken": mistaken},
        "profiles": [
            _profile(PRIVATE, "Private image", image=PRIVATE),
            _profile(SLOW, "Slow image", image=SLOW),
            # Without a home: making one takes longer on a slow machine than this start may take.
            _profile(
                HANGING,
                "Image that never comes",
                image=HANGING,
                session={"startTimeout": SHORT},
                storage={"home": None},
            ),
            _profile(GREEDY, "Two shares", resources=_TWO, access={"everyone": True}),
            _profile(WATCHED, "Approved by nobody", session={"startTimeout": SHORT}),
            _profile(QUEUED, "In a queue"),
        ],
    }


def _profile(
    name: str, title: str, *, image: str = IMAGE, resources: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    amounts = {"cpu": {"request": "100m", "limit": 2}, "memory": {"request": "256Mi", "limit": "1Gi"}}
    place = resources or {"pool": "cpu"}
    return {
        "name": name,
        "version": 1,
        "state": "hidden",
        "displayName": title,
        "images": [image],
        "resources": amounts | place,
        **more,
    }


@contextmanager
def hanging_registry(cluster: Cluster, kind: Kind = Kind.BLOBS) -> Iterator[None]:
    """Let the registry hold back all of a kind until the block ends; then it goes on where it was."""
    faults = Registry(cluster).faults
    faults.set(Fault(kind=kind, hang=True))
    try:
        yield
    finally:
        faults.clear()


@contextmanager
def absent_webhook(cluster: Cluster, profile: str) -> Iterator[str]:
    """Have the pods of a profile approved by a webhook that nothing serves, as when its controller is down.

    Yields its name.
    """
    name = f"{profile}.browser-tests.example.com"
    hook = {
        "name": name,
        "clientConfig": {"url": "https://127.0.0.1:1/approve"},
        "rules": [_POD_IS_MADE],
        "objectSelector": {"matchLabels": {LABEL_PROFILE: profile}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    with _applied(cluster, _admission("ValidatingWebhookConfiguration", name, webhooks=[hook])):
        until_in_force(cluster, NAMESPACE, name, labels={LABEL_PROFILE: profile})
        yield name


@contextmanager
def queue(cluster: Cluster, profile: str) -> Iterator[None]:
    """Hold the pods of a profile back by the gate that Kueue's webhook puts on them."""
    name = f"{profile}.browser-tests.example.com"
    gates = f'[Object.spec.schedulingGates{{name: "{KUEUE_GATE}"}}]'
    expression = f"Object{{spec: Object.spec{{schedulingGates: {gates}}}}}"
    selector = {"matchLabels": {LABEL_PROFILE: profile}}
    policy = {
        "matchConstraints": {"resourceRules": [_POD_IS_MADE], "objectSelector": selector},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    with _applied(
        cluster,
        _admission("MutatingAdmissionPolicy", name, spec=policy),
        _admission("MutatingAdmissionPolicyBinding", name, spec={"policyName": name}),
    ):
        until_in_force(cluster, NAMESPACE, KUEUE_GATE, labels={LABEL_PROFILE: profile})
        yield


def admit(cluster: Cluster, profile: str) -> None:
    """Take the gate off the pods of a profile, as Kueue does when it is their turn."""
    selector = f"--selector={LABEL_PROFILE}={profile}"
    names = cluster.kubectl("get", "pods", f"--namespace={NAMESPACE}", selector, "--output=name").split()
    patch = '--patch=[{"op": "remove", "path": "/spec/schedulingGates"}]'
    for name in names:
        cluster.kubectl("patch", name, f"--namespace={NAMESPACE}", "--type=json", patch)


_POD_IS_MADE: Final = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
}


def _admission(kind: str, name: str, **parts: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        **parts,
    }


@contextmanager
def _applied(cluster: Cluster, *manifests: dict[str, Any]) -> Iterator[None]:
    cluster.apply(*manifests)
    try:
        yield
    finally:
        for manifest in manifests:
            cluster.kubectl("delete", manifest["kind"], manifest["metadata"]["name"], "--wait=false")
