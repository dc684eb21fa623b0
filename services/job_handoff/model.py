"""What a user may ask for: one strict model, from which the API's description is made too.

There is no place in it for labels, annotations, volumes, accounts or parts of a pod.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from hub_ext.catalog.base import Duration, Model
from hub_ext.catalog.model import RunKind
from hub_ext.units import format_duration

from .verdicts import RefusalReason, RunRefusedError

LONGEST_PATH: Final = 512
MOST_PARAMETERS: Final = 100
LARGEST_REQUEST: Final = 64 * 1024
"""Bytes of a request as JSON. It is kept on the object, whose annotations may have 256 KiB in all."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def check_path(text: str) -> str:
    """Refuse what does not name a file below the source's root, whatever program reads it.

    Raises
    ------
    PydanticCustomError
        Absolute, with ``..``, with control characters, or too long.
    """
    parts = PurePosixPath(text).parts
    if not parts or text.startswith("/") or ".." in parts or "\\" in text or len(text) > LONGEST_PATH:
        raise PydanticCustomError("path", "is not a path below the source's folder", {})
    if _CONTROL.search(text):
        raise PydanticCustomError("path", "has control characters", {})
    return "/".join(parts)


def _plain(text: str) -> str:
    if _CONTROL.search(text):
        raise PydanticCustomError("text", "has control characters", {})
    return text.strip()


RelativePath = Annotated[str, AfterValidator(check_path), Field(max_length=LONGEST_PATH)]
Pattern = RelativePath
"""Path with ``*`` and ``**``."""
Line = Annotated[str, AfterValidator(_plain), Field(max_length=120)]
"""A short text for people. It is escaped wherever it is shown."""
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^run-[a-z2-7]{16}(-[0-9]{1,11})?$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Argument = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]
Span = Annotated[Duration, PlainSerializer(format_duration, return_type=str, when_used="json")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Parameter = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Kernel = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class Notebook(Model):
    """Run a notebook with papermill; it comes back executed, as far as it got."""

    type: Literal["notebook"]
    path: RelativePath
    """File in the source."""
    parameters: dict[Parameter, JsonValue] = Field(default_factory=dict, max_length=MOST_PARAMETERS)
    """Written into a cell after the one that is tagged `parameters`."""
    kernel: Kernel | None = None
    """Kernel to take instead of the notebook's own."""


class Script(Model):
    """Run a program."""

    type: Literal["script"]
    path: RelativePath
    """File in the source."""
    arguments: tuple[Argument, ...] = Field(default=(), max_length=200)
    """Handed to it as they are; no shell reads them."""
    launcher: Literal["python", "torchrun", "bash"] = "python"
    """What starts the file. `torchrun` finds its peers by what Trainer sets in a `trainjob`."""


class Snapshot(Model):
    """Files that were uploaded."""

    type: Literal["snapshot"]
    sha256: Digest
    """Of the archive, as the upload gave it."""


class Git(Model):
    """A commit, and what was changed since."""

    type: Literal["git"]
    url: Annotated[
        str, StringConstraints(pattern=r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~/-]{1,300}$")
    ]
    """Repository, by https and without credentials."""
    commit: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
    """Full hash: a branch can move."""
    patch: Digest | None = None
    """An uploaded archive with `changes.patch` and the untracked files; what was not committed is in it."""


class HomeFolder(Model):
    """The user's own volume, where it can be mounted: code is read as it is when the run starts."""

    type: Literal["home"]
    folder: RelativePath | None = None
    """Folder of the home that the run starts in; left out, the home itself."""


Source = Annotated[Snapshot | Git | HomeFolder, Field(discriminator="type")]
Entry = Annotated[Notebook | Script, Field(discriminator="type")]


class Schedule(Model):
    """When it runs again and again."""

    cron: Line
    """Five fields (minute, hour, day, month, weekday), or one of `@hourly`, `@daily`, `@weekly`, …, as
    Kubernetes' CronJob reads them."""
    time_zone: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+/-]{1,64}$")] = "Etc/UTC"
    """Name of the IANA data base, such as Europe/Berlin."""


