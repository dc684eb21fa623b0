"""Volumes that exist in the API only, as the machines do.

Pure.
"""

from __future__ import annotations

from typing import Any


def build_volume(name: str, storage_class: str, **more: Any) -> dict[str, Any]:
    """Build one of a class; `more` goes into its ``spec``."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "hostPath": {"path": f"/var/empty/{name}"},
            **more,
        },
    }
