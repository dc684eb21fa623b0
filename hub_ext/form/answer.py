"""The shape of the answer that says what one user may start now: the facts of the spawn page for programs.

The models are the contract: the reference page is written from them, see `reference`.
Nothing is taken from the catalog wholesale, so no environment, annotation or secret can get into an answer.

Pure: no clock, no network.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ..catalog.base import Model
from ..cluster.capacity import Supply
from ..gpu.sharing import Sharing
from .view import NoticeKind


class Fact(Model):
    """Base of all parts."""


class Refused(Fact):
    """Why not."""

    reason: str
    """Word from the tables of refusals."""
    text: str
    """The sentence that the page shows."""


class Amount(Fact):
    """What is reserved, and what it may use at most."""

    request: int | float
    limit: int | float | None
    """Null where it may use what the node has free."""


class GpuPart(Fact):
    """What GPU it gets, and what may be relied on."""

    count: int
    """Cards, slices or shares."""
    sharing: Sharing
    product: str
    """As nodes are labeled: `NVIDIA-H200`."""
    slice: str
    """MIG profile, such as `1g.18gb`; else empty."""
    title: str
    text: str
    """What the sharing means, in plain words."""
    own_memory: bool
    """Nobody else can use up the memory."""
    own_faults: bool
    """A crash of somebody else's program does not reach this one."""
    own_time: bool
    """The speed does not depend on what others do."""


class Cost(Fact):
    """What it costs while it runs."""

    per_hour: Decimal
    """A text, so that no digit is lost: `"0.60"`."""
    currency: str


class Option(Fact):
    """One answer to a question."""

    value: str
    title: str
    selected: bool
    """It is what `options` has."""
    requires: dict[str, tuple[str, ...]]
    """Goes only with one of these answers to other questions; empty for any."""


class Choice(Fact):
    """One thing to choose."""

    name: str
    """Key in `options`."""
    title: str
    help: str
    options: tuple[Option, ...]
    typed: str
    """What may be typed instead, sent as `custom:…`; empty where nothing may."""


class Folder(Fact):
    """A folder or an address, and what becomes of it when the workspace stops."""

    path: str
    """Empty for everything else."""
    text: str


class Limits(Fact):
    """When it is stopped without being asked; null where it is not."""

    idle_seconds: int | float | None
    max_seconds: int | float | None
    warn_before_seconds: tuple[int | float, ...]


class Room(Fact):
    """How many more of it the limits leave; null where nothing bounds them."""

    user: int | None
    team: int | None
    cluster: int | None


class Start(Fact):
    """How a start will be; times are of starts of this kind lately, null while too few were seen."""

    warm: bool | None
    """True if all nodes with room have its image, false if none has; null if that differs or is unknown."""
    warm_nodes: int
    cold_nodes: int
    unknown_nodes: int
    usual_warm_seconds: int | None
    usual_cold_seconds: int | None
    usual_scale_up_seconds: int | None
    """Of a new node alone."""


class Now(Fact):
    """What is true at this moment. A start is checked again, and finally by the API server."""

    supply: Supply
    """What the cluster has for it."""
    free: int | None
    """How many more have room in the cluster."""
    exact: bool
    """False if `free` is the most there can be: pods of others cannot be seen."""
    room: Room
    start: Start
    text: str
    """All of it in one line, as on the page."""


class Offered(Fact):
    """One workspace."""

    profile: str
    version: int
    title: str
    description: str
    group: str
    """Heading that it stands under."""
    selected: bool
    """It is what starts if nothing is chosen."""
    options: dict[str, Any]
    """What to send as `user_options` to start it as it is described here; empty where it is for others."""
    may_start: bool
    """With these options, or with others of its choices."""
    refused: Refused | None
    """Why these options would be refused now."""
    warning: str
    """What to know before building on it: an announced end, a home in a zone where it has no machines."""
    cpu: Amount
    """Processors."""
    memory: Amount
    """Bytes."""
    gpu: GpuPart | None
    price: Cost | None
    choices: tuple[Choice, ...]
    """Empty, like the folders, where it is for others."""
    kept: tuple[Folder, ...]
    gone: tuple[Folder, ...]
    session: Limits
    now: Now | None
    """Null where nothing is known, or where it is for others."""


class Note(Fact):
    """A sentence that stands above the workspaces."""

    kind: NoticeKind
    text: str


class WorkspaceList(Fact):
    """What one user may start now."""

    user: str
    server: str
    """Name of the server that it is for; empty for the default one."""
    unknown: str
    """What is not known about any of them; empty if nothing."""
    notices: tuple[Note, ...]
    workspaces: tuple[Offered, ...]
