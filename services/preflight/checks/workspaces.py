"""What values of the chart put into the pod of every workspace, before any profile.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hub_ext.errors import Severity

from ..problems import Check, Problem
from ..scene import Scene

_PODS: Final = ("singleuser.extraPodConfig", "hub.config.KubeSpawner.extra_pod_config")
_CONTAINERS: Final = (
    "singleuser.initContainers",
    "singleuser.extraContainers",
    "hub.config.KubeSpawner.init_containers",
    "hub.config.KubeSpawner.extra_containers",
)
_VOLUMES: Final = ("singleuser.storage.extraVolumes", "hub.config.KubeSpawner.volumes")
_ENVIRONMENTS: Final = ("singleuser.extraEnv", "hub.config.KubeSpawner.environment")
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
_POWERS: Final = frozenset({"ALL", "NET_ADMIN", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE"})
_SECRET: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_KEY|CREDENTIALS?|PASSWORD|PASSWD|SECRET|TOKEN)(?:_|$)"
)
"""In names of variables; `HF_TOKEN` is one, `TOKENIZERS_PARALLELISM` is none."""


def unrestricted(spec: Mapping[str, Any]) -> Iterator[str]:
    """Say what of a pod gives it rights over its node."""
    yield from (key for key in _HOST if spec.get(key))
    for volume in _entries(spec.get("volumes")):
        if isinstance(volume.get("hostPath"), Mapping):
            yield f"hostPath {volume['hostPath'].get('path')}"
    for container in [*_entries(spec.get("containers")), *_entries(spec.get("initContainers"))]:
        context = container.get("securityContext")
        context = context if isinstance(context, Mapping) else {}
        capabilities = context.get("capabilities")
        added = capabilities.get("add") if isinstance(capabilities, Mapping) else None
        if context.get("privileged"):
            yield f"privileged container {container.get('name')}"
        elif powers := _POWERS & {str(one) for one in added or ()}:
            yield f"container {container.get('name')} with {', '.join(sorted(powers))}"


def _entries(found: Any) -> list[Mapping[str, Any]]:
    """Give entries of a list, or of a map of names to them, as the chart takes both."""
    if isinstance(found, Mapping):
        found = found.values()
    if not isinstance(found, Iterable) or isinstance(found, str):
        return []
    return [one for one in found if isinstance(one, Mapping)]


def values_give_no_rights_over_nodes(scene: Scene) -> Iterator[Problem]:
    specs = {path: scene.value(path) for path in _PODS}
    specs |= {path: {"containers": scene.value(path)} for path in _CONTAINERS}
    specs |= {path: {"volumes": scene.value(path)} for path in _VOLUMES}
    if scene.value("hub.config.KubeSpawner.privileged"):
        specs["hub.config.KubeSpawner.privileged"] = {
            "containers": [{"name": "notebook", "securityContext": {"privileged": True}}]
        }
    for path, spec in specs.items():
        reasons = list(unrestricted(spec)) if isinstance(spec, Mapping) else []
        if reasons:
            yield Problem(
                message="every workspace gets rights over its node",
                evidence=f"{path}: {', '.join(reasons)}",
                help="Take it out: who has a node has all that runs there. Share a folder by a claim.",
                path=path,
            )


def users_share_no_secret(scene: Scene) -> Iterator[Problem]:
    for path in _ENVIRONMENTS:
        for name, value in _variables(scene.value(path)):
            if told := _secret(name, value):
                yield Problem(
                    message=f"every user can read the same secret: {name}",
                    evidence=told,
                    help="Give people keys of their own, or let a proxy hold the key.",
                    path=f"{path}.{name}",
                )
    for path in _VOLUMES:
        for volume in _entries(scene.value(path)):
            if isinstance(volume.get("secret"), Mapping):
                yield Problem(
                    message=f"every user can read the same secret: volume {volume.get('name')}",
                    evidence=f"secret {volume['secret'].get('secretName')}",
                    help="Give people keys of their own, or let a proxy hold the key.",
                    path=path,
                    severity=Severity.WARNING,
                )


def _variables(found: Any) -> Iterator[tuple[str, Any]]:
    """Give variables of a map, or of a list of them."""
    if isinstance(found, Mapping):
        yield from ((str(name), value) for name, value in found.items())
    elif isinstance(found, list):
        yield from ((str(one.get("name")), one) for one in _entries(found))


def _secret(name: str, value: Any) -> str:
    """Say where a variable has a secret from; empty if it has none. The secret itself is not told."""
    if isinstance(value, Mapping):
        source = value.get("valueFrom")
        reference = source.get("secretKeyRef") if isinstance(source, Mapping) else None
        if isinstance(reference, Mapping):
            return f"secretKeyRef {reference.get('name')}/{reference.get('key')}"
        value = value.get("value")
    plain = isinstance(value, str) and value and "{" not in value and _SECRET.search(name.upper())
    return "written into the values in plain text" if plain else ""


def policies_stay_closed(scene: Scene) -> Iterator[Problem]:
    rules = scene.value("singleuser.networkPolicy.egressAllowRules")
    for key, reached in (
        ("cloudMetadataServer", "the cloud's metadata, and with it the rights of their node"),
        ("privateIPs", "nodes, the API server, databases and whatever else has a private address"),
    ):
        if isinstance(rules, Mapping) and rules.get(key) is True:
            yield Problem(
                message=f"workspaces may reach {reached}",
                evidence=f"egressAllowRules.{key}: true",
                help="Set it to false; name what workspaces need under singleuser.networkPolicy.egress.",
                path=f"singleuser.networkPolicy.egressAllowRules.{key}",
                severity=Severity.ERROR if key == "cloudMetadataServer" else Severity.WARNING,
            )


CHECKS = (
    Check(
        code="node-rights",
        title="No setting gives workspaces rights over nodes",
        needs=("values",),
        run=values_give_no_rights_over_nodes,
    ),
    Check(code="shared-secret", title="Users share no secret", needs=("values",), run=users_share_no_secret),
    Check(
        code="open-policy",
        title="No setting opens the network of workspaces",
        needs=("values",),
        run=policies_stay_closed,
    ),
)
