"""What may be in a snapshot of a working folder, and what is left out of it.

The same rules hold where it is packed, in the workspace, and where it arrives: what a user's program sends is
not trusted to have kept them.

Pure: no clock, no network.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Final

from pathspec import GitIgnoreSpec

from hub_ext.units import gib

from .verdicts import RefusalReason, RunRefusedError

IGNORE_FILE: Final = ".handoffignore"
"""Lines as in `.gitignore`; where it is missing, `.gitignore` itself is read."""
USUALLY_IGNORED: Final = (".*/", "runs/run-*/")
"""Hidden folders and brought results; an ignore file can take them back with ``!``."""
ALWAYS_IGNORED: Final = (
    ".git/",
    "__pycache__/",
    ".ipynb_checkpoints/",
    ".venv/",
    "venv/",
    "node_modules/",
    ".cache/",
    ".local/",
    ".conda/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".Trash-*/",
    "*.pyc",
    ".DS_Store",
)

_SECRET_NAMES: Final = re.compile(
    r"(^|/)(\.aws|\.ssh|\.kube|\.gnupg|\.docker|\.azure)/.|(^|/)\.config/gcloud/."
    r"|(^|/)(\.netrc|\.pypirc|\.git-credentials|\.npmrc|\.env|\.pgpass|\.s3cfg|\.vault-token|\.dockercfg|kubeconfig|\.huggingface/token|id_(rsa|dsa|ecdsa|ed25519))$"
    r"|\.(pem|p12|pfx|kdbx|ppk)$",
    re.IGNORECASE,
)
_SECRETS: Final = (
    ("a private key", (b"PRIVATE KEY",), rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY(?: BLOCK)?-----"),
    ("an access key of AWS", (b"AKIA", b"ASIA"), rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (
        "a token of GitHub",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
        rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{50})",
    ),
    ("a token of GitLab", (b"glpat-",), rb"\bglpat-[A-Za-z0-9_-]{20}"),
    ("a token of Hugging Face", (b"hf_",), rb"\bhf_[A-Za-z0-9]{34}\b"),
    ("a token of Slack", (b"xox",), rb"\bxox[abprs]-[A-Za-z0-9-]{20}"),
    ("a key of OpenAI", (b"sk-proj-",), rb"\bsk-proj-[A-Za-z0-9_-]{40}"),
    ("a key of Anthropic", (b"sk-ant-",), rb"\bsk-ant-[A-Za-z0-9_-]{40}"),
    ("a key of NVIDIA", (b"nvapi-",), rb"\bnvapi-[A-Za-z0-9_-]{60}"),
    ("a key of Google", (b"AIza",), rb"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    ("a token of PyPI", (b"pypi-AgEIcHlwaS5vcmc",), rb"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50}"),
)
"""What it is, what stands in it in any case, and how all of it looks."""
_PATTERNS: Final = tuple((what, marks, re.compile(pattern)) for what, marks, pattern in _SECRETS)
SEARCHED: Final = 1024 * 1024
"""Bytes of a file that are searched for credentials at once."""
_LONGEST_SECRET: Final = 256
LONGEST_PATH: Final = 1024
"""Bytes of a name with its folders; the names of a source are kept beside it."""
_NAMED: Final = 5


class MemberKind(StrEnum):
    """What one member of an archive is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of an archive."""

    path: str
    kind: MemberKind
    size: int = 0
    target: str = ""
    """Of a symbolic link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a snapshot may hold."""

    files: int = 20_000
    size: int = 512 * 1024 * 1024
    """Bytes, unpacked."""
    packed: int = 200 * 1024 * 1024
    """Bytes of the archive."""


def ignore_rules(lines: Iterable[str]) -> GitIgnoreSpec:
    """Read ignore rules; the last that matches decides, so what is always ignored cannot be taken back."""
    return read_rules([*USUALLY_IGNORED, *lines, *ALWAYS_IGNORED])


def read_rules(lines: Iterable[str]) -> GitIgnoreSpec:
    """Read lines of an ignore file. As with git, one that is no pattern says nothing."""
    return GitIgnoreSpec.from_lines(line for line in lines if _is_pattern(line))


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True


def check_member(member: Member) -> None:
    """Refuse what could leave the folder that it is unpacked into.

    Raises
    ------
    RunRefusedError
        `source-unsafe` or `credential-in-source`.
    """
    path = member.path
    parts = path.split("/")
    shown = path[:200]
    if not _is_text(path) or len(path.encode()) > LONGEST_PATH:
        raise _unsafe(f"The name {shown!r} is too long, or is not text (UTF-8).")
    if not path or path.startswith("/") or "\\" in path or any(part in {"", ".", ".."} for part in parts):
        raise _unsafe(f"{shown!r} does not lie in the folder.")
    if any(ord(letter) < 32 for letter in path):
        raise _unsafe(f"{shown!r} has control characters in its name.")
    if member.kind is MemberKind.OTHER:
        raise _unsafe(f"{shown!r} is neither a file, a folder nor a link.")
    if member.kind is MemberKind.LINK and not _stays_inside(path, member.target):
        raise _unsafe(f"The link {shown!r} leads out of the folder.")
    if member.kind is not MemberKind.FOLDER and _SECRET_NAMES.search(path):
        raise credential(path, "credentials by its name")


def _is_text(path: str) -> bool:
    """Say whether a name can be written down: one that is no UTF-8 has parts that stand for single bytes."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def _stays_inside(path: str, target: str) -> bool:
    below = [step for step in target.split("/") if step not in {"", "."}]
    # Only in front `..` means the folder above: behind a link it is the one above where that leads.
    climbs = ".." in below[next((n for n, step in enumerate(below) if step != ".."), len(below)) :]
    if not target or target.startswith("/") or "\\" in target or climbs:
        return False
    where = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return where != ".." and not where.startswith("../")


