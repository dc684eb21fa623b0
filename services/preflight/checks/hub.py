"""What a running hub says of itself.

Sources: JupyterHub's REST interface (`/hub/api/`, `/info`, `/services`), its security advisories.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hub_ext.errors import Severity
from hub_ext.names import HUB_SERVER, HUB_USER
from hub_ext.render.rights import PREFIX
from hub_ext.rights import HUB

from ..problems import Check, Problem
from ..scene import Object, Scene, ServerKey

OLDEST: Final = (5, 4)
SAFE: Final = (5, 5, 1)
"""Older ones let people with shared access do more than they were given (GHSA-c4gm-pwx9-9w8j)."""
SPAWNER: Final = "WorkspaceSpawner"
_FULL: Final = frozenset({"admin"})


def version_runs(scene: Scene) -> Iterator[Problem]:
    version = scene.hub.version if scene.hub else ""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < OLDEST:
        yield Problem(
            message=f"the hub is JupyterHub {version}, which this bundle does not run with",
            evidence="/hub/api/",
            help="Take Zero to JupyterHub 4.4 or newer, with JupyterHub 5.4 or newer.",
            path="hub",
        )
    elif numbers < SAFE:
        yield Problem(
            message=f"JupyterHub {version} has known holes",
            evidence="fixed in 5.5.1: GHSA-c4gm-pwx9-9w8j, GHSA-69wv-m5fw-2fhp",
            help="Update the chart, and build the hub's image on its new one.",
            path="hub",
            severity=Severity.WARNING,
        )


def spawner_runs(scene: Scene) -> Iterator[Problem]:
    spawner = scene.hub_spawner or ""
    if not spawner.endswith(SPAWNER):
        yield Problem(
            message="the hub does not use this bundle's spawner: people see the chart's own page",
            evidence=f"spawner {spawner}",
            help="See layers/base.yaml: hub.extraConfig calls hub_ext.configure(c). Was the hub updated?",
            path="hub",
        )


def services_known(scene: Scene) -> Iterator[Problem]:
    """Services that are wanted are known to the hub, with their own role and no other power."""
    known = scene.hub_services or {}
    for rights in scene.rights:
        if rights is HUB:
            continue
        found = known.get(rights.name)
        if found is None:
            yield Problem(
                message=f"the hub knows no service {rights.name}",
                evidence=f"/hub/api/services: {', '.join(sorted(known)) or 'none'}",
                help="Give Helm the values that `gpu-workspaces manifests --part values` prints.",
                path=f"services.{rights.name}",
            )
            continue
        yield from _role(rights.name, found, scoped=bool(rights.scopes))


def _role(name: str, found: Mapping[str, Any], *, scoped: bool) -> Iterator[Problem]:
    roles, own = set(found.get("roles") or []), f"{PREFIX}-{name}"
    if found.get("admin") or roles & _FULL:
        yield Problem(
            message=f"service {name} may do everything at the hub",
            evidence=f"roles {', '.join(sorted(roles))}",
            help="Take `admin` away from it; its role of hub.loadRoles is all that it needs.",
            path=f"services.{name}",
        )
    if scoped and own not in roles:
        yield Problem(
            message=f"service {name} has not the role that lets it work",
            evidence=f"roles {', '.join(sorted(roles)) or 'none'}, not {own}",
            help="Give Helm hub.loadRoles as `gpu-workspaces manifests --part values` prints it.",
            path=f"services.{name}",
        )


def services_answer(scene: Scene) -> Iterator[Problem]:
    """Asked without a token by way of the proxy, as a browser would come."""
    for name, wrong in (scene.hub.health if scene.hub else {}).items():
        if wrong:
            yield Problem(
                message=f"service {name} is not well",
                evidence=wrong,
                help="Status 503 or 504: the proxy does not reach it; see the NetworkPolicies and its pod. "
                "404: the hub does not know its address.",
                path=f"services.{name}",
            )


def workspaces_known(scene: Scene) -> Iterator[Problem]:
    """After a restore of an older database, workspaces may run that nobody can open and no culler stops."""
    known = scene.hub_running or frozenset()
    for namespace in scene.namespaces:
        for pod in scene.objects.inside("Pod", namespace):
            key = _server_of(pod)
            if key is None or key in known:
                continue
            name = pod["metadata"]["name"]
            server = f"workspace {key[1]!r}" if key[1] else "workspace"
            yield Problem(
                message=f"the hub does not know that a {server} of {key[0]!r} runs",
                evidence=f"pod {name} in {namespace}, since {pod['metadata'].get('creationTimestamp')}",
                help=f"kubectl delete pod --namespace {namespace} {name}; or its user starts the same one "
                "again. The home stays either way.",
                path=f"pods/{namespace}/{name}",
                severity=Severity.WARNING,
            )


def _server_of(pod: Object) -> ServerKey | None:
    """Give whose workspace a pod is; None for other pods, and for one that is ending or over."""
    metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    over = metadata.get("deletionTimestamp") or phase in {"Succeeded", "Failed"}
    if labels.get("component") != "singleuser-server" or HUB_USER not in notes or over:
        return None
    return str(notes[HUB_USER]), str(notes.get(HUB_SERVER, ""))


CHECKS = (
    Check(code="hub-version", title="The hub is new enough", needs=("hub",), run=version_runs),
    Check(code="hub-spawner", title="The hub runs this bundle", needs=("hub_spawner",), run=spawner_runs),
    Check(
        code="hub-services",
        title="The hub knows the services, and gives them their roles",
        needs=("hub_services",),
        run=services_known,
    ),
    Check(
        code="hub-health", title="The services answer behind the proxy", needs=("hub",), run=services_answer
    ),
    Check(
        code="unknown-workspaces",
        title="The hub knows every workspace that runs",
        kinds=("Pod",),
        needs=("hub_running",),
        run=workspaces_known,
    ),
)
