"""What is known about one server at one moment: observations with their ages, nothing judged.

The same values are judged live, recorded, and read from files by `gpu-workspaces cull`. A part that is None
was not measured.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from hub_ext.cluster.times import in_utc
from hub_ext.protocol import Attribution

CONFIG: Final = ConfigDict(
    alias_generator=to_camel, extra="forbid", validate_by_alias=True, validate_by_name=True
)

Moment = Annotated[datetime, AfterValidator(in_utc)]
"""A time without zone is UTC: what hubs mean by it."""
Number = Annotated[float, Field(allow_inf_nan=False)]
Length = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Seconds that have passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFacts:
    """The server as the hub lists it."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    started: Moment | None
    last_activity: Moment | None = None
    """What the proxy saw or the server reported, the later of the two; open pages move it, users can too."""
    ready: bool = True
    pending: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """The pod of the server."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    namespace: str = ""
    name: str = ""
    uid: str = ""
    node: str = ""
    running: bool = True
    devices: Mapping[str, int] = field(default_factory=dict)
    """GPUs, slices or shares that it asked for, by resource name."""
    sharing: str = ""
    """How its cards are given out, in the words of the catalog."""
    profile: str = ""
    version: int | None = None
    team: str = ""
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """What the metrics say about one card or slice over `GpuFacts.window_seconds`."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    uuid: str = ""
    slice: str = ""
    """Id of the MIG instance on the card, empty for a whole card."""
    engine: Number | None = None
    """Largest `DCGM_FI_PROF_GR_ENGINE_ACTIVE`, 0 to 1."""
    utilization: Number | None = None
    """Largest `DCGM_FI_DEV_GPU_UTIL` as a fraction; says nothing about slices."""
    coverage: Number | None = None
    """Part of the samples that the window should hold."""
    age_seconds: Number | None = None
    """Of the newest sample."""
    shared: bool = False
    """Others are on the card, and `utilization` was told apart by pod; `engine` is of the card as a whole."""
    unmapped: bool = False
    """The card works, and no pod on it is said to: it is not known who."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What Prometheus says about the GPUs of the pod."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    at: Moment
    window_seconds: Number
    gpus: tuple[GpuReading, ...] = ()
    labels_broken: bool = False
    """There are readings of GPUs, and none of them names any pod of a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFacts:
    """What Prometheus says about the processors of the pod."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    at: Moment
    window_seconds: Number
    cores: Number | None = None
    """Most that the pod used at any time of the window."""
    coverage: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Processes that belong together: those of a kernel, of a terminal, or one on its own."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    origin: str
    owner: str = ""
    command: str = ""
    """Of the busiest of them."""
    cpu: Number | None = None
    """Of one processor."""
    io_rate: Number | None = None
    """Bytes per second."""
    gpu: Number | None = None
    """Of the card that one of them uses most; None where that is not told by process."""
    gpu_memory: int | None = None
    """Bytes that they hold of GPUs."""
    background: bool = False
    """The busiest of them is in the background of a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """One kernel."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    id: str = ""
    state: str
    state_seconds: Number | None = None
    connections: int | None = None
    waits_for_input: bool | None = None
    name: str = ""
    """What users know it by: its notebook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalFacts:
    """One terminal."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    name: str = ""
    foreground: str = ""
    quiet_seconds: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """What the workspace says about itself. It is the user's word."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    at: Moment
    """When it was received, by the culler's clock."""
    window_seconds: Number
    complete: bool = True
    work: tuple[Work, ...] = ()
    kernels: tuple[KernelFacts, ...] = ()
    terminals: tuple[TerminalFacts, ...] = ()
    gpu_use: Mapping[str, float | None] = field(default_factory=dict)
    """By UUID, by the pod's own processes."""
    attribution: Attribution = Attribution.NO_GPU
    unsaved: int | None = None
    """Documents with changes; None where no JupyterLab page is open to tell."""
    input_seconds: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that is known about one server."""

    __pydantic_config__: ClassVar[ConfigDict] = CONFIG

    user: str
    server: str = ""
    at: Moment
    hub: HubFacts
    pod: PodFacts | None = None
    agent: AgentFacts | None = None
    gpu: GpuFacts | None = None
    cpu: CpuFacts | None = None

    @property
    def key(self) -> tuple[str, str]:
        """User and server name."""
        return self.user, self.server

    @property
    def label(self) -> str:
        """The server in the words of the hub: ``user/name``."""
        return f"{self.user}/{self.server}"


FACTS: Final = TypeAdapter(Facts)
"""Reads and writes `Facts` as JSON data, in ``camelCase``."""
