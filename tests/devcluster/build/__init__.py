"""Builds what the development cluster runs, once, into the cache outside the checkout.

Programs are asked for by name (`kubelet`, `kube-apiserver@1.34`), images as `image:NAME`, controllers'
manifests as `manifest:NAME`. What is there already costs milliseconds; what is not is built with everything
it needs, while a report shows how far it is. `python -m tests.devcluster.build --list` shows all names.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build import agent, bundle, golang, images, keycloak, manifests, node, rootfs
from tests.devcluster.build.debian import TOOLS, ensure_debian, ensure_tools
from tests.devcluster.build.errors import (
    BuildError,
    MissingToolsError,
    StepError,
    ToolchainError,
    UnknownNameError,
)
from tests.devcluster.build.plan import Step, steps_missing
from tests.devcluster.build.progress import Report, shown
from tests.devcluster.build.runner import BUILD_LOCK, build
from tests.devcluster.build.table import PROGRAMS

__all__ = [
    "PROGRAMS",
    "TOOLS",
    "BuildError",
    "MissingToolsError",
    "StepError",
    "ToolchainError",
    "UnknownNameError",
    "all_steps",
    "ensure",
    "ensure_debian",
    "ensure_image",
    "ensure_tools",
    "image_reference",
    "manifest",
    "nvml_header_dir",
    "prune",
]

KEPT_KINDS = ("bin", "images", "manifests", "headers", "driver", "node", "wheels", "venvs", "keycloak")
UNUSED_DAYS = 30
KEPT_OF_A_NAME = 4
"""The newest and the oldest Kubernetes, each for two states of the checkout."""
KEPT_ENVIRONMENTS = 2
"""Of Python: one for each of two checkouts. They are large."""


def all_steps() -> dict[str, Step]:
    """Everything that can be built, by name."""
    parts = (golang, images, manifests, agent, bundle, node, rootfs, keycloak)
    return {name: step for part in parts for name, step in part.steps().items()}


def ensure(names: Iterable[str], *, report: Report | None = None) -> dict[str, Path]:
    """Have the named things built; returns where each is.

    Raises `UnknownNameError` before anything is built, or the `BuildError` of what failed.
    """
    wanted, steps = tuple(names), all_steps()
    if steps_missing(wanted, steps):
        with shown(report) as to:
            build(wanted, steps, to)
    found = {name: steps[name].target for name in wanted}
    for path in found.values():
        cache.mark_used(path)
    return found


def ensure_image(name: str, *, report: Report | None = None) -> Path:
    """Have an image built; returns the OCI layout folder that holds it, named `image_reference(name)`."""
    return ensure([images.PREFIX + name], report=report)[images.PREFIX + name]


def image_reference(name: str) -> str:
    """Full name of an image in its layout, `devcluster.test/NAME:KEY`; does not build it.

    Raises `UnknownNameError`.
    """
    steps = all_steps()
    if images.PREFIX + name not in steps:
        raise UnknownNameError(images.PREFIX + name, steps)
    return images.reference(name, steps[images.PREFIX + name].target.parent.name)


def manifest(name: str, *, report: Report | None = None) -> Path:
    """The manifests of a controller as its own module has them, in one file of several YAML documents."""
    return ensure([manifests.MANIFEST + name], report=report)[manifests.MANIFEST + name]


def nvml_header_dir(*, report: Report | None = None) -> Path:
    """The folder to be given to a C compiler's `-I` to find NVIDIA's `nvml.h`."""
    return ensure([manifests.HEADER], report=report)[manifests.HEADER].parent


def prune() -> int:
    """Drop the build caches, and what is long unused or replaced; returns the bytes that became free.

    Does nothing, and returns 0, while another process builds.
    """
    with cache.lock_if_free(BUILD_LOCK) as alone:
        if not alone:
            return 0
        before = cache.size_bytes(cache.cache_root())
        cache.remove(cache.scratch())
        for kind in KEPT_KINDS:
            keep = KEPT_ENVIRONMENTS if kind == "venvs" else KEPT_OF_A_NAME
            cache.drop_unused(kind, days=UNUSED_DAYS, keep=keep)
        for layout in (cache.cache_root() / "images").glob("*/*"):
            rootfs.share_blobs(layout)
        return before - cache.size_bytes(cache.cache_root())
