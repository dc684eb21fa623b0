"""Pods that stand for the parts of an installation, and what each of them reaches.

Shell: talks to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.devcluster.cluster import Cluster
from tests.nodes.acting import run_in, wait_while, with_image
from tests.nodes.pods import build_pod

SECONDS = 5
"""How long one connection may take."""
AT_ONCE = 4


@dataclass(frozen=True, kw_only=True)
class Part:
    """One pod; it listens at its ports."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    ports: Mapping[str, int]
    """By the names that policies may call them; a name is good for one port of a pod."""
    node: str = "cpu-1"

    def build(self, image: str) -> dict[str, Any]:
        serve = "".join(f"httpd -p {port} -h /tmp; " for port in self.ports.values())
        pod = with_image(
            build_pod(
                self.name,
                self.namespace,
                node=self.node,
                command=["sh", "-c", f"{serve}exec sleep infinity"],
            ),
            image,
        )
        pod["metadata"]["labels"] = dict(self.labels)
        container = pod["spec"]["containers"][0]
        container["ports"] = [{"name": name, "containerPort": port} for name, port in self.ports.items()]
        container["resources"] = {"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}}
        return pod


def addresses(cluster: Cluster, parts: Iterable[Part]) -> dict[str, str]:
    """The address of each part's pod, by its name, once all of them are ready."""
    wanted = {(part.namespace, part.name): part.name for part in parts}
    found: dict[str, str] = {}

    def missing() -> str | None:
        for pod in cluster.get("/api/v1/pods")["items"]:
            name = wanted.get((pod["metadata"]["namespace"], pod["metadata"]["name"]))
            conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", [])}
            if name and conditions.get("Ready") == "True":
                found[name] = pod["status"]["podIP"]
        return ", ".join(sorted(set(wanted.values()) - set(found))) or None

    wait_while(cluster, missing, what="all parts to be ready")
    return found


def reached(cluster: Cluster, part: Part, targets: Mapping[str, str]) -> frozenset[str]:
    """Which of the targets, `address:port` by name, accept a connection from inside a part's pod."""
    names = {where: name for name, where in targets.items()}
    script = (
        f"for t in {' '.join(names)}; do "
        f"(timeout {SECONDS} nc ${{t%:*}} ${{t##*:}} -e true 2>/dev/null && echo $t) & done; wait"
    )
    return frozenset(names[line] for line in run_in(cluster, part.namespace, part.name, script).split())


def all_reached(
    cluster: Cluster, parts: Iterable[Part], targets: Mapping[str, Mapping[str, str]]
) -> dict[str, frozenset[str]]:
    """The same for several parts, by their names; each is asked for targets of its own."""
    parts = list(parts)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        found = list(pool.map(lambda part: reached(cluster, part, targets[part.name]), parts))
    return {part.name: one for part, one in zip(parts, found, strict=True)}
