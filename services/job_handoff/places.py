"""Where things are in the store. Teams come first: a bucket policy for ``<team>/*`` keeps teams apart.

::

    _none/<user>/snapshots/<sha256>.tar.gz, .json       sources, and what is in them
    <team>/<user>/runs/<run>/outputs/…, logs/…, log.txt results
    <team>/<user>/records/<run>.json                    what was run and how it ended
    <team>/<user>/checkpoints/<first run>/…             shared by runs that go on from each other
    _audit/<day>/<run>.json                             who ran what

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from .ids import NO_TEAM, owner_prefix, run_prefix
from .record import Record

AUDIT: Final = "_audit"


def snapshot_path(user: str, digest: str) -> str:
    """Give the place of an uploaded archive."""
    return f"{owner_prefix(NO_TEAM, user)}/snapshots/{digest}.tar.gz"


def contents_path(user: str, digest: str) -> str:
    """Give the place of what is known about an uploaded archive."""
    return f"{owner_prefix(NO_TEAM, user)}/snapshots/{digest}.json"


def record_folder(team: str, user: str) -> str:
    """Give the folder of a user's records."""
    return f"{owner_prefix(team, user)}/records/"


def record_path(team: str, user: str, run: str) -> str:
    """Give the place of the record of a run."""
    return f"{record_folder(team, user)}{run}.json"


def file_path(team: str, user: str, run: str, name: str) -> str:
    """Give the place of a file of a run; `name` has been checked (`model.check_path`)."""
    return f"{run_prefix(team, user, run)}/{name}"


def checkpoint_folder(team: str, user: str, lineage: str) -> str:
    """Give the folder of the checkpoints of runs that go on from each other."""
    return f"{owner_prefix(team, user)}/checkpoints/{lineage}/"


def audit_path(day: date, run: str) -> str:
    """Give the place of an entry of the audit trail."""
    return f"{AUDIT}/{day.isoformat()}/{run}.json"


def group_of(path: str) -> str:
    """Give what a file goes or stays with: a run's folder, a lineage, or the file itself."""
    parts = path.split("/")
    return "/".join(parts[:4]) if len(parts) > 4 and parts[2] in {"runs", "checkpoints"} else path


def needed_by(record: Record) -> tuple[str, ...]:
    """Name what a run that is still there reads, as `group_of` gives it: its source and its checkpoints."""
    source = record.request.get("source") or {}
    digests = [source.get("sha256"), source.get("patch")]
    sources = [
        path
        for digest in digests
        if isinstance(digest, str)
        for path in (snapshot_path(record.user, digest), contents_path(record.user, digest))
    ]
    return (*sources, checkpoint_folder(record.team, record.user, record.lineage).rstrip("/"))


def made_by(record: Record) -> tuple[str, ...]:
    """Name what a run has made, as `group_of` gives it: its results and logs, and its record."""
    mine = run_prefix(record.team, record.user, record.id)
    return mine, record_path(record.team, record.user, record.id)


def is_record(path: str) -> bool:
    """Say whether a file is the record of a run."""
    parts = path.split("/")
    return len(parts) == 4 and parts[2] == "records" and path.endswith(".json")


def is_source(path: str) -> bool:
    """Say whether a file is an uploaded source, or what is known about one."""
    parts = path.split("/")
    return len(parts) == 4 and parts[0] == NO_TEAM and parts[2] == "snapshots"


def names_of(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    """Give the names below a folder."""
    return tuple(path.removeprefix(folder).lstrip("/") for path in paths)
