"""What is kept of the modules' sources: the controllers' manifests, and the header of the driver library.

Kept because the sources go with the build caches.

Shell: runs kubectl, reads module sources.
"""

from __future__ import annotations

import os
import shutil
import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.golang import (
    Pinned,
    download_name,
    environment,
    pinned,
    program_path,
    toolchain,
)
from tests.devcluster.build.images import SOURCES
from tests.devcluster.build.plan import Pool, Shell, Step
from tests.devcluster.build.table import PROGRAMS

MANIFEST = "manifest:"
HEADER = "header:nvml"
NVML_MODULE = "github.com/NVIDIA/go-nvml"
NVML_HEADER = Path("pkg/nvml/nvml.h")
SNAPSHOTS = "snapshots"
SNAPSHOT_MODULE = "github.com/kubernetes-csi/external-snapshotter/client/v8"
SNAPSHOT_CRDS = "config/crd/snapshot.storage.k8s.io_*.yaml"
"""Only schemas: no program of the cluster's is from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kustomization:
    """Where a controller's manifests come from."""

    program: str
    """Whose module has them."""
    folder: str = ""
    """Rendered as it is, relative to the module."""
    ours: str = ""
    """Or a kustomization of ours, below `sources`, in which `$SOURCE` stands for the module."""


KUSTOMIZATIONS: Mapping[str, Kustomization] = {
    "kueue": Kustomization(program="kueue", folder="config/default"),
    "jobset": Kustomization(program="jobset", folder="config/default"),
    "kuberay": Kustomization(program="kuberay", folder="config/default"),
    "trainer": Kustomization(program="trainer", ours="trainer/kustomization.yaml"),
}


def steps() -> dict[str, Step]:
    """Build steps of all that is kept of the sources."""
    made = (*(_manifest(name, how) for name, how in KUSTOMIZATIONS.items()), _snapshots(), _header())
    return {step.name: step for step in made}


def _manifest(name: str, how: Kustomization) -> Step:
    program, kubectl = PROGRAMS[how.program], PROGRAMS["kubectl"]
    pins, kubectl_pins = pinned(program.folder), pinned(kubectl.folder)
    own = (SOURCES / how.ours).read_text() if how.ours else ""
    version = pins.version(program.module)

    def make(target: Path, run: Shell) -> None:
        source = pins.source(program.module)
        folder = source / how.folder
        if own:
            folder = cache.scratch() / "kustomize" / name
            folder.mkdir(parents=True, exist_ok=True)
            # Kustomize takes folders outside its own only by relative paths.
            relative = os.path.relpath(source, folder)
            (folder / "kustomization.yaml").write_text(string.Template(own).substitute(SOURCE=relative))
        render = (program_path(kubectl, kubectl_pins), "kustomize", folder)
        run(*render, "--load-restrictor", "LoadRestrictionsNone", stdout=target)

    return Step(
        name=MANIFEST + name,
        target=cache.entry(
            "manifests", cache.key_of(program.module, version, how.folder, own), f"{name}.yaml"
        ),
        make=make,
        needs=(download_name(program.folder), kubectl.name),
        pool=Pool.IMAGE,
        seconds=2,
    )


def _snapshots() -> Step:
    folder = SOURCES / SNAPSHOTS
    pins = Pinned(SNAPSHOTS, (folder / "go.mod").read_text(), (folder / "go.sum").read_text())

    def make(target: Path, run: Shell) -> None:
        run(toolchain(pins), "mod", "download", SNAPSHOT_MODULE, cwd=folder, env=environment(cgo=False))
        files = sorted(pins.source(SNAPSHOT_MODULE).glob(SNAPSHOT_CRDS))
        target.write_text("\n---\n".join(file.read_text() for file in files))

    key = cache.key_of(pins.go_mod, pins.go_sum, SNAPSHOT_CRDS)
    return Step(
        name=MANIFEST + SNAPSHOTS,
        target=cache.entry("manifests", key, f"{SNAPSHOTS}.yaml"),
        make=make,
        pool=Pool.DOWNLOAD,
        seconds=5,
    )


def _header() -> Step:
    pins = pinned("nvidia")

    def make(target: Path, _: Shell) -> None:
        shutil.copyfile(pins.source(NVML_MODULE) / NVML_HEADER, target)

    return Step(
        name=HEADER,
        target=cache.entry("headers", cache.key_of(pins.version(NVML_MODULE)), NVML_HEADER.name),
        make=make,
        needs=(download_name("nvidia"),),
        pool=Pool.IMAGE,
    )
