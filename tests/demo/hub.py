"""The demo's hub on a running cluster: JupyterHub and its proxy, with a hub's rights and no more.

Shell: starts programs, talks to the cluster.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hub_ext.render.rights import build_rights
from hub_ext.rights import HUB
from tests.demo.proxy import ensure_proxy
from tests.demo.services import NAMESPACE, PLACES, build_namespace, start_list, write_kubeconfig
from tests.devcluster import cache
from tests.devcluster.addons.registry import Registry
from tests.devcluster.answering import until_answering
from tests.devcluster.build import ensure_image
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import HostError
from tests.devcluster.host import run
from tests.devcluster.processes import Process

__all__ = ["FOLDER", "IMAGE", "NAMESPACE", "PROXY_ID", "Hub", "check_listener", "running_hub"]

FOLDER = Path(__file__).parent
ACCOUNT = "hub"
IMAGE = "notebook"
PROXY_ID = "proxy.pid"
"""File with the proxy's process id, in the hub's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A running hub."""

    url: str
    """What to open in a browser."""
    cluster: Cluster
    process: Process

    def check(self) -> None:
        """Raise `DevClusterError` if the hub ended or the cluster broke down."""
        self.process.check()
        self.cluster.check()


@contextlib.contextmanager
def running_hub(
    cluster: Cluster,
    *,
    address: str = "127.0.0.1",
    port: int = 0,
    more: Mapping[str, Any] | None = None,
) -> Iterator[Hub]:
    """Start the hub and yield it once it answers; it ends with the block.

    Parameters
    ----------
    address
        Where it listens for browsers.
    port
        0 takes any free one.
    more
        Images, pools and profiles to add to the demo's catalog.

    Raises `DevClusterError`, of which `HostError` if another program took the port meanwhile.
    """
    folder = cluster.state_dir / "hub"
    cache.remove(folder)  # an earlier hub of this cluster would remember servers that are gone
    folder.mkdir(mode=0o700)
    url = f"http://{address}:{port or cluster.port('hub-public')}"
    cluster.apply(build_namespace(NAMESPACE), _account(), *build_rights(HUB, PLACES))
    settings: dict[str, Any] = {
        "catalog": str(_write_catalog(cluster, folder, more or {})),
        "folder": str(folder),
        "hub_url": f"http://{cluster.host_address}:{cluster.port('hub')}",
        "namespace": NAMESPACE,
        "proxy": [str(shutil.which("node")), str(ensure_proxy())],
        # What is added is broken on purpose, or slow: nobody is to fetch it ahead.
        "services": start_list(
            cluster, folder, skip=[one["name"] for one in (more or {}).get("profiles", [])]
        ),
        "proxy_api_url": f"http://127.0.0.1:{cluster.port('proxy-api')}",
        "url": url,
    }
    environment = {
        "DEMO": json.dumps(settings),
        "KUBECONFIG": str(write_kubeconfig(cluster, folder, ACCOUNT)),
        "PYTHONPATH": str(FOLDER.parents[1]),
    }
    config = FOLDER / "jupyterhub_config.py"
    process = cluster.popen("hub", [sys.executable, "-m", "jupyterhub", "--config", config], env=environment)
    hub = Hub(url=url, cluster=cluster, process=process)
    try:
        for one in (settings["hub_url"], url):  # the second by way of the proxy
            until_answering(f"{one}/hub/health", what=f"hub at {one}", check=hub.check)
        check_listener(folder, int(url.rpartition(":")[2]))
        yield hub
    finally:
        process.stop(timeout=60)


def _account() -> dict[str, Any]:
    """The hub's, which Zero to JupyterHub's chart brings in a cluster of its own."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
    }


def check_listener(folder: Path, port: int) -> None:
    """Raise `HostError` if the proxy whose id is in `folder` does not have the port.

    It lives on when another program was faster, and whatever that one answers would pass for the hub.
    """
    proxy = (folder / PROXY_ID).read_text().strip()
    found = run("ss", "--no-header", "--listening", "--tcp", "--numeric", "--processes", f"sport = :{port}")
    if f"pid={proxy}," not in found:
        raise HostError(
            f"port {port} was taken by another program while the cluster started",
            "start again, or give --port",
        )


def _write_catalog(cluster: Cluster, folder: Path, more: Mapping[str, Any]) -> Path:
    """The demo's catalog, with the image as this cluster's registry offers it."""
    catalog = yaml.safe_load((FOLDER / "catalog.yaml").read_text())
    catalog["images"][IMAGE]["ref"] = Registry(cluster).publish(
        ensure_image(IMAGE), f"gpu-workspaces/{IMAGE}"
    )
    for key, part in more.items():
        catalog[key] = [*catalog[key], *part] if isinstance(part, list) else {**catalog[key], **part}
    path = folder / "catalog.yaml"
    path.write_text(yaml.safe_dump(catalog, sort_keys=False))
    return path