class RunRequest(Model):
    """One run, or one that is repeated."""

    key: Key | None = None
    """Idempotency key: the same key and request give the same run, however often it is sent."""
    name: Line = ""
    """What you call it; left out, the file's name."""
    profile: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,63}(@[a-z0-9]{1,20})?$")]
    """Job profile, `name` or `name@version`."""
    choices: dict[Annotated[str, Field(max_length=63)], Annotated[str, Field(max_length=1024)]] = Field(
        default_factory=dict, max_length=20
    )
    """Answers to the profile's questions."""
    team: Annotated[str, Field(max_length=63)] = ""
    """Team to book on, where the user has several."""
    kind: RunKind | None = None
    """Left out, the profile's first."""
    entry: Entry
    """The notebook or script that is run."""
    source: Source
    """Where its files come from."""
    image: Literal["profile", "server"] = "profile"
    """`server` takes the image of the user's running server, by digest."""
    server: Annotated[str, Field(max_length=255)] | None = None
    """Name of the user's server that hands off; empty for the default one."""
    release: bool = False
    """Stop that server once the run is created, so that its GPU is free."""
    environment: dict[EnvName, Argument] = Field(default_factory=dict, max_length=50)
    """Variables; which ones are allowed is the admin's choice. No secrets."""
    priority: Annotated[str, Field(max_length=63)] | None = None
    """How urgent it is, in the catalog's words; left out, the default."""
    nodes: int = Field(default=1, ge=1, le=512, strict=True)
    """Pods with the profile's resources."""
    retries: int = Field(default=0, ge=0, le=10, strict=True)
    """How often it starts again after it failed; a preemption does not count."""
    max_duration: Span | None = None
    """Ends the run after this long; waiting in the queue is not counted."""
    outputs: tuple[Pattern, ...] = Field(default=("outputs/**",), max_length=20)
    """Files to keep, beside the executed notebook and the log."""
    kernels: tuple[Kernel, ...] | None = Field(default=None, max_length=200)
    """Kernels that the workspace has, for a check before the run; left out, they are not known."""
    resume_from: RunId | None = None
    """An earlier run whose checkpoints this one goes on from."""
    schedule: Schedule | None = None
    """Left out, it runs once."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.release and self.server is None:
            raise PydanticCustomError("release", "say which server to release: server is missing", {})
        return self

    @property
    def title(self) -> str:
        """What people read."""
        return self.name or PurePosixPath(self.entry.path).name


def read_request(body: object) -> RunRequest:
    """Read a request of any shape.

    Raises
    ------
    RunRefusedError
        `bad-request`, with the place of the first fault.
    """
    if not isinstance(body, Mapping):
        raise RunRefusedError(RefusalReason.BAD_REQUEST, "The body must be a JSON object.")
    _check_json(body)
    try:
        return RunRequest.model_validate(body)
    except ValidationError as error:
        raise _first(error) from error


def _check_json(body: Mapping[str, Any]) -> None:
    """Refuse what Python reads as JSON and others do not: it is kept as JSON, and other programs read it."""
    try:
        size = len(json.dumps(body, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise RunRefusedError(
            RefusalReason.BAD_REQUEST,
            "The request has a number that is none (NaN, Infinity), half a letter, or too many levels.",
        ) from error
    if size > LARGEST_REQUEST:
        raise RunRefusedError(
            RefusalReason.BAD_REQUEST,
            f"The request is larger than {LARGEST_REQUEST // 1024} KiB.",
            help="Put large parameters into a file of the source.",
        )


def _first(error: ValidationError) -> RunRefusedError:
    fault: Any = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(
        str(step) for step in fault["loc"] if step not in {"notebook", "script", "snapshot", "git"}
    )
    message = str(fault["msg"]).removeprefix("Value error, ")
    return RunRefusedError(RefusalReason.BAD_REQUEST, f"{place or 'The request'}: {message}.", field=place)
