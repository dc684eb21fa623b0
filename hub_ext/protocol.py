"""What the agent in a workspace and the idle-culler say to one another.

The agent sends `Report` to ``POST {culler}/api/report`` with the server's own hub token and gets `Answer`.
The buttons in JupyterLab become `Keep` (``api/keep``) and `Stop` (``api/stop``); `Saved` (``api/saved``)
confirms that documents were saved because `Answer.save` asked for it. All four are answered with `Answer`.
The token says whose server it is: no message names a user.

A report states facts and judges nothing; it is written by a process of the user's own and may be forged, so
it can delay a stop and never start one alone. Sizes are bounded for the same reason. Times are of the pod's
clock, which may be wrong: what the culler needs to be exact is sent as a number of seconds. Unknown keys are
ignored, so that an older or newer agent is still understood.

Depends on pydantic alone, for notebook images. Pure: no clock, no network.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

URL_ENV: Final = "GPU_WORKSPACES_CULLER_URL"
"""Variable of a workspace: where the culler answers, such as ``http://hub:10101/services/idle-culler``.
Without it the agent reports to nobody."""
MAX_BODY: Final = 256 * 1024
"""Bytes of one message."""
REPORT_SECONDS: Final = 30
"""Seconds between reports, until an answer says otherwise."""

Word = Annotated[str, StringConstraints(max_length=80)]
Line = Annotated[str, StringConstraints(max_length=1024)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A part of one: of one processor (may be above 1), or of one GPU."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Passed = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
"""Seconds for which something has been so; more than a lifetime is made up, and no date lies so far back."""
Bytes = Annotated[int, Field(ge=0, lt=2**63)]
Name = Annotated[str, StringConstraints(max_length=255)]
"""Of a server: as long as a hub lets it be."""


class Message(BaseModel):
    """Base of all messages: frozen, ``camelCase`` in JSON."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )


class Origin(StrEnum):
    """What a process belongs to."""

    KERNEL = "kernel"
    TERMINAL = "terminal"
    DETACHED = "detached"
    """No kernel and no terminal is above it any more: ``setsid nohup``, daemons, what an app started."""
    SERVER = "server"
    """The notebook server, the agent and their helpers: never work."""


class Process(Message):
    """One process, measured over `Report.window_seconds`."""

    pid: int
    command: Word
    """Short name as in ``/proc/PID/comm``, without arguments: they may hold secrets."""
    origin: Origin
    owner: Word = ""
    """Id of the kernel or name of the terminal."""
    cpu: Share | None = None
    """Of one processor; None for a process that was not there at the start of the window."""
    io_bytes: Bytes | None = None
    """Read and written in the window, as ``/proc/PID/io`` counts them (rchar and wchar)."""
    gpu_memory_bytes: Bytes | None = None
    """None where it uses no GPU or attribution is not trusted."""
    gpu: Share | None = None
    """Of the card that it uses most; None as above."""
    foreground: bool = False
    """In the foreground process group of its terminal, and not the shell itself."""


class Kernel(Message):
    """One kernel, as the server's own kernel manager knows it."""

    id: Word
    name: Word = ""
    """Of the kernel spec."""
    path: Line = ""
    """Of the notebook that it belongs to, where there is one."""
    state: Word
    """``busy``, ``idle``, ``starting``, …, as Jupyter says it."""
    state_seconds: Passed | None = None
    """How long it has been so."""
    connections: int | None = Field(default=None, ge=0)
    """Clients; None where unknown."""
    waits_for_input: bool | None = None
    """It is busy only because of `input()` or a debugger's prompt."""
    cpu: Share | None = None
    """Of its whole process tree, however many processes are listed; None where it could not be measured."""


class Terminal(Message):
    """One terminal."""

    name: Word
    foreground: Word = ""
    """Command in the foreground, empty while the shell waits for one."""
    quiet_seconds: Passed | None = None
    """Since anything was written to or read from it."""
    cpu: Share | None = None
    """Of its whole process tree, without the shell."""


class Gpu(Message):
    """One GPU or slice that the pod can see."""

    uuid: Word
    use: Share | None = None
    """By the pod's own processes, the largest sample of the window; None where it cannot be told."""
    memory_bytes: Bytes | None = None
    """Held by the pod's own processes. Holding memory is not work."""


class Attribution(StrEnum):
    """Result of the agent's self-test at its start: can it tell who uses the GPU?"""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    """The driver answers, but does not show the pod's own processes under their own ids."""
    NO_GPU = "no-gpu"
    """The pod sees no GPU."""
    NO_LIBRARY = "no-library"
    """The driver's library is not there or does not answer."""


class SelfTest(Message):
    """How far the agent's readings of the GPU can be relied on."""

    attribution: Attribution
    detail: Line = ""
    """Why, for admins: driver version, what was seen."""


class Document(Message):
    """A document that is open in JupyterLab and has changes that are not on disk."""

    path: Line
    kind: Word = ""
    """``notebook``, ``file``, …"""


