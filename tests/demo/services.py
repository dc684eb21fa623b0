"""The services of the demo's hub: its processes, each with an account of its own and the rights it declares.

Shell: talks to the cluster, writes files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hub_ext.catalog.load import load_catalog
from hub_ext.cli.manifests import brought_by
from hub_ext.managed import declared
from hub_ext.render.documents import thaw
from hub_ext.render.kueue import render_kueue
from hub_ext.render.rights import Places, build_rights
from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image
from tests.devcluster.cluster import Cluster
from tests.devcluster.processes import MARK

NAMESPACE = "workspaces"
PULLS = "gpu-workspaces-prepuller"
RUNS = "runs"
PLACES = Places(hub=NAMESPACE, pulls=PULLS, jobs=RUNS)
SERVICES = ("idle-culler", "job-handoff", "prepuller")
TOOL = "helper"
"""Image that lends the prepuller its busybox."""


def start_list(cluster: Cluster, folder: Path, *, skip: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Prepare accounts and namespaces, and give what `hub_ext.managed.Managed` takes for each service.

    `skip` names profiles whose images nobody fetches ahead.
    """
    cluster.apply(build_namespace(PULLS))
    handoff = handoff_settings(cluster, folder)
    cluster.apply(*brought_by("services.job_handoff", handoff))
    queues = render_kueue(load_catalog(folder / "catalog.yaml"), jobs_namespace=RUNS)
    cluster.apply(*(thaw(document) for document in queues.documents))
    tool = Registry(cluster).publish(ensure_image(TOOL), f"gpu-workspaces/{TOOL}")
    settings = {
        "idle-culler": culler_settings(folder),
        "job-handoff": handoff,
        "prepuller": {"pods": {"namespace": PULLS, "tool": tool}, "skip": list(skip)},
    }
    return [_entry(cluster, folder, name, settings[name]) for name in SERVICES]


def culler_settings(folder: Path) -> dict[str, Any]:
    """The culler at a pace that can be watched; it acts, where an installation would observe first."""
    return {
        "every": "5s",
        "listHubEvery": "5s",
        "namespace": NAMESPACE,
        "state": str(folder / "culler.json"),
        "policy": {
            "mode": "act",
            "grace": "30s",
            "defaults": {"idleTimeout": "2h", "keepFor": "10m"},
        },
    }


def handoff_settings(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """Runs of the demo, with their files in a folder of the hub."""
    return {
        "namespace": RUNS,
        "serverNamespaces": [NAMESPACE],
        "store": {"url": f"file://{folder}/runs"},
        "runner": {"url": f"{url_of(cluster, 'job-handoff')}/services/job-handoff/"},
    }


def url_of(cluster: Cluster, service: str) -> str:
    """An address that pods and the proxy reach alike."""
    return f"http://{cluster.host_address}:{cluster.port(service)}"


def build_namespace(name: str) -> dict[str, Any]:
    """A namespace that takes no pod with rights over its node."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _entry(cluster: Cluster, folder: Path, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    cluster.apply(*build_rights(declared(name)[1], PLACES))
    return {
        "name": name,
        "url": url_of(cluster, name),
        "settings": settings,
        # A hub hands its services none of its own environment, and a killed one leaves them running.
        "environment": {
            "KUBECONFIG": str(write_kubeconfig(cluster, folder, name)),
            MARK: str(cluster.state_dir),
        },
    }


def write_kubeconfig(cluster: Cluster, folder: Path, account: str) -> Path:
    """A kubeconfig of one account in the hub's namespace."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    token = cluster.kubectl("create", "token", account, f"--namespace={NAMESPACE}", "--duration=48h").strip()
    for user in config["users"]:
        user["user"] = {"token": token}
    path = folder / f"{account}.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path
