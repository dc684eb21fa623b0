"""Values of the Zero-to-JupyterHub chart: what is refused, ignored, or does the opposite of what it says.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from hub_ext.catalog.problems import path_of
from hub_ext.errors import QuantityError, Severity
from hub_ext.importer.chart import check_keys_of_chart
from hub_ext.importer.codes import Findings
from hub_ext.importer.values import empty_mappings, helm_merge, value_at
from hub_ext.units import parse_quantity

from ..problems import Check, Problem
from ..scene import Scene

_SPAWNERS: Final = frozenset(
    {"gpu-workspaces", "hub_ext.WorkspaceSpawner", "hub_ext.spawner.WorkspaceSpawner"}
)
_REPLACED: Final = {
    "extra_labels": "the label that lets workspaces reach the hub",
    "volumes": "the home",
    "volume_mounts": "the home",
    "environment": "what singleuser.extraEnv sets",
    "extra_annotations": "what singleuser.extraAnnotations sets",
}


def chart_takes_them(scene: Scene) -> Iterator[Problem]:
    found = Findings(lambda _: (None, None))
    check_keys_of_chart(scene.values, (), found)
    for one in found.found:
        yield Problem(message=one.message, help=one.help, path=one.path)


def spawner_is_set(scene: Scene) -> Iterator[Problem]:
    extra = scene.value("hub.extraConfig")
    configured = isinstance(extra, Mapping) and any("configure(" in str(text) for text in extra.values())
    spawner = scene.value("hub.config.JupyterHub.spawner_class")
    if spawner not in _SPAWNERS and not configured:
        yield Problem(
            message="the hub does not use this bundle: users would see the chart's own page",
            evidence=f"hub.config.JupyterHub.spawner_class: {spawner}",
            help="Set it to gpu-workspaces, or call hub_ext.configure in hub.extraConfig.",
            path="hub.config.JupyterHub.spawner_class",
        )


def nothing_is_replaced(scene: Scene) -> Iterator[Problem]:
    """Traits under `hub.config` replace what the chart would set; they do not add to it."""
    for spawner in ("KubeSpawner", "WorkspaceSpawner"):
        for trait, lost in _REPLACED.items():
            if scene.value(f"hub.config.{spawner}.{trait}") is not None:
                yield Problem(
                    message=f"hub.config.{spawner}.{trait} replaces what the chart sets: {lost} is gone",
                    help="Use the key under singleuser, which adds to it.",
                    path=f"hub.config.{spawner}.{trait}",
                )


def empty_maps(scene: Scene) -> Iterator[Problem]:
    """Helm merges maps: an empty one takes nothing away."""
    before: dict[str, Any] = {}
    for name, layer in scene.layers:
        for loc in empty_mappings(layer):
            stays, path = value_at(before, loc), path_of(tuple(map(str, loc)))
            if stays and isinstance(stays, Mapping):
                yield Problem(
                    message=f"{path}: {{}} takes nothing away; what an earlier file says stays",
                    evidence=f"{name}, after {stays}",
                    help="Write null for each key that is to go, such as key: null.",
                    path=path,
                    severity=Severity.WARNING,
                )
        before = helm_merge(before, layer)


def resource_maps(scene: Scene) -> Iterator[Problem]:
    for kind in ("limits", "guarantees"):
        path = f"singleuser.extraResource.{kind}"
        found = scene.value(path)
        if found is None:
            continue
        if not isinstance(found, Mapping):
            yield Problem(
                message=f"{path} has to be a map of names to amounts",
                evidence=str(found)[:100],
                help='Write it as {"nvidia.com/gpu": 1}.',
                path=path,
            )
            continue
        for name, amount in found.items():
            yield from _amount(path, str(name), amount)


def _amount(path: str, name: str, amount: Any) -> Iterator[Problem]:
    if isinstance(amount, Mapping):
        inner = ".".join([name, *amount])
        yield Problem(
            message=f"{path}.{name} is a map; a name with dots was split",
            evidence=str(dict(amount))[:100],
            help=f'Quote the name in YAML ("{inner}"), or escape its dots in --set (\\.).',
            path=f"{path}.{name}",
        )
        return
    try:
        parse_quantity(amount)
    except QuantityError as error:
        yield Problem(message=f"{path}.{name}: {error.message}", help=error.help, path=f"{path}.{name}")


def one_culler(scene: Scene) -> Iterator[Problem]:
    if "idle-culler" in (scene.value("hub.services") or {}) and scene.value("cull.enabled") is not False:
        yield Problem(
            message="the chart's own culler runs beside this bundle's and knows nothing of GPUs and warnings",
            evidence="hub.services.idle-culler, and cull.enabled is not false",
            help="Set cull.enabled: false.",
            path="cull.enabled",
        )


def homes_outlive_culling(scene: Scene) -> Iterator[Problem]:
    kept = scene.value("hub.config.KubeSpawner.delete_pvc") is False
    kept = kept or scene.value("hub.config.WorkspaceSpawner.delete_pvc") is False
    for key in ("users", "removeNamedServers"):
        if scene.value(f"cull.{key}") and scene.value("cull.enabled") is not False and not kept:
            yield Problem(
                message="idleness deletes homes: what is culled is removed with its volume",
                evidence=f"cull.{key}: true, and delete_pvc is not false",
                help="Set hub.config.KubeSpawner.delete_pvc: false, or leave cull.users and "
                "removeNamedServers off.",
                path=f"cull.{key}",
            )


def hub_outlives_failures(scene: Scene) -> Iterator[Problem]:
    limit = scene.value("hub.consecutiveFailureLimit")
    if limit != 0:
        yield Problem(
            message=f"{limit or 5} starts that fail in a row, whosever they are, end the hub",
            evidence=f"hub.consecutiveFailureLimit: {limit or '5, as the chart has it'}",
            help="Set it to 0; watch gpu_workspaces_starts_total instead.",
            path="hub.consecutiveFailureLimit",
            severity=Severity.WARNING,
        )


def names_cannot_meet(scene: Scene) -> Iterator[Problem]:
    """Two users may never have one object: `a` with server `b` is not `ab`."""
    named = scene.value("hub.allowNamedServers") or scene.value("hub.config.JupyterHub.allow_named_servers")
    templates = {
        "singleuser.storage.dynamic.pvcNameTemplate": scene.value(
            "singleuser.storage.dynamic.pvcNameTemplate"
        ),
        "singleuser.podNameTemplate": scene.value("singleuser.podNameTemplate"),
        "hub.config.KubeSpawner.pvc_name_template": scene.value("hub.config.KubeSpawner.pvc_name_template"),
        "hub.config.KubeSpawner.pod_name_template": scene.value("hub.config.KubeSpawner.pod_name_template"),
    }
    for path, template in templates.items():
        if named and isinstance(template, str) and re.search(r"\{username\}-{0,2}\{servername\}", template):
            yield Problem(
                message=f"two users can get the same object: {template} joins names without a mark between "
                "them",
                evidence="user ab without a server name, and user a with server b",
                help="Write {user_server}, which keeps them apart.",
                path=path,
            )


def hub_is_found(scene: Scene) -> Iterator[Problem]:
    """In namespaces of teams the short name of the hub's Service is nobody's."""
    others = [name for name in scene.namespaces if name != scene.hub_namespace]
    path = "hub.config.JupyterHub.hub_connect_url"
    url = scene.value(path)
    if others and "." not in (urlsplit(str(url or "")).hostname or ""):
        yield Problem(
            message=f"workspaces in {', '.join(others)} cannot find the hub, and every start there times out",
            evidence=f"{path}: {url or 'not set, so that the chart has http://hub:8081'}",
            help=f"Set it to http://hub.{scene.hub_namespace}.svc:8081, as "
            "`gpu-workspaces manifests --part values` does.",
            path=path,
        )


CHECKS = (
    Check(code="chart-keys", title="The chart takes the values", needs=("values",), run=chart_takes_them),
    Check(code="spawner", title="The hub uses this bundle", needs=("values",), run=spawner_is_set),
    Check(
        code="replaced-traits",
        title="No setting replaces what the chart needs",
        needs=("values",),
        run=nothing_is_replaced,
    ),
    Check(code="empty-map", title="What is cleared is cleared", needs=("values",), run=empty_maps),
    Check(
        code="resource-map",
        title="Resources are maps of names to amounts",
        needs=("values",),
        run=resource_maps,
    ),
    Check(code="one-culler", title="One culler decides", needs=("values",), run=one_culler),
    Check(
        code="home-deletion",
        title="Homes outlive idleness",
        needs=("values",),
        run=homes_outlive_culling,
    ),
    Check(
        code="failure-limit",
        title="The hub outlives failed starts",
        needs=("values",),
        run=hub_outlives_failures,
    ),
    Check(code="hub-address", title="Workspaces find the hub", needs=("values",), run=hub_is_found),
    Check(
        code="name-templates",
        title="No two users get one object",
        needs=("values",),
        run=names_cannot_meet,
    ),
)
