"""The images that `images/` describes, built and started as an admin's cluster would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.browser.conftest import SignIn
from tests.demo.hub import FOLDER, NAMESPACE, Hub
from tests.demo.services import SERVICES, build_namespace
from tests.demo.users import VERA
from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image

VERSIONS = (
    "import hub_ext.spawner, jupyterhub, kubespawner; print(jupyterhub.__version__, kubespawner.__version__)"
)

OWN = "services-from-image"
"""Namespace of services in pods of their own, beside the demo's, which are processes of its hub."""
SBOM = "gpu-workspaces.jupyter.org/sbom"
WRITABLE = "id -u; find /opt /usr /etc -writable -not -type l 2>/dev/null"
"""Says who runs, and what of the software that one could change."""


def image_config(layout: Path) -> dict[str, Any]:
    """The configuration of the one image in an OCI layout folder."""

    def blob(digest: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((layout / "blobs" / digest.replace(":", "/")).read_text())
        return found

    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    config: dict[str, Any] = blob(blob(described["digest"])["config"]["digest"])["config"]
    return config


def test_notebook_image_says_what_it_is_and_is_not_root() -> None:
    config = image_config(ensure_image("notebook"))
    assert config["User"] == "1000:100"
    assert "Healthcheck" not in config
    assert config["Cmd"] == ["jupyterhub-singleuser"]
    labels = config["Labels"]
    assert labels["gpu-workspaces.jupyter.org/cuda"] == "13.0"
    assert labels["gpu-workspaces.jupyter.org/driver-floor"] == "580.65.06"
    assert labels["org.opencontainers.image.base.name"].startswith("devcluster.test/notebook-plain:")


def test_what_users_install_goes_to_their_home_and_cannot_break_the_server(sign_in: SignIn) -> None:
    pages = sign_in(VERA)
    lab = pages.start("Notebook without GPU")
    lab.new_notebook()
    assert lab.run("import os, sys; print(os.getuid(), sys.prefix, os.access('/opt', os.W_OK))") == (
        "1000 /opt/workspace False"
    )
    # What pip installs for the user is seen by notebooks, and not by what serves them.
    folder = "import pathlib, site; folder = pathlib.Path(site.getusersitepackages())"
    lab.run(f"{folder}; folder.mkdir(parents=True, exist_ok=True); print(folder)")
    lab.run("print((folder / 'jupyterlab.py').write_text('raise SystemExit(42)'))")
    assert (
        lab.run("import os, sys; print(os.system(f'{sys.executable} -c \"import jupyterlab\"') >> 8)") == "42"
    )
    pages.stop()
    pages.start("Notebook without GPU").new_notebook()


def test_hub_image_loads_the_bundle_and_keeps_the_charts_versions(hub: Hub) -> None:
    image = Registry(hub.cluster).publish(ensure_image("hub"), "gpu-workspaces/hub")
    told = ended_pod(hub, image, "Succeeded", f'{WRITABLE}; python3 -c "{VERSIONS}"')
    uid, hub_version, spawner_version = told.split()
    assert uid == "1000"
    assert hub_version.startswith("5.5.")
    assert spawner_version.startswith("7.0.")


@pytest.mark.parametrize("name", ["hub", "services"])
def test_images_with_the_bundle_say_what_is_in_them(name: str) -> None:
    config = image_config(ensure_image(name))
    assert config["User"].partition(":")[0] == "1000"
    assert "Healthcheck" not in config
    labels = config["Labels"]
    assert labels["org.opencontainers.image.licenses"] == "BSD-3-Clause"
    assert labels["org.opencontainers.image.base.name"].startswith("devcluster.test/")
    assert {"org.opencontainers.image.version", "org.opencontainers.image.revision"} <= set(labels)
    assert labels[SBOM].endswith(".cdx.json")


def test_services_come_up_from_their_image(hub: Hub, tmp_path: Path) -> None:
    """As the manifests for pods of their own have them, here with accounts that may do nothing."""
    cluster = hub.cluster
    layout = ensure_image("services")
    image = Registry(cluster).publish(layout, "gpu-workspaces/services")
    cluster.apply(build_namespace(OWN), *_accounts(), *_deployed(tmp_path, image))
    try:
        for service in SERVICES:  # available is what answers at /health
            cluster.wait_for(f"deployment/gpu-workspaces-{service}", "condition=Available", namespace=OWN)
        where = ("exec", f"--namespace={OWN}", "deployment/gpu-workspaces-prepuller", "--")
        listed = image_config(layout)["Labels"][SBOM]
        sbom = json.loads(cluster.kubectl(*where, "cat", listed))
        packages = {part["name"]: part["purl"] for part in sbom["components"]}
        assert {"jupyterhub", "jupyterhub-gpu-workspaces", "libc6"} <= set(packages)
        assert "pip" not in packages
        assert packages["libc6"].startswith("pkg:deb/debian/libc6@")
    finally:
        cluster.kubectl("delete", "namespace", OWN, "--wait=false")


def test_a_service_without_settings_says_so_and_ends(hub: Hub) -> None:
    image = Registry(hub.cluster).publish(ensure_image("services"), "gpu-workspaces/services")
    command = "python3 -m services.prepuller --config /nowhere/settings.yaml"
    uid, _, told = ended_pod(hub, image, "Failed", f"{WRITABLE}; {command}").partition("\n")
    assert uid == "1000"
    assert told.startswith("PrepullerService does not start: ")
    assert "/nowhere/settings.yaml" in told
    assert "Traceback" not in told


def ended_pod(hub: Hub, image: str, phase: str, script: str) -> str:
    """What a script says in an image, in a pod as the level `restricted` takes it."""
    cluster = hub.cluster
    security = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "main", "image": image, "command": ["sh", "-c", script], "securityContext": security}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "from-image", "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [container],
        },
    }
    cluster.apply(pod)
    try:
        cluster.wait_for("pod/from-image", f"jsonpath={{.status.phase}}={phase}", namespace=NAMESPACE)
        return cluster.kubectl("logs", "from-image", f"--namespace={NAMESPACE}")
    finally:
        cluster.kubectl("delete", "pod", "from-image", f"--namespace={NAMESPACE}", "--wait=true")


def _accounts() -> Iterator[dict[str, Any]]:
    """What the chart and the other manifests would bring: accounts, and tokens in the hub's Secret."""
    for service in SERVICES:
        metadata = {"name": service, "namespace": OWN}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    tokens = {f"hub.services.{service}.apiToken": "0123456789abcdef" for service in SERVICES}
    metadata = {"name": "hub", "namespace": OWN}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": tokens}


def _deployed(folder: Path, image: str) -> list[dict[str, Any]]:
    """Deployments and ConfigMaps of an installation."""
    described = folder / "installation.yaml"
    services: dict[str, Any] = {
        "idle-culler": {"settings": {"state": "/tmp/culler.json"}},
        "job-handoff": {"settings": {"store": {"url": "file:///tmp/runs"}}},
        "prepuller": {"settings": {"pods": {"tool": image}}},
    }
    described.write_text(
        yaml.safe_dump(
            {
                "run": "deployments",
                "hubNamespace": OWN,
                "image": image,
                "catalog": str(FOLDER / "catalog.yaml"),
                "values": [],
                "services": services,
            }
        )
    )
    command = [sys.executable, "-m", "hub_ext.cli", "manifests", "--json", str(described)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = json.loads(done.stdout)["result"]
    return [one for one in printed if one["kind"] in {"ConfigMap", "Deployment"}]
