"""The changes that an administrator makes to a copy of `helm-values`, as the guide's first step lists them.

Shell: copies and writes files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "helm-values"
SET = "enterprise"
TAG = "0.1.0"
BUCKET = "gpu-workspaces-runs"
CLIENT = "gpu-workspaces"
ADMINS = "platform"
"""Name of the group whose members administer the hub."""
TEAMS = {"nlp": "nlp", "vision": "vision"}
"""Name of the provider's group of each team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is so in this enterprise and no other."""

    images: str
    """Registry and folder of the images."""
    notebook: str
    """Reference by digest of the image of workspaces."""
    host: str
    """Address at which the API server, the store, Prometheus and the provider are."""
    api_port: int
    hub: str
    """How people reach the hub, without a slash at its end."""
    node_port: int
    store: str
    prometheus: str
    realm: str
    """Address of the provider's endpoints: `…/protocol/openid-connect`."""
    database: str
    """`host:port`."""
    storage_class: str

    @property
    def nearby(self) -> dict[str, Any]:
        """A rule of a NetworkPolicy that leads to the host, at any port."""
        return {"to": [{"ipBlock": {"cidr": f"{self.host}/32"}}]}


def write(folder: Path, facts: Facts) -> None:
    """Copy what comes with the project and change what is this enterprise's own."""
    shutil.copytree(FOLDER, folder)
    changes: dict[str, Callable[[dict[str, Any], Facts], None]] = {
        f"sets/{SET}.yaml": _set,
        "layers/base.yaml": _base,
        "layers/oidc.yaml": _sign_in,
        "layers/postgres.yaml": _database,
        f"catalogs/{SET}.yaml": _catalog,
    }
    for name, change in changes.items():
        document = yaml.safe_load((folder / name).read_text(encoding="utf-8"))
        change(document, facts)
        (folder / name).write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    (folder / "own.yaml").write_text(yaml.safe_dump(_own(facts)), encoding="utf-8")


def _set(found: dict[str, Any], facts: Facts) -> None:
    found["image"] = f"{facts.images}/services:{TAG}"
    found["apiServer"] = {"addresses": [f"{facts.host}/32"], "ports": [facts.api_port]}
    found["values"].append("../own.yaml")
    services = found["services"]
    services["idle-culler"]["settings"]["prometheus"]["url"] = facts.prometheus
    services["idle-culler"]["egress"] = [facts.nearby]
    services["prepuller"]["settings"]["pods"]["tool"] = f"{facts.images}/busybox:{TAG}"
    store = {"url": f"s3://{BUCKET}/", "endpoint": facts.store, "allowHttp": True}
    services["job-handoff"]["settings"]["store"] = store
    services["job-handoff"]["egress"] = [facts.nearby]


def _base(found: dict[str, Any], facts: Facts) -> None:
    found["hub"]["image"] = {"name": f"{facts.images}/hub", "tag": TAG}
    found["singleuser"]["image"] = {"name": f"{facts.images}/notebook", "tag": TAG}


def _sign_in(found: dict[str, Any], facts: Facts) -> None:
    found["hub"]["config"]["GenericOAuthenticator"] |= {
        "client_id": CLIENT,
        "oauth_callback_url": f"{facts.hub}/hub/oauth_callback",
        "authorize_url": f"{facts.realm}/auth",
        "token_url": f"{facts.realm}/token",
        "userdata_url": f"{facts.realm}/userinfo",
        "admin_groups": [f"/{ADMINS}"],
    }


def _database(found: dict[str, Any], facts: Facts) -> None:
    found["hub"]["db"]["url"] = f"postgresql+psycopg2://jupyterhub@{facts.database}/jupyterhub"


def _catalog(found: dict[str, Any], facts: Facts) -> None:
    """Small machines: shares of processors and memory are theirs, and a node has one card."""
    catalog = found["custom"]["gpuWorkspaces"]
    catalog["images"]["pytorch"]["ref"] = facts.notebook
    for pool in catalog["pools"].values():
        if "gpu" in pool:
            pool["gpu"]["perNode"] = 1
    for name, group in TEAMS.items():
        catalog["teams"][name]["groups"] = [f"/{group}"]
    catalog["defaults"]["storage"] |= {
        "home": {"class": facts.storage_class, "size": "1Gi", "accessMode": "ReadWriteOnce"},
        "scratch": {"sizeLimit": "1Gi"},
        "sharedMemory": "64Mi",
    }
    for profile in catalog["profiles"]:
        profile["resources"] |= {
            "cpu": {"request": "100m", "limit": 2},
            "memory": {"request": "256Mi", "limit": "1Gi"},
        }


def _own(facts: Facts) -> dict[str, Any]:
    """What is the chart's: how people reach the hub, and an image that no node here can fetch."""
    service = {"type": "NodePort", "nodePorts": {"http": facts.node_port}}
    return {
        "proxy": {"service": service, "chp": {"image": {"name": f"{facts.images}/proxy", "tag": TAG}}},
    }
