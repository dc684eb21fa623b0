"""What a hub's configuration gives every workspace, beside what the catalog says.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .errors import NameRuleError
from .names import parse_image

_CLASSES: Final = ("Spawner", "KubeSpawner", "WorkspaceSpawner")
"""Where it may be set; the last one counts."""
_POLICIES: Final = ("IfNotPresent", "Always", "Never")


def shared_by_workspaces(c: Any) -> dict[str, Any]:
    """Read it off a configuration, in the words of the prepuller's settings (`shared`).

    What is set by a function is left out. KubeSpawner's own defaults of lists and mappings are empty.
    """
    images = [*_images(c, "init_containers"), *_images(c, "extra_containers")]
    found = {
        "pullSecrets": [*_names(_listed(c, "image_pull_secrets"))],
        "tolerations": [dict(one) for one in _listed(c, "tolerations") if isinstance(one, Mapping)],
        "nodeSelector": _selector(c),
        "images": [*dict.fromkeys(images)],
        "pullPolicy": policy if (policy := _last(c, "image_pull_policy")) in _POLICIES else None,
    }
    return {key: value for key, value in found.items() if value}


def _last(c: Any, trait: str) -> Any:
    found = None
    for name in _CLASSES:
        section = c.get(name) if isinstance(c, Mapping) else None
        if isinstance(section, Mapping) and trait in section:
            found = section[trait]
    return found


def _listed(c: Any, trait: str) -> list[Any]:
    found = _last(c, trait)
    if hasattr(found, "get_value"):
        found = found.get_value([])  # what `append` and the like leave in a configuration
    return [*found] if isinstance(found, list | tuple) else []


def _selector(c: Any) -> dict[str, str]:
    found = _last(c, "node_selector")
    if hasattr(found, "get_value"):
        found = found.get_value({})
    return dict(found) if isinstance(found, Mapping) else {}


def _names(secrets: Iterable[Any]) -> Iterator[str]:
    """Give names of secrets, which KubeSpawner takes alone or as `{name: …}`."""
    for one in secrets:
        name = one.get("name") if isinstance(one, Mapping) else one
        if isinstance(name, str) and name:
            yield name


def _images(c: Any, trait: str) -> Iterator[str]:
    """Give images of containers; one that has a name of the user in it is no single image."""
    for one in _listed(c, trait):
        image = one.get("image") if isinstance(one, Mapping) else None
        if not isinstance(image, str):
            continue
        try:
            yield str(parse_image(image))
        except NameRuleError:
            continue
