"""The reference page of preflight, in the parts that come from code: ``python -m services.preflight.page``.

Pure: gives a text.
"""

from __future__ import annotations

import sys

from .checks import CHECKS
from .kinds import KINDS, OPTIONAL, resource_of
from .problems import Check

NEEDS = {
    "catalog": "the catalog",
    "pool_nodes": "nodes of the catalog's pools",
    "values": "the values",
    "metrics": "the metrics (`--prometheus`)",
    "pods_on_gpus": "a running pod with a GPU",
    "trials": "answers to a dry run (a live cluster and the right to create pods)",
    "hub": "a running hub (`--hub`)",
    "hub_spawner": "a running hub, with the scope `read:hub`",
    "hub_running": "a live cluster and its running hub, with the scopes `list:users` and `read:servers`",
    "hub_services": "a running hub, with the scopes `list:services` and `read:roles:services`",
}
BEGIN = "<!-- from code: python -m services.preflight.page -->"


def page() -> str:
    """Give everything below the mark: how to write a dump, and a section for each check."""
    core = " ".join(resource_of(kind) for kind in KINDS if kind not in OPTIONAL)
    more = " ".join(resource_of(kind) for kind in KINDS if kind in OPTIONAL)
    return "\n".join(
        [
            BEGIN,
            "",
            "## A dump of a cluster",
            "",
            "```bash",
            "mkdir dump",
            f"for kind in {core}; do",
            "  kubectl get $kind --all-namespaces --output=json > dump/$kind.json",
            "done",
            "# Add-ons, where the cluster has them:",
            f"for kind in {more}; do",
            "  kubectl get $kind --all-namespaces --output=json > dump/$kind.json || rm dump/$kind.json",
            "done",
            "gpu-workspaces preflight --cluster dump --values values.yaml",
            "```",
            "",
            "Such files may hold secrets. `--save` leaves out variables, commands and arguments of",
            "containers, copies of objects in annotations, and all of ConfigMaps but how cards are shared.",
            "",
            "## Checks",
            "",
            *(line for check in CHECKS for line in _section(check)),
        ]
    )


def _section(check: Check) -> list[str]:
    needs = ", ".join([f"`{kind}`" for kind in check.kinds] + [NEEDS[need] for need in check.needs])
    about = (check.run.__doc__ or "").strip()
    return [f"### {check.code}", "", f"{check.title}.", "", f"Looks at {needs}. {about}".strip(), ""]


if __name__ == "__main__":
    sys.stdout.write(page())
