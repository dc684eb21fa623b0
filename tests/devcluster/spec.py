"""The cluster file: what one development cluster consists of.

Pure apart from `load`, which reads the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tests.devcluster.errors import SpecError
from tests.devcluster.gpu.setup import GpuSetup

FOLDER = Path(__file__).parent / "clusters"
NAME = r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$"
Name = Annotated[str, Field(pattern=NAME)]


class Size(StrEnum):
    CONTROL = "control"
    """API server, controllers, scheduler and kwok nodes; needs no root."""
    NODES = "nodes"
    """Real kubelets with containers; needs root on Linux."""


class Addon(StrEnum):
    """Each is a module of `tests.devcluster.addons`, with `_` for `-`."""

    REGISTRY = "registry"
    DNS = "dns"
    VOLUMES = "volumes"
    NETPOL = "netpol"
    DEVICE_PLUGIN = "device-plugin"
    KUEUE = "kueue"
    JOBSET = "jobset"
    TRAINER = "trainer"
    KUBERAY = "kuberay"
    PROMETHEUS = "prometheus"
    OBJECT_STORE = "object-store"


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Taint(Model):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class NodeSpec(Model):
    """One real node."""

    name: Name
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    gpus: GpuSetup | None = None
    """Cards of the imitated driver and how the device plugin offers them."""


class KwokPool(Model):
    """Machines that exist in the API only: pods "run" there by kwok's stages. Named `<name>-<number>`."""

    name: Name
    count: int = Field(ge=1, le=5000)
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    capacity: dict[str, str] = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    """Capacity and allocatable, Kubernetes quantities by resource name."""


class ClusterSpec(Model):
    size: Size
    kubernetes: Literal["1.36", "1.34"] = "1.36"
    nodes: tuple[NodeSpec, ...] = Field(default=(), max_length=32)
    kwok: tuple[KwokPool, ...] = ()
    addons: tuple[Addon, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> ClusterSpec:
        if self.size is Size.CONTROL and (self.nodes or self.addons):
            raise ValueError("size `control` has no machines to run `nodes` or `addons` on: use size `nodes`")
        if self.size is Size.NODES and not self.nodes:
            raise ValueError("size `nodes` needs at least one entry in `nodes`")
        if self.size is Size.NODES and self.kubernetes != "1.36":
            raise ValueError(
                f"kubelets are built for 1.36 only: `kubernetes: {self.kubernetes}` needs size `control`"
            )
        names = [node.name for node in self.nodes] + [pool.name for pool in self.kwok]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"names used twice: {', '.join(twice)}")
        return self


def shipped() -> list[str]:
    """Names of the cluster files that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(source: str | Path) -> tuple[str, ClusterSpec]:
    """Read a cluster file, given its path or the name of a shipped one; returns the default name too.

    Raises `SpecError` with every problem found.
    """
    path = Path(source) if "/" in str(source) or str(source).endswith(".yaml") else FOLDER / f"{source}.yaml"
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise SpecError(str(source), [f"no such cluster file; shipped are: {', '.join(shipped())}"]) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecError(str(source), [str(error)]) from error
    return default_name(path), parse(document, source=str(path))


def parse(document: object, *, source: str) -> ClusterSpec:
    """Judge the content of a cluster file."""
    if not isinstance(document, Mapping):
        raise SpecError(
            source, ["a cluster file is a mapping that begins with `size: control` or `size: nodes`"]
        )
    try:
        return ClusterSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(source, [_problem(e["loc"], e["msg"]) for e in error.errors()]) from None


def default_name(path: Path) -> str:
    """The cluster's name if none is given: the file's, as far as it can be one."""
    return re.sub(r"[^a-z0-9.]+", "-", path.stem.lower()).strip(".-")[:32].strip(".-") or "cluster"


def _problem(location: tuple[int | str, ...], message: str) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    return f"{path}: {message}" if path else message
