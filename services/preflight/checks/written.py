"""Values that are written one way and read another.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from hub_ext.catalog.problems import path_of
from hub_ext.errors import Severity
from hub_ext.importer.values import helm_merge, value_at

from ..problems import Check, Problem
from ..scene import Scene

_CATALOG: Final = "gpuWorkspaces"
_INSTEAD: Final = {"services": "hub.services", "load_roles": "hub.loadRoles"}
"""Traits that the chart takes from elsewhere, and drops here."""
Loc = tuple[str, ...]


def lists_keep_their_entries(scene: Scene) -> Iterator[Problem]:
    """Helm merges maps, but a list takes the place of the one before it."""
    before: dict[str, Any] = {}
    for name, layer in scene.layers:
        for loc, found in _lists(layer):
            earlier = value_at(before, loc)
            lost = [one for one in earlier if one not in found] if isinstance(earlier, list) else []
            if lost:
                path = path_of(loc)
                yield Problem(
                    message=f"{path} takes the place of the list of an earlier file; "
                    f"{len(lost)} of its entries {'is' if len(lost) == 1 else 'are'} gone",
                    evidence=f"{name}, without {str(lost)[:150]}",
                    help="Write all entries into the last file; Helm merges maps only.",
                    path=path,
                    severity=Severity.WARNING,
                )
        before = helm_merge(before, layer)


def _lists(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, list[Any]]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _lists(item, (*loc, str(key)))
    elif isinstance(value, list):
        yield loc, value


def sections_are_read(scene: Scene) -> Iterator[Problem]:
    sections = scene.value("hub.config")
    for section in sections if isinstance(sections, Mapping) else ():
        if not str(section)[:1].isupper():
            yield Problem(
                message=f"hub.config.{section} is no class, and the chart refuses it",
                help=f"Write {str(section)[:1].upper()}{str(section)[1:]}.",
                path=f"hub.config.{section}",
            )
    for trait, place in _INSTEAD.items():
        if scene.value(f"hub.config.JupyterHub.{trait}") is not None:
            yield Problem(
                message=f"the chart does not read hub.config.JupyterHub.{trait}, or loses its own by it",
                help=f"Write it under {place}.",
                path=f"hub.config.JupyterHub.{trait}",
            )
    custom = scene.value("custom")
    for key in custom if isinstance(custom, Mapping) and _CATALOG not in custom else ():
        if get_close_matches(str(key).lower(), [_CATALOG.lower()], cutoff=0.8):
            yield Problem(
                message=f"nobody reads custom.{key}",
                help=f"The catalog stands under custom.{_CATALOG}.",
                path=f"custom.{key}",
            )


def tags_are_texts(scene: Scene) -> Iterator[Problem]:
    """YAML reads 3.10 as the number 3.1, and Helm writes large whole numbers as 1e+06."""
    for loc, value in _scalars(scene.values or {}):
        if loc[-1:] == ("tag",) and isinstance(value, int | float) and not isinstance(value, bool):
            yield Problem(
                message=f"{path_of(loc)} is a number, and an image with another tag is pulled",
                evidence=f"read as {value}",
                help="Put the tag in quotes.",
                path=path_of(loc),
            )


def _scalars(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _scalars(item, (*loc, str(key)))
    else:
        yield loc, value


CHECKS = (
    Check(
        code="replaced-list",
        title="No list loses entries to a later file",
        needs=("values",),
        run=lists_keep_their_entries,
    ),
    Check(code="ignored-section", title="Every section is read", needs=("values",), run=sections_are_read),
    Check(code="number-tag", title="Tags of images are texts", needs=("values",), run=tags_are_texts),
)
