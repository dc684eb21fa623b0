"""Keys of the Zero-to-JupyterHub chart, which refuses to be installed with others.

Source: values.schema.yaml of chart 4.4.0 and of its main branch (2026-07); a test compares.

Pure: no clock, no network.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.problems import Loc, path_of
from ..spelling import did_you_mean
from .codes import Code, Findings

KEYS: Final[Mapping[Loc, tuple[str, ...]]] = {
    (): (
        "enabled",
        "fullnameOverride",
        "nameOverride",
        "custom",
        "imagePullSecret",
        "imagePullSecrets",
        "hub",
        "rbac",
        "proxy",
        "singleuser",
        "scheduling",
        "prePuller",
        "ingress",
        "httpRoute",
        "cull",
        "debug",
        "global",
    ),
    ("singleuser",): (
        "allowPrivilegeEscalation",
        "cloudMetadata",
        "cmd",
        "cpu",
        "defaultUrl",
        "events",
        "extraAnnotations",
        "extraContainers",
        "extraEnv",
        "extraFiles",
        "extraLabels",
        "extraNodeAffinity",
        "extraPodAffinity",
        "extraPodAntiAffinity",
        "extraPodConfig",
        "extraResource",
        "extraTolerations",
        "fsGid",
        "image",
        "initContainers",
        "lifecycleHooks",
        "memory",
        "networkPolicy",
        "networkTools",
        "nodeSelector",
        "podNameTemplate",
        "profileList",
        "serviceAccountName",
        "startTimeout",
        "storage",
        "uid",
    ),
    ("proxy",): (
        "annotations",
        "chp",
        "deploymentStrategy",
        "https",
        "labels",
        "secretSync",
        "secretToken",
        "service",
        "traefik",
    ),
}
"""Keys that are allowed at a place."""

_MEANT: Final = {
    "singleuser.spec": "Fields of the pod stand under singleuser.extraPodConfig.",
    "singleuser.gid": "The group of mounted volumes is singleuser.fsGid; "
    "the group of the process is hub.config.KubeSpawner.gid.",
    "singleuser.tolerations": "Write singleuser.extraTolerations.",
    "singleuser.volumes": "Write singleuser.storage.extraVolumes.",
    "proxy.extraEnv": "Write proxy.chp.extraEnv.",
}


def check_keys_of_chart(chart: Any, root: Loc, findings: Findings) -> None:
    """Say which keys the chart does not know, and where they belong."""
    for place, known in KEYS.items():
        section = chart
        for step in place:
            section = section.get(step) if isinstance(section, Mapping) else None
        for key in section if isinstance(section, Mapping) else ():
            if key not in known:
                message = f"the chart has no key {key!r} here and refuses to be installed with it"
                remedy = _remedy((*place, key), known)
                findings.add(Code.UNKNOWN_KEY, (*root, *place, key), message, help=remedy)


def _remedy(loc: Loc, known: tuple[str, ...]) -> str:
    own = f"Data of your own stands under custom.{loc[-1]}."
    return _MEANT.get(path_of(loc)) or did_you_mean(str(loc[-1]), known, own, alike=0.8)
