"""`gpu-workspaces render --target pod` says exactly what the spawner then creates."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import yaml

from tests.devcluster.kube import KubeCluster
from tests.hub.conftest import CATALOG
from tests.hub.harness import CONFIG, Hub

OPTIONS = {"profile": "full", "version": 2, "image": "torch", "cards": "two"}
PER_START = ("JUPYTERHUB_", "JPY_")
"""Variables that differ from start to start, or that only a running hub knows: tokens and addresses."""


def previewed(hub: Hub, user: str, groups: str) -> list[dict[str, Any]]:
    """What the command prints, with the environment that the hub itself was started with."""
    command = [sys.executable, "-m", "hub_ext.cli", "render", str(CATALOG), "--target", "pod"]
    person = ["--user", user, "--groups", groups, "--profile", "full@2"]
    choices = ["--choice", "image=torch", "--choice", "cards=two", "--hub-config", str(CONFIG)]
    done = subprocess.run(
        [*command, *person, *choices], capture_output=True, text=True, check=True, env=hub.environment
    )
    return list(yaml.safe_load_all(done.stdout))


def comparable(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod without what changes from start to start."""
    containers = [
        {**c, "env": {e["name"]: e.get("value") for e in c["env"] if not e["name"].startswith(PER_START)}}
        if "env" in c
        else c
        for c in pod["spec"]["containers"]
    ]
    metadata = {key: pod["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"metadata": metadata, "spec": {**pod["spec"], "containers": containers}}


def lacks(whole: Any, part: Any, place: str = "pod") -> list[str]:
    """Where `whole` differs from `part`; it may have more, which is the API server's defaulting."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return [m for key, value in part.items() for m in lacks(whole.get(key), value, f"{place}.{key}")]
    if isinstance(part, list) and isinstance(whole, list) and len(whole) >= len(part):
        return [m for n, value in enumerate(part) for m in lacks(whole[n], value, f"{place}[{n}]")]
    return [] if whole == part else [f"{place}: {whole!r}, not {part!r}"]


def test_the_pod_of_the_preview_is_the_pod_that_starts(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    groups = ",".join(hub.api("GET", f"users/{member}").json()["groups"])
    claim, pod = previewed(hub, member, groups)
    hub.start_server(member, OPTIONS)
    hub.wait_until_ready(member)
    place = f"/api/v1/namespaces/{hub_namespace}"
    started = cluster.get(f"{place}/pods/{pod['metadata']['name']}")
    assert lacks(comparable(started), comparable(pod)) == []
    kept = cluster.get(f"{place}/persistentvolumeclaims/{claim['metadata']['name']}")
    assert lacks(kept["spec"], claim["spec"]) == []
