"""The images that `images/` describes, built and started as an admin's cluster would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.browser.conftest import SignIn
from tests.demo.hub import NAMESPACE, Hub
from tests.demo.users import VERA
from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image

VERSIONS = (
    "import hub_ext.spawner, jupyterhub, kubespawner; print(jupyterhub.__version__, kubespawner.__version__)"
)


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
    cluster = hub.cluster
    image = Registry(cluster).publish(ensure_image("hub"), "gpu-workspaces/hub")
    security = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "hub",
        "image": image,
        "command": ["python3", "-c", VERSIONS],
        "securityContext": security,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "hub-image", "namespace": NAMESPACE},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    cluster.apply(pod)
    try:
        cluster.wait_for("pod/hub-image", "jsonpath={.status.phase}=Succeeded", namespace=NAMESPACE)
        hub_version, spawner_version = cluster.kubectl(
            "logs", "hub-image", f"--namespace={NAMESPACE}"
        ).split()
    finally:
        cluster.kubectl("delete", "pod", "hub-image", f"--namespace={NAMESPACE}", "--wait=true")
    assert hub_version.startswith("5.5.")
    assert spawner_version.startswith("7.0.")
