"""From feature discovery's file to the node's labels: what node-feature-discovery does with it.

Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OWNED_ANNOTATION = "nfd.node.kubernetes.io/feature-labels"
"""Where node-feature-discovery keeps the names of the labels it set, so that it can take them away again."""


def parse_labels(text: str) -> dict[str, str]:
    """Read a features file: `name=value` per line, `true` where there is no value.

    Source: node-feature-discovery, "Customization guide", hooks and feature files.
    """
    lines = (line.strip() for line in text.splitlines())
    return {
        name: value if equals else "true"
        for name, equals, value in (
            line.partition("=") for line in lines if line and not line.startswith("#")
        )
    }


def label_patch(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Build the merge patch that gives a node these labels and takes those set before.

    Parameters
    ----------
    annotations
        The node's.
    """
    before = annotations.get(OWNED_ANNOTATION, "")
    gone = [name for name in before.split(",") if name and name not in labels]
    return {
        "metadata": {
            "labels": {**dict.fromkeys(gone), **labels},
            "annotations": {OWNED_ANNOTATION: ",".join(sorted(labels))},
        }
    }
