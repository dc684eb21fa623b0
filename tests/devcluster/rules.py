"""Rules and kinds, which the API server knows a moment after they were made.

Shell: asks the API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .errors import CommandFailedError
from .kube import KubeCluster
from .waiting import until

_SAFE: Final = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the level `restricted` asks for."""


def build_careful(namespace: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Build a pod that every level of pod security takes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asked-for", "namespace": namespace, "labels": dict(labels or {})},
        "spec": {"containers": [{"name": "main", "image": "none", "securityContext": _SAFE}]},
    }


def until_in_force(
    cluster: KubeCluster, namespace: str, sign: str, *, labels: Mapping[str, str] | None = None
) -> None:
    """Wait until a rule for pods that was just made has its effect. Makes nothing.

    Parameters
    ----------
    sign
        What stands in the pod, or in the refusal, where the rule is in force.
    labels
        Those of a pod that the rule is about.
    """
    _until_told(cluster, build_careful(namespace, labels), sign)


def enforce(cluster: KubeCluster, namespace: str, level: str = "restricted") -> None:
    """Let a namespace take pods of a level of pod security only; returns when others are refused."""
    cluster.kubectl("label", "namespace", namespace, f"pod-security.kubernetes.io/enforce={level}")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "careless", "namespace": namespace},
        "spec": {"hostNetwork": True, "containers": [{"name": "main", "image": "none"}]},
    }
    _until_told(cluster, pod, f'violates PodSecurity "{level}')


def until_admitted(cluster: KubeCluster, namespace: str) -> None:
    """Wait until a careful pod is taken again: rules that are gone have their effect a moment longer."""
    _until_told(cluster, build_careful(namespace), '"uid": ')


def until_served(cluster: KubeCluster, names: Iterable[str]) -> None:
    """Wait until kinds that were just made can be spoken of; names as in `jobs.batch`."""
    wanted = set(names)

    def missing() -> str | None:
        try:
            told = cluster.kubectl("api-resources", "--cached=false", "--output=name")
        except CommandFailedError as error:  # of servers beside, which it asks too; the rest it has told
            told = error.output
        return ", ".join(sorted(wanted.difference(told.split()))) or None

    until(missing, what="new kinds to be served", check=cluster.check)


def _until_told(cluster: KubeCluster, pod: Mapping[str, Any], sign: str) -> None:
    """Ask what would become of a pod until the answer has the sign."""
    text = json.dumps(pod)

    def missing() -> str | None:
        try:
            told = cluster.kubectl("create", "--dry-run=server", "--output=json", "--filename=-", input=text)
        except CommandFailedError as error:
            told = error.output
        return None if sign in told else told

    until(missing, what=f"a rule with {sign} to be in force")
