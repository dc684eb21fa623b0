"""The profile list in chart values, and what the hub gives every server beside it.

Several files are merged as Helm merges them: mappings deeply, lists and single values by the last one, and
`null` deletes.

Pure: no clock, no network.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from yaml.nodes import Node

from ..catalog import yaml_values
from ..catalog.problems import Loc, Problem, path_of
from .chart import check_keys_of_chart
from .codes import Code, Findings

_SECTIONS: Final = frozenset({"hub", "proxy", "singleuser"})
"""Sections by which values of the chart are recognized."""
LISTS: Final = ("profileList", "profile_list")
CHART_MEMORY: Final = "1G"
"""What the chart reserves for a server unless the values say otherwise (`singleuser.memory.guarantee`)."""

CHART_IMAGE: Final = "quay.io/jupyterhub/k8s-singleuser-sample:latest"
"""What the chart runs when nobody names an image; the tag is that of the chart."""
SPAWNER_IMAGE: Final = "quay.io/jupyterhub/singleuser:latest"
"""What KubeSpawner runs when nobody names an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One values file as it was read."""

    name: str
    data: Mapping[str, Any]
    node: Node
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """What stands around the profile list."""

    loc: Loc
    """Place of the list."""
    profiles: Any
    """The list as it is written."""
    settings: Mapping[str, tuple[Loc, Any]]
    """KubeSpawner settings for all servers (image, amounts, GPUs): where each stands, and its value."""
    keys: Mapping[str, frozenset[str]]
    """Keys of mappings that the hub sets for all servers, by setting: `environment`, `node_selector`."""
    image: str
    """What runs where no image is named."""


def read_files(texts: Sequence[tuple[str, str]], findings: Findings) -> list[File]:
    """Read values files, given by name and text."""
    files = []
    for name, text in texts:
        try:
            nodes = list(yaml_values.compose(text))
        except yaml.YAMLError as error:
            problem = yaml_values.syntax_problem(error)
            findings.add(Code.UNREADABLE, (), f"{name}: {problem.message}", help=problem.help)
            continue
        builder = yaml_values.Builder()
        if len(nodes) != 1 or not isinstance(data := builder.build(nodes[0]), dict):
            findings.add(Code.UNREADABLE, (), f"{name}: values are one mapping")
            continue
        files.append(File(name=name, data=data, node=nodes[0], problems=tuple(builder.problems)))
    return files


def report_yaml(files: Sequence[File], loc: Loc, findings: Findings) -> None:
    """Say where YAML readers would take something in the profile list for different things."""
    for file in files:
        for problem in file.problems:
            if problem.loc[: len(loc)] == loc:
                findings.add(Code.YAML, problem.loc, problem.message, help=problem.help)


def locate(files: Sequence[File], loc: Loc) -> tuple[str | None, int | None]:
    """Give file and line of a place; the last file that has it counts."""
    for file in reversed(files):
        line, node = yaml_values.find(file.node, loc)
        if node is not None and loc:
            return file.name, line
    return (files[0].name, None) if len(files) == 1 else (None, None)


def helm_merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values as `helm -f base -f top` does."""
    merged = dict(base)
    for key, value in top.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            inner = merged.get(key)
            merged[key] = helm_merge(inner if isinstance(inner, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def merge_files(files: Sequence[File], findings: Findings) -> dict[str, Any]:
    """Merge all files, and say where a later one changes nothing by an empty mapping."""
    merged: dict[str, Any] = {}
    for number, file in enumerate(files):
        for loc in empty_mappings(file.data) if number else ():
            if isinstance(value_at(merged, loc), Mapping) and value_at(merged, loc):
                findings.add(
                    Code.NO_EFFECT,
                    loc,
                    "an empty mapping is merged and clears nothing",
                    help=f"Set each key of {path_of(loc)} to null to clear it.",
                )
        merged = helm_merge(merged, file.data)
    return merged


def empty_mappings(value: Any, loc: Loc = ()) -> Iterator[Loc]:
    """Find mappings without keys, which take nothing away when values are merged."""
    if isinstance(value, Mapping):
        if not value and loc:
            yield loc
        for key, item in value.items():
            yield from empty_mappings(item, (*loc, key))


def value_at(value: Any, loc: Loc) -> Any:
    """Give what stands at a place; None if nothing does."""
    for step in loc:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def find_hub(values: Mapping[str, Any], findings: Findings) -> Hub | None:
    """Find the profile list, and gather what the hub says for all servers."""
    places = list(_lists(values))
    if not places:
        help_text = "It stands under singleuser.profileList, or hub.config.KubeSpawner.profile_list."
        if any("profile_list" in text for text in _code(values)):
            help_text = "It is written in Python, in hub.extraConfig; write it as YAML first."
        findings.add(Code.NO_PROFILE_LIST, (), "there is no profile list in these values", help=help_text)
        if not _SECTIONS.isdisjoint(values):
            check_keys_of_chart(values, (), findings)
        return None
    if len(places) > 1:
        others = ", ".join(path_of(place) for place in places[1:])
        findings.add(Code.SEVERAL_LISTS, places[0], f"there are further profile lists: {others}")
    loc = places[0]
    root = _chart_root(values, loc)
    singleuser = value_at(values, (*root, "singleuser"))
    singleuser = singleuser if isinstance(singleuser, Mapping) else {}
    is_chart = loc[-2:] == ("singleuser", "profileList") or "KubeSpawner" in loc
    if is_chart:
        check_keys_of_chart(value_at(values, root), root, findings)
    return Hub(
        loc=loc,
        profiles=value_at(values, loc),
        settings=_settings(singleuser, (*root, "singleuser"), is_chart=is_chart) | _configured(values, root),
        keys=_keys(singleuser),
        image=CHART_IMAGE if is_chart else SPAWNER_IMAGE,
    )


def _lists(value: Any, loc: Loc = ()) -> Iterator[Loc]:
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key in LISTS and item:
            yield (*loc, key)
        elif len(loc) < 8:
            yield from _lists(item, (*loc, key))


def _code(value: Any) -> Iterator[str]:
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key in {"extraConfig", "extraFiles"} and isinstance(item, Mapping):
            yield from (str(text) for text in item.values())
        else:
            yield from _code(item)


def _chart_root(values: Mapping[str, Any], loc: Loc) -> Loc:
    """Give the place of the chart's own values: a parent chart puts them below a key."""
    for length in range(len(loc)):
        if isinstance(value_at(values, (*loc[:length], "singleuser")), Mapping):
            return loc[:length]
    return loc[: loc.index("hub")] if "hub" in loc else ()


_PLACES: Final[Mapping[str, Loc]] = {
    "image": ("image", "name"),
    "cpu_guarantee": ("cpu", "guarantee"),
    "cpu_limit": ("cpu", "limit"),
    "mem_guarantee": ("memory", "guarantee"),
    "mem_limit": ("memory", "limit"),
    "extra_resource_limits": ("extraResource", "limits"),
    "extra_resource_guarantees": ("extraResource", "guarantees"),
}
"""Where `singleuser` says what KubeSpawner is told."""


def _settings(singleuser: Mapping[str, Any], loc: Loc, *, is_chart: bool) -> dict[str, tuple[Loc, Any]]:
    written = {name: value_at(singleuser, place) for name, place in _PLACES.items()}
    if written["image"] and (tag := value_at(singleuser, ("image", "tag"))):
        written["image"] = f"{written['image']}:{tag}"
    if is_chart:
        written["mem_guarantee"] = written["mem_guarantee"] or CHART_MEMORY
    return {name: ((*loc, *_PLACES[name]), value) for name, value in written.items() if value is not None}


def _keys(singleuser: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    places = {"environment": "extraEnv", "node_selector": "nodeSelector", "extra_labels": "extraLabels"}
    return {name: frozenset(value_at(singleuser, (key,)) or ()) for name, key in places.items()}


def _configured(values: Mapping[str, Any], root: Loc) -> dict[str, tuple[Loc, Any]]:
    """Give what `hub.config.KubeSpawner` says, which wins over `singleuser`."""
    loc = (*root, "hub", "config", "KubeSpawner")
    config = value_at(values, loc)
    if not isinstance(config, Mapping):
        return {}
    return {name: ((*loc, name), config[name]) for name in _PLACES if name in config}
