"""A catalog whose profiles have limits of their own."""

from __future__ import annotations

from typing import Any

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog

CATALOG: dict[str, Any] = {
    "apiVersion": "gpu-workspaces/v1",
    "kind": "Catalog",
    "images": {"base": {"ref": f"registry.example.com/base@sha256:{'a' * 64}", "displayName": "Plain"}},
    "pools": {
        "h200": {"nodeSelector": {"pool": "h200"}, "gpu": {"product": "NVIDIA-H200", "sharing": "exclusive"}}
    },
    "teams": {"nlp": {"groups": ["nlp"]}, "vision": {"groups": ["vision"]}},
    "defaults": {"session": {"warnBefore": ["30m", "10m", "2m"]}},
    "profiles": [
        {
            "name": "full",
            "version": 2,
            "displayName": "One full card",
            "images": ["base"],
            "resources": {
                "cpu": {"request": 1, "limit": 2},
                "memory": {"request": "1Gi", "limit": "2Gi"},
                "gpu": {"pool": "h200"},
            },
            "session": {"idleTimeout": "90m", "maxDuration": "12h"},
        }
    ],
}


def catalog_with(**session: Any) -> Catalog:
    """The catalog, with other limits of its profile and none that all profiles share."""
    (profile,) = CATALOG["profiles"]
    return load_catalog({**CATALOG, "defaults": {}, "profiles": [{**profile, "session": session}]})