class Report(Message):
    """What the agent sees in one workspace."""

    v: Literal[1] = 1
    server: Name = ""
    """Name of the server, empty for the default one (``JUPYTERHUB_SERVER_NAME``)."""
    agent: Word
    """Drawn at random when the agent starts: tells a new run from an old one."""
    number: int = Field(ge=0)
    """Counts up with each report of this run."""
    sent: AwareDatetime
    """By the pod's clock."""
    window_seconds: Passed
    """How long processes and GPUs were watched for this report; 0 in the first one."""
    complete: bool = True
    """False where a part could not be read: then silence says nothing."""
    processes: Annotated[tuple[Process, ...], Field(max_length=256)] = ()
    """The ones that used most; the server's own need not be listed."""
    kernels: Annotated[tuple[Kernel, ...], Field(max_length=64)] = ()
    terminals: Annotated[tuple[Terminal, ...], Field(max_length=64)] = ()
    gpus: Annotated[tuple[Gpu, ...], Field(max_length=64)] = ()
    self_test: SelfTest
    documents: Annotated[tuple[Document, ...], Field(max_length=256)] | None = None
    """Unsaved ones; None where no JupyterLab is open that could tell."""
    input_seconds: Passed | None = None
    """Since the user last typed or clicked in JupyterLab; None where nobody ever did."""


class Keep(Message):
    """The user wants to keep the server."""

    server: Name = ""


class Stop(Message):
    """The user wants to stop the server now; after `save`, once the documents are saved."""

    server: Name = ""
    save: bool = True


class Unsaved(Message):
    """A document that could not be saved."""

    path: Line
    why: Line = ""


class Saved(Message):
    """What became of the documents that `Answer.save` asked to save."""

    server: Name = ""
    save: Word
    """`SaveRequest.id` that this answers."""
    saved: Annotated[tuple[Line, ...], Field(max_length=256)] = ()
    failed: Annotated[tuple[Unsaved, ...], Field(max_length=256)] = ()


class State(StrEnum):
    """What the culler is about to do with a server."""

    IN_USE = "in-use"
    """Something works, or somebody is there."""
    IDLE = "idle"
    """Nothing works; the clock runs, and no warning is due yet."""
    UNKNOWN = "unknown"
    """A signal is missing: the clock stands still."""
    KEPT = "kept"
    """The user keeps it; it is not stopped for being idle before `deadline`."""
    WARNED = "warned"
    """It is stopped at `deadline` unless something changes."""
    SAVING = "saving"
    """It waits for documents to be saved, then it is stopped."""
    STOPPING = "stopping"
    UNLIMITED = "unlimited"
    """No limit of its profile or policy applies."""


class Limit(StrEnum):
    """Which limit the deadline comes from."""

    IDLE = "idle"
    SESSION = "session"
    """The longest session: also work is stopped then."""


class Act(StrEnum):
    """What a button does."""

    KEEP = "keep"
    SAVE_STOP = "save-stop"
    STOP = "stop"
    HANDOFF = "handoff"
    """Opens `Button.url`."""


class Button(Message):
    """One thing that the user can do now, in the order to show."""

    act: Act
    label: Word
    enabled: bool = True
    text: Line = ""
    """Why it is not enabled, or what it does."""
    url: Line = ""


class Evidence(Message):
    """One signal, as the culler sees it."""

    source: Word
    """``hub``, ``agent``, ``dcgm`` or ``pod``."""
    value: Literal["busy", "idle", "unknown"]
    text: Line
    age_seconds: Seconds | None = None
    """How old the observation is; None where there is none."""


class SaveRequest(Message):
    """Save all documents now, then send `Saved`."""

    id: Word
    seconds: Seconds
    """How long the stop waits for it at most."""


class Answer(Message):
    """What is going to happen to the server, and why."""

    v: Literal[1] = 1
    state: State
    reason: Word
    """Stable word for logs; the same in all places."""
    text: Line
    """The reason as a sentence for the user."""
    observe_only: bool = False
    """Nothing is stopped by this culler: it only says what it would do."""
    limit: Limit | None = None
    deadline: AwareDatetime | None = None
    """By the culler's clock."""
    seconds_left: Seconds | None = None
    """Until the deadline; None where none is set or its clock stands still."""
    stage: int = 0
    """How many warnings are due; 0 while none is."""
    lost: tuple[Line, ...] = ()
    """What cannot be saved, as sentences."""
    buttons: tuple[Button, ...] = ()
    save: SaveRequest | None = None
    evidence: tuple[Evidence, ...] = ()
    next_report_seconds: Seconds = REPORT_SECONDS
    """When to report next."""


PATH_REPORT: Final = "api/report"
PATH_KEEP: Final = "api/keep"
PATH_STOP: Final = "api/stop"
PATH_SAVED: Final = "api/saved"
