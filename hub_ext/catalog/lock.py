"""Published versions do not change: the lock keeps a fingerprint of each.

A fingerprint covers what a user gets: images, resources and the kind of GPU behind them, choices, storage,
environment, session limits, security, labels. It leaves out what an admin must be able to change at any time:
state and replacement, texts, access, price, and where the nodes of a pool are.

A key at its default has no part in a fingerprint, so a later release may add keys without breaking locks.

Pure: no clock, no network.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from ..errors import BadValueError
from .codes import Code
from .model import Catalog, GpuRequest, PartialResources, Profile, Resources
from .problems import Problem

FILE_NAME: Final = "catalog.lock"
"""Stands beside the catalog's file, or in its folder."""

Fingerprint = Mapping[str, str]
"""Short hash per part of a version, so that a difference can be named."""
Lock = Mapping[str, Fingerprint]
"""Fingerprint per label (``name@version``)."""

_TEXTS: Final = {"display_name", "description"}
_POOL_FACTS: Final = {"product", "sharing", "replicas"}
_DIGITS: Final = 16
RESTORE: Final = "Restore it from version control; it is written by the command, not by hand."
_HEAD: Final = """\
# Fingerprints of the published profile versions. Commit this file beside the catalog.
# A version that is listed here must not change any more: add a new one, and let the old one be replacedBy it.
"""


def fingerprint(catalog: Catalog, profile: Profile) -> Fingerprint:
    """Give the hashes of the parts of one version; the catalog must be in its explicit form."""
    parts = {
        "images": {key: _image(catalog, key) for key in _image_keys(profile)},
        "resources": _resources(catalog, profile.resources),
        "choices": {
            key: {
                "default": choice.default,
                "custom": _plain(choice.custom) if choice.custom else None,
                "options": {
                    name: {
                        **_plain(option, exclude=_TEXTS | {"access", "price", "resources"}),
                        "resources": _resources(catalog, option.resources),
                    }
                    for name, option in choice.options.items()
                },
            }
            for key, choice in profile.questions.items()
        },
        "storage": _plain(profile.storage),
        "environment": profile.environment,
        "session": _plain(profile.session),
        "security": _plain(profile.security),
        "metadata": [profile.labels, profile.annotations],
    }
    return {name: _hash(part) for name, part in parts.items() if part not in ({}, [{}, {}])}


def _image_keys(profile: Profile) -> list[str]:
    options = [option for choice in profile.questions.values() for option in choice.options.values()]
    return list(dict.fromkeys([*profile.images, *(option.image for option in options if option.image)]))


def _image(catalog: Catalog, key: str) -> Any:
    image = catalog.images[key]
    return _plain(image, include={"ref", "command", "default_url", "environment"})


def _resources(catalog: Catalog, resources: Resources | PartialResources) -> Any:
    plain = _plain(resources)
    if "gpu" in resources.model_fields_set or isinstance(resources, Resources):
        plain["gpu"] = _gpu(catalog, resources.gpu)
    return plain


def _gpu(catalog: Catalog, request: GpuRequest | None) -> Any:
    if request is None:
        return None
    gpu = catalog.pools[request.pool].gpu
    return {**_plain(request), "kind": _plain(gpu, include=_POOL_FACTS) if gpu else None}


def _plain(model: Any, *, include: set[str] | None = None, exclude: set[str] | None = None) -> dict[str, Any]:
    dumped = model.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, include=include, exclude=exclude
    )
    return dict(dumped)


def _hash(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def lock_of(catalog: Catalog) -> Lock:
    """Give the lock of a catalog, all of its versions published."""
    return {profile.label: fingerprint(catalog, profile) for profile in catalog.profiles}


def publish(catalog: Catalog, lock: Lock) -> Lock:
    """Give a lock with the new versions of a catalog added; what is published already stays as it was."""
    return {**lock_of(catalog), **lock}


def format_lock(lock: Lock) -> str:
    """Write a lock: one line per version, sorted, so that two branches rarely touch the same line."""
    lines = []
    for label in sorted(lock, key=_by_name_and_version):
        parts = ", ".join(f'{name}: "{digest}"' for name, digest in sorted(lock[label].items()))
        lines.append(f"{label}: {{{parts}}}\n")
    return _HEAD + "".join(lines)


def _by_name_and_version(label: str) -> tuple[str, int]:
    name, _, version = label.rpartition("@")
    return name, int(version) if version.isdigit() else 0


def parse_lock(text: str) -> Lock:
    """Read what `format_lock` wrote.

    Raises
    ------
    BadValueError
        It is something else, has the marks of a merge conflict, or fingerprints one version twice.
    """
    lines = text.splitlines()
    if marked := [number for number, line in enumerate(lines, start=1) if line.startswith(_CONFLICT)]:
        raise BadValueError(
            f"a merge conflict is left in line {marked[0]}",
            help="Keep the lines of both sides: each version has a line of its own.",
        )
    labels = Counter(line.partition(": ")[0] for line in lines if line and not line.startswith("#"))
    if twice := [label for label, number in labels.items() if number > 1]:
        raise BadValueError(
            f"{twice[0]} stands here twice: two branches have published it",
            help="Keep the line of the branch that was rolled out, and give the other a new version.",
        )
    try:
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise BadValueError(f"not YAML: {str(error).splitlines()[0]}", help=RESTORE) from None
    if not isinstance(data, dict) or not all(map(_is_entry, data, data.values())):
        raise BadValueError("not a mapping of versions to fingerprints", help=RESTORE)
    return data


_CONFLICT: Final = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")


def _is_entry(label: Any, entry: Any) -> bool:
    return (
        isinstance(label, str)
        and label.rpartition("@")[2].isdigit()
        and isinstance(entry, dict)
        and all(isinstance(digest, str) for digest in entry.values())
    )


def check_lock(catalog: Catalog, lock: Lock) -> Iterator[Problem]:
    """Say which published versions changed, and which are gone."""
    newest: dict[str, int] = {}
    for profile in catalog.profiles:
        newest[profile.name] = max(newest.get(profile.name, 0), profile.version)
    for index, profile in enumerate(catalog.profiles):
        published = lock.get(profile.label)
        if published is None:
            continue
        now = fingerprint(catalog, profile)
        changed = sorted(part for part in {*published, *now} if published.get(part) != now.get(part))
        if changed:
            number = newest[profile.name] + 1
            yield Problem(
                code=Code.VERSION_CHANGED,
                message=f"{profile.label} is published and was changed: {', '.join(changed)}",
                loc=("profiles", index),
                help=f"Put it back, and add version {number} with the change (state: deprecated and "
                f"replacedBy: {number} here).",
            )
    present = {profile.label for profile in catalog.profiles}
    for label in lock:
        if label not in present:
            yield Problem(
                code=Code.VERSION_REMOVED,
                message=f"{label} is published and is gone",
                loc=("profiles",),
                help="Put it back with state: retired, and replacedBy if another version takes over.",
            )
