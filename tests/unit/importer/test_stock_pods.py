"""The pods of a draft against those that stock KubeSpawner makes of the same list.

Both are made offline. A difference must be one that the import named, or one that the product always makes:
cards are hidden from profiles without GPU, and the pod is closed further.
"""

import math
import os
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kubespawner.spawner
import pytest
import yaml
from kubernetes_asyncio.client import ApiClient
from kubespawner import KubeSpawner
from traitlets.config import Config

from hub_ext.catalog.compose import compose
from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.problems import path_of
from hub_ext.importer.codes import Code
from hub_ext.importer.draft import import_values
from hub_ext.importer.values import find_hub, helm_merge
from hub_ext.render.pod import UserFacts, apply, build_fragment
from hub_ext.units import parse_quantity

FOLDERS = [Path(__file__).parents[2] / "golden" / "profile_lists", os.environ.get("PROFILE_LISTS")]
FILES = sorted(path for folder in FOLDERS if folder for path in Path(folder).glob("*.yaml"))

STATED = {
    "cpu request": {Code.NOT_STATED},
    "memory request": {Code.NOT_STATED},
    "accelerators": {Code.TWO_ACCELERATORS},
    "tolerations": {Code.ADDED_NOT_REPLACED},
    "mounts": {Code.ADDED_NOT_REPLACED},
    "environment": {Code.NOT_CARRIED},
    "affinity": {Code.NOT_CARRIED},
    "annotations": {Code.NOT_CARRIED},
}
"""What may differ, if the import said so."""


def hub_config(values: dict[str, Any]) -> Config:
    """What the chart makes of the values, as far as these files use it."""
    single = values.get("singleuser") or {}
    config = Config()
    spawner = config.KubeSpawner
    image = single.get("image", {})
    if image:
        spawner.image = f"{image['name']}:{image['tag']}"
    for name, key in (("mem", "memory"), ("cpu", "cpu")):
        for bound in ("guarantee", "limit"):
            if (single.get(key) or {}).get(bound) is not None:
                spawner[f"{name}_{bound}"] = single[key][bound]
    spawner.node_selector = {k: v for k, v in (single.get("nodeSelector") or {}).items() if v is not None}
    spawner.environment = dict(single.get("extraEnv") or {})
    spawner.volumes = {"home": {"name": "volume-ada", "persistentVolumeClaim": {"claimName": "claim-ada"}}}
    spawner.volume_mounts = {"home": {"name": "volume-ada", "mountPath": "/home/jovyan"}}
    toleration = {"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "user"}
    spawner.tolerations = [toleration | {"effect": "NoSchedule"}]
    spawner.update(values.get("hub", {}).get("config", {}).get("KubeSpawner", {}))
    return config


@pytest.fixture
def make_pod(monkeypatch):
    monkeypatch.setattr(kubespawner.spawner, "load_config", lambda **_: None)
    monkeypatch.setattr(kubespawner.spawner, "shared_client", lambda _: SimpleNamespace())

    serializer = ApiClient.__new__(ApiClient)

    async def make(values, profiles, options):
        spawner = KubeSpawner(config=hub_config(values), _mock=True)
        spawner.user.name = "ada"
        spawner.profile_list = profiles
        spawner.user_options = options
        await spawner.load_user_options()
        return serializer.sanitize_for_serialization(await spawner.get_pod_manifest())

    return make


def facts(pod: dict[str, Any]) -> dict[str, Any]:
    """What matters of a pod, as the API server would understand it."""
    spec = pod["spec"]
    container = spec["containers"][0]
    requests, limits = (dict(container["resources"].get(k) or {}) for k in ("requests", "limits"))
    requests = {**limits, **requests}
    env = {e["name"]: e.get("value") for e in container["env"] if e["name"] != "NVIDIA_VISIBLE_DEVICES"}
    sizes = {k: env.pop(k, None) for k in ("CPU_GUARANTEE", "CPU_LIMIT", "MEM_GUARANTEE", "MEM_LIMIT")}
    del sizes["CPU_GUARANTEE"], sizes["MEM_GUARANTEE"]
    labels = {k: v for k, v in pod["metadata"]["labels"].items() if not k.startswith("gpu-workspaces")}
    annotations = {k: v for k, v in pod["metadata"]["annotations"].items() if not k.startswith("gpu-work")}
    volumes = {v["name"]: {k: s for k, s in v.items() if k != "name"} for v in spec.get("volumes") or ()}
    return {
        "image": container["image"],
        "command": container.get("args"),
        "cpu request": millis(requests.get("cpu")),
        "cpu limit": millis(limits.get("cpu")),
        "memory request": requests.get("memory") and parse_quantity(requests["memory"]),
        "memory limit": limits.get("memory") and parse_quantity(limits["memory"]),
        "accelerators": {k: int(v) for k, v in limits.items() if "/" in k},
        "told limits": (millis(sizes["CPU_LIMIT"]), sizes["MEM_LIMIT"]),
        "environment": env,
        "node selector": spec.get("nodeSelector") or {},
        "tolerations": {
            tuple(sorted({"operator": "Equal", **t}.items())) for t in spec.get("tolerations") or ()
        },
        "mounts": {
            m["mountPath"]: (volumes[m["name"]], m.get("readOnly")) for m in container["volumeMounts"]
        },
        "pull secrets": spec.get("imagePullSecrets") or [],
        "affinity": spec.get("affinity"),
        "labels": labels,
        "annotations": annotations,
    }


def millis(cpu: Any) -> int | None:
    """Millicores as the kubelet understands them: rounded up."""
    return math.ceil(parse_quantity(cpu) * 1000) if cpu is not None else None


def combinations(entry: dict[str, Any]) -> list[dict[str, str]]:
    questions = entry.get("profile_options") or {}
    answers = product(*(question["choices"] for question in questions.values()))
    return [dict(zip(questions, picked, strict=True)) for picked in answers]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_each_pod_comes_through_or_a_reason_is_given(path, make_pod):
    text = path.read_text(encoding="utf-8")
    draft = import_values([(path.name, text)])
    catalog = load_catalog(draft.catalog)
    values = helm_merge({}, yaml.safe_load(text))
    hub = find_hub(values, SimpleNamespace(add=lambda *_, **__: None))
    assert hub is not None
    number = 0
    baseline = await make_pod(values, [], {})
    for index, (entry, profile) in enumerate(zip(hub.profiles, catalog.profiles, strict=True)):
        place = f"{path_of((*hub.loc, index))}."
        said = {f.code for f in draft.findings if f"{f.path}.".startswith(place)}
        for old_picks in combinations(entry):
            combination = draft.combinations[number]
            number += 1
            old = await make_pod(values, [entry], old_picks)
            workspace = compose(catalog, profile, combination.picks)
            new = apply(baseline, build_fragment(catalog, workspace, UserFacts(name="ada")))
            before, after = facts(old), facts(new)
            for aspect in before:
                if before[aspect] != after[aspect]:
                    assert STATED.get(aspect, set()) & said, (
                        f"{profile.name} {old_picks}: {aspect} was {before[aspect]}, is {after[aspect]}"
                    )
    assert number == len(draft.combinations)