def _unsafe(message: str) -> RunRefusedError:
    return RunRefusedError(
        RefusalReason.SOURCE_UNSAFE,
        message,
        field="source",
        help=f"Take it out, or name it in {IGNORE_FILE}.",
    )


def credential(path: str, what: str) -> RunRefusedError:
    """Make the error for a file that holds a credential; the credential itself is not repeated."""
    return RunRefusedError(
        RefusalReason.CREDENTIAL_IN_SOURCE,
        f"{path[:200]!r} holds {what}, and files of a run are kept.",
        field="source",
        help=f"Take it out, or name the file in {IGNORE_FILE}.",
    )


def find_credential(content: bytes) -> str:
    """Say which kind of credential stands in a text; empty for none."""
    return next(
        (
            what
            for what, marks, pattern in _PATTERNS
            if any(mark in content for mark in marks) and pattern.search(content)
        ),
        "",
    )


def search(file: IO[bytes]) -> str:
    """Say which kind of credential stands in the rest of a file; empty for none."""
    before = b""
    while piece := file.read(SEARCHED):
        if what := find_credential(before + piece):
            return what
        before = piece[-_LONGEST_SECRET:]
    return ""


def check_total(members: int, size: int, limits: Limits, *, largest: Iterable[tuple[int, str]] = ()) -> None:
    """Refuse what is too much.

    Parameters
    ----------
    largest
        Sizes and names, the largest first: they are named as what to leave out.

    Raises
    ------
    RunRefusedError
        `source-too-large`.
    """
    if members <= limits.files and size <= limits.size:
        return
    names = [f"{path} ({gib(amount)})" for amount, path in list(largest)[:_NAMED]]
    most = (
        f"{members} files, and {limits.files} are allowed"
        if members > limits.files
        else (f"{gib(size)}, and {gib(limits.size)} are allowed")
    )
    raise RunRefusedError(
        RefusalReason.SOURCE_TOO_LARGE,
        f"The folder has {most}.",
        field="source",
        help=f"Name in {IGNORE_FILE} what the run does not need{': ' + ', '.join(names) if names else ''}.",
    )


def check_packed(size: int, limits: Limits) -> None:
    """Refuse an archive that is too large as it is sent.

    Raises
    ------
    RunRefusedError
        `source-too-large`.
    """
    if size > limits.packed:
        raise RunRefusedError(
            RefusalReason.SOURCE_TOO_LARGE,
            f"The archive is too large: {gib(limits.packed)} are allowed.",
            field="source",
            help=f"Name in {IGNORE_FILE} what the run does not need.",
        )


def check_entry(paths: Iterable[str], entry: str) -> None:
    """Refuse a source without the file that is to run.

    Raises
    ------
    RunRefusedError
        `entry-missing`, naming what is there instead.
    """
    known = set(paths)
    if entry in known:
        return
    runnable = sorted(path for path in known if path.endswith((".ipynb", ".py", ".sh")))
    raise RunRefusedError(
        RefusalReason.ENTRY_MISSING,
        f"{entry!r} is not among the files of the run.",
        field="entry.path",
        allowed=runnable[:20],
        help="It may be named in an ignore file.",
    )
