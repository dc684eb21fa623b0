"""What an enterprise has before it installs: images in a registry with a login, a database, people, a store.

Shell: talks to the cluster and to what stands around it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.devcluster import build
from tests.devcluster.addons.object_store import store_of
from tests.devcluster.addons.registry import PASSWORD, USER, Registry
from tests.devcluster.cluster import Cluster
from tests.devcluster.keycloak import Account, Keycloak, build_realm
from tests.devcluster.object_store import Keys, user_may
from tests.nodes.enterprise.files import ADMINS, BUCKET, CLIENT, TAG, TEAMS
from tests.nodes.pods import build_namespace

IMAGES = {"hub": "hub", "services": "services", "notebook": "notebook", "proxy": "proxy", "busybox": "helper"}
"""Images by the names that the guide gives them; each as the build calls it."""
REALM = "main"
DATABASE = "database"
ADA = Account(name="ada", password="ada-of-the-tests", groups=(TEAMS["nlp"],))
VERA = Account(name="vera", password="vera-of-the-tests", groups=(TEAMS["vision"],))
ROOT = Account(name="root", password="root-of-the-tests", groups=(ADMINS,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What stands in no file."""

    client: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    database: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    store: Keys = field(repr=False)

    def variables(self) -> dict[str, str]:
        """Those that the guide's commands ask for."""
        return {
            "REGISTRY_USER": USER,
            "REGISTRY_PASSWORD": PASSWORD,
            "CLIENT_SECRET": self.client,
            "DB_PASSWORD": self.database,
            "STORE_KEY": self.store.access,
            "STORE_SECRET": self.store.secret,
        }


def publish_images(cluster: Cluster) -> tuple[str, str]:
    """Offer all images to who logs in; gives their registry and folder, and the notebook's by digest."""
    registry = Registry(cluster)
    layouts = build.ensure([f"image:{name}" for name in IMAGES.values()])
    published = {
        name: registry.publish(layouts[f"image:{built}"], f"gpu-workspaces/{name}:{TAG}")
        for name, built in IMAGES.items()
    }
    return f"{registry.login_address}/gpu-workspaces", registry.with_login(published["notebook"])


def make_bucket(cluster: Cluster) -> Keys:
    """Make the bucket of runs, and a user who may do there what the guide asks for."""
    store = store_of(cluster)
    store.make_bucket(BUCKET)
    keys = store.make_user("runs")
    store.allow(BUCKET, *user_may(keys, "GetObject", "PutObject", "DeleteObject", bucket=BUCKET))
    return keys


def add_people(keycloak: Keycloak, *, hub: str, client_secret: str) -> str:
    """Make the realm; gives the address of its endpoints."""
    keycloak.add_realm(
        build_realm(
            REALM,
            client_id=CLIENT,
            client_secret=client_secret,
            redirect_uris=[f"{hub}/hub/oauth_callback"],
            accounts=[ADA, VERA, ROOT],
        )
    )
    return keycloak.endpoint(REALM, "auth").removesuffix("/auth")


def start_database(cluster: Cluster, *, password: str) -> str:
    """Run PostgreSQL with an empty database; gives its `host:port`."""
    image = Registry(cluster).publish(build.ensure_image("postgres"), "devcluster/postgres")
    cluster.apply(build_namespace(DATABASE), *build_database(image, password))
    cluster.wait_for("deployment/postgres", "condition=Available", namespace=DATABASE)
    return f"postgres.{DATABASE}:5432"


def build_database(image: str, password: str) -> list[dict[str, Any]]:
    """Build the pod that is PostgreSQL, its password and its Service."""
    labels = {"app": "postgres"}
    variables = {"POSTGRES_USER": "jupyterhub", "POSTGRES_DB": "jupyterhub", "POSTGRES_PASSWORD": password}
    container = {
        "name": "postgres",
        "image": image,
        "envFrom": [{"secretRef": {"name": "postgres"}}],
        "ports": [{"containerPort": 5432}],
        "readinessProbe": {"exec": {"command": ["pg_isready", "--host=127.0.0.1"]}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql"}],
    }
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    metadata = {"name": "postgres", "namespace": DATABASE}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": variables},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 5432}]},
        },
    ]
