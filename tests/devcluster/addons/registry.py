"""An image registry on the host: Debian's docker-registry behind a proxy that can slow or spoil its answers.

Two addresses serve the same images: one open, one that asks for a login. Nodes know both as plain HTTP.

Shell: starts programs, writes files.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.devcluster.addons.fault_proxy import FaultProxy
from tests.devcluster.addons.storage import publish
from tests.devcluster.addons.variants import write_variant
from tests.devcluster.answering import until_answering
from tests.devcluster.build import ensure_image, ensure_tools
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import StateError
from tests.devcluster.processes import Process
from tests.devcluster.spec import Addon

USER = "puller"
PASSWORD = "only-for-the-development-cluster"
FOLDER = "registry"
TOOLS = ("docker-registry", "htpasswd")
CHECKOUT = Path(__file__).resolve().parents[3]


class Registry:
    """The registry of a running cluster: any process of the host may make a handle."""

    def __init__(self, cluster: Cluster) -> None:
        if Addon.REGISTRY not in cluster.spec.addons:
            raise StateError(
                cluster.name, "has no registry", "add `registry` to `addons` in the cluster file"
            )
        self.open_address = cluster.registry
        """`host:port`, the first part of references to images that anybody may pull."""
        self.login_address = f"{cluster.host_address}:{cluster.port('registry-login')}"
        """`host:port` of the same images for those who log in as `USER` with `PASSWORD`."""
        self.faults = FaultProxy(self.open_address)
        """Faults of both addresses."""
        self._storage = storage_dir(cluster)
        self._programs = cluster.programs

    def publish(self, layout: Path, name: str) -> str:
        """Offer the image in an OCI layout folder as `repository[:tag]`; returns its reference by digest.

        Raises `ValueError` when the folder does not hold exactly one image.
        """
        repository, _, tag = name.partition(":")
        digest = publish(layout, self._storage, repository=repository, tag=tag or "latest")
        return f"{self.open_address}/{repository}@{digest}"

    def publish_built(self, name: str) -> str:
        """Offer an image that the cluster was started with; returns its reference by digest."""
        return self.publish(self._programs[f"image:{name}"], f"devcluster/{name}")

    def publish_variant(self, name: str, *, mark: str, padding_bytes: int = 0) -> str:
        """Offer a variant of an image, `name-mark`: no node has it, nor the layer of random padding.

        Nodes may have the image itself from elsewhere; a kubelet that pulled one image under two names takes
        the first for somebody else's.
        """
        layout = self._storage.parent / "variants" / f"{name}-{mark}"
        if not layout.exists():
            padding = os.urandom(padding_bytes)
            source = self._programs.get(f"image:{name}") or ensure_image(name)
            write_variant(source, layout, mark=mark, padding=padding)
        return self.publish(layout, f"devcluster/{name}-{mark}")

    def with_login(self, reference: str) -> str:
        """The same image at the address that asks for a login."""
        return reference.replace(self.open_address, self.login_address, 1)

    def pull_secret(self, name: str, namespace: str, *, password: str = PASSWORD) -> dict[str, Any]:
        """Build the Secret that lets a pod pull from the address with login."""
        login = base64.b64encode(f"{USER}:{password}".encode()).decode()
        config = json.dumps({"auths": {self.login_address: {"auth": login}}})
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": config},
        }


def prepare(cluster: Cluster) -> None:
    """Start both registries and the proxy in front of them, and tell the nodes that they speak plain HTTP."""
    registry = Registry(cluster)
    folder = cluster.state_dir / FOLDER
    storage_dir(cluster).mkdir(parents=True, exist_ok=True)
    passwords = folder / "htpasswd"
    passwords.write_text(_password_line())
    auth = {"htpasswd": {"realm": cluster.name, "path": str(passwords)}}
    behind = {
        registry.open_address: _serve(cluster, "registry-open-storage", auth=None),
        registry.login_address: _serve(cluster, "registry-login-storage", auth=auth),
    }
    pairs = [f"{front}={upstream}" for front, (upstream, _) in behind.items()]
    argv = [sys.executable, "-m", "tests.devcluster.addons.fault_proxy", *pairs]
    proxy = cluster.popen("registry-proxy", argv, env={"PYTHONPATH": str(CHECKOUT)})
    for address, (_, process) in behind.items():
        for node in cluster.nodes.values():
            hosts = node.certs_dir / address / "hosts.toml"
            hosts.parent.mkdir(parents=True, exist_ok=True)
            hosts.write_text(_hosts(address))

        def check(process: Process = process) -> None:
            process.check()
            proxy.check()

        url = f"http://{address}/v2/"  # one of the two asks for a login
        until_answering(url, what=f"registry at {address}", refusals=True, check=check)


def storage_dir(cluster: Cluster) -> Path:
    """Where the registry keeps its images."""
    return cluster.state_dir / FOLDER / "storage"


def _serve(cluster: Cluster, name: str, *, auth: dict[str, Any] | None) -> tuple[str, Process]:
    address = f"127.0.0.1:{cluster.port(name)}"
    config = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(storage_dir(cluster))}},
        "http": {"addr": address, "secret": cluster.name},
        **({"auth": auth} if auth else {}),
    }
    file = cluster.state_dir / FOLDER / f"{name}.yaml"
    file.write_text(yaml.safe_dump(config))
    program = ensure_tools(["docker-registry"])["docker-registry"]
    return address, cluster.popen(name, [program, "serve", file], env={"OTEL_TRACES_EXPORTER": "none"})


def _hosts(address: str) -> str:
    return f'server = "http://{address}"\n[host."http://{address}"]\ncapabilities = ["pull", "resolve"]\n'


def _password_line() -> str:
    """The login, hashed by bcrypt: the only kind that the registry takes."""
    program = ensure_tools(["htpasswd"])["htpasswd"]
    argv = [str(program), "-nbB", USER, PASSWORD]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
