"""A pod as KubeSpawner makes it before any profile, reduced to what every hub has.

For previews without a hub; a real hub adds volumes, variables and its own placement.
Source: `kubespawner.objects.make_pod`, 7.1.

Pure: no clock, no network.
"""

from typing import Any

from ..names import HUB_SERVER, HUB_USER, label_value, object_name
from .fragment import NOTEBOOK

PORT = 8888


def bare_pod(user: str, server: str = "") -> dict[str, Any]:
    """Build the pod of a user's server with nothing in it but the start command."""
    name = object_name("jupyter", user, server) if server else object_name("jupyter", user)
    labels = {
        "app.kubernetes.io/component": "singleuser-server",
        "component": "singleuser-server",
        HUB_USER: label_value(user),
    }
    container = {
        "name": NOTEBOOK,
        "args": ["jupyterhub-singleuser"],
        "ports": [{"name": "notebook-port", "containerPort": PORT}],
    }
    annotations = {HUB_USER: user, HUB_SERVER: server}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"restartPolicy": "OnFailure", "containers": [container]},
    }
