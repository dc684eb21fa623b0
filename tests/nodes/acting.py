"""What tests do with pods on real nodes, and what they read of them.

Shell: talks to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.devcluster.cluster import Cluster
from tests.devcluster.waiting import until

SECONDS = 90


def run_in(cluster: Cluster, namespace: str, pod: str, script: str) -> str:
    """Run a shell script in a pod's container and return what it printed; raises `CommandFailedError`."""
    return cluster.kubectl("exec", f"--namespace={namespace}", pod, "--", "sh", "-c", script).strip()


def wait_until_ready(cluster: Cluster, namespace: str, *pods: str) -> None:
    for pod in pods:
        cluster.wait_for(f"pod/{pod}", "condition=Ready", namespace=namespace)


def events(cluster: Cluster, namespace: str, name: str) -> dict[str, list[str]]:
    """Messages of an object's events, by reason, oldest first."""
    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={name}"
    found: dict[str, list[str]] = {}
    for event in sorted(cluster.get(path)["items"], key=lambda event: event["metadata"]["creationTimestamp"]):
        found.setdefault(event["reason"], []).append(event["message"])
    return found


def wait_for_event(cluster: Cluster, namespace: str, pod: str, reason: str, *parts: str) -> str:
    """Wait for an event of a reason whose message has all of the parts; returns the message."""
    matching: list[str] = []

    def missing() -> str | None:
        seen = events(cluster, namespace, pod)
        matching[:] = [text for text in seen.get(reason, []) if all(part in text for part in parts)]
        return None if matching else f"events of {pod}: {seen}"

    until(missing, what=f"event {reason} with {parts}", timeout=SECONDS, check=cluster.check)
    return matching[0]


def wait_while(cluster: Cluster, missing: Callable[[], str | None], *, what: str) -> None:
    """Wait while something is missing, as long as the cluster is well."""
    until(missing, what=what, timeout=SECONDS, check=cluster.check)


def with_image(pod: dict[str, Any], image: str, *, policy: str = "IfNotPresent") -> dict[str, Any]:
    """Let the first container of a pod use an image."""
    pod["spec"]["containers"][0] |= {"image": image, "imagePullPolicy": policy}
    return pod
