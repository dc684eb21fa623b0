"""What tests do with pods on real nodes, and what they read of them.

Shell: talks to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.waiting import until

ANSWER_SECONDS = 15
"""How long one request may take before it counts as unanswered; by itself that decides nothing."""
T = TypeVar("T")


def run_in(cluster: Cluster, namespace: str, pod: str, script: str) -> str:
    """Run a shell script in a pod's container and return what it printed; raises `CommandFailedError`."""
    return cluster.kubectl("exec", f"--namespace={namespace}", pod, "--", "sh", "-c", script).strip()


def fetch(cluster: Cluster, namespace: str, pod: str, url: str) -> str:
    """What a pod gets from a URL in one try; raises `CommandFailedError`."""
    # Not `wget -T`: with it, Debian's static busybox ends by a segmentation fault.
    return run_in(cluster, namespace, pod, f"timeout {ANSWER_SECONDS} wget -q -O- {url}")


def eventually(cluster: Cluster, act: Callable[[], T], *, what: str) -> T:
    """What an action gives once it succeeds: names, routes and rules follow the pods they are for."""
    given: list[T] = []

    def missing() -> str | None:
        try:
            given.append(act())
        except CommandFailedError as error:
            return error.output
        return None

    wait_while(cluster, missing, what=what)
    return given[0]


def ask(cluster: Cluster, namespace: str, pod: str, url: str) -> str:
    """The first answer that a pod gets from a URL; one that does not come is asked for again."""
    return eventually(
        cluster, lambda: fetch(cluster, namespace, pod, url), what=f"{url} to answer {namespace}/{pod}"
    )


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

    until(missing, what=f"event {reason} with {parts}", check=cluster.check)
    return matching[0]


def wait_while(cluster: Cluster, missing: Callable[[], str | None], *, what: str) -> None:
    """Wait while something is missing, as long as the cluster is well."""
    until(missing, what=what, check=cluster.check)


def with_image(pod: dict[str, Any], image: str, *, policy: str = "IfNotPresent") -> dict[str, Any]:
    """Let the first container of a pod use an image."""
    pod["spec"]["containers"][0] |= {"image": image, "imagePullPolicy": policy}
    return pod
