"""The state of a git checkout: the commit, and what was changed since, so that nothing is silently lost.

Shell: runs git.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hub_ext.errors import WorkspaceError

from .packing import Packed, own_rules, pack
from .runner.source import PATCH
from .snapshot import Limits

_DIFF: Final = (
    "--binary",
    "--full-index",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
"""A difference that can be applied, whatever the user's own settings for looking at differences are."""


class GitError(WorkspaceError):
    """A checkout cannot be run from; `help` says what to do."""

    def __init__(self, message: str, *, help: str = "") -> None:  # noqa: A002
        self.help = help
        super().__init__(f"{message} {help}".strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What a run of a checkout needs."""

    url: str
    commit: str
    folder: str
    """The folder that was looked at, below the root of the repository; empty for the root."""
    changes: Packed | None
    """The difference to the commit and the untracked files; None for a clean checkout."""


def read_checkout(folder: Path, limits: Limits | None = None) -> Checkout:
    """Read a checkout.

    Raises
    ------
    GitError
        No checkout, no remote that a run could fetch from, a commit that was not pushed, or files that a
        fetch of the commit would not bring.
    """
    root = Path(_line(folder, "rev-parse", "--show-toplevel"))
    commit = _line(root, "rev-parse", "HEAD")
    url = _https(_line(root, "remote", "get-url", "origin"))
    if not _line(root, "branch", "--remotes", "--contains", commit):
        raise GitError(f"The commit {commit[:12]} is on no remote.", help="Push it first: git push.")
    _check_fetched(root)
    below = folder.resolve().relative_to(root.resolve()).as_posix()
    return Checkout(
        url=url, commit=commit, folder="" if below == "." else below, changes=_changes(root, limits)
    )


def check_taken(file: Path) -> None:
    """Refuse a file that would not be there in the run, since git is told to ignore it.

    Raises
    ------
    GitError
        It is ignored.
    """
    if _call(file.parent, "check-ignore", "--quiet", "--", file.name).returncode == 0:
        raise GitError(f"{file.name} is ignored by git, so a run would not have it.", help=_SNAPSHOT)


_SNAPSHOT: Final = "Send a snapshot of the folder instead."


def _check_fetched(root: Path) -> None:
    """Refuse a commit whose files are not all in it."""
    if any(entry.startswith("160000 ") for entry in _lines(root, "ls-files", "--stage", "-z")):
        raise GitError("The repository has submodules, which a run does not fetch.", help=_SNAPSHOT)
    attributes = ("*.gitattributes", ".gitattributes")
    if _call(root, "grep", "--quiet", "filter=lfs", "--", *attributes).returncode == 0:
        raise GitError("The repository has files in LFS, which a run does not fetch.", help=_SNAPSHOT)


def _changes(root: Path, limits: Limits | None = None) -> Packed | None:
    patch = _git(root, "diff", "HEAD", *_DIFF)
    untracked = _lines(root, "ls-files", "--others", "--exclude-standard", "-z")
    if not patch and not untracked:
        return None
    if (root / PATCH).exists():
        raise GitError(f"The file {PATCH} has the name that is needed for your changes.", help="Rename it.")
    with tempfile.TemporaryDirectory() as made:
        staged = Path(made)
        if patch:
            (staged / PATCH).write_bytes(patch)
        for name in untracked:
            if name.endswith("/"):
                what = f"{name} is a repository of its own, which a run does not fetch."
                raise GitError(what, help=_SNAPSHOT)
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target, follow_symlinks=False)
        return pack(staged, limits, rules=own_rules(root))


def _https(url: str) -> str:
    """Write the address of a remote so that it needs no key of the user: a run has none."""
    if url.startswith("git@"):
        host, _, path = url.removeprefix("git@").partition(":")
        url = f"https://{host}/{path}"
    if not url.startswith("https://") or "@" in url:
        raise GitError(f"The remote {url!r} is not reached by plain https.", help=_SNAPSHOT)
    return url


def _call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git. Its output stays bytes: read as text, the ends of lines in a patch would change."""
    try:
        return subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *arguments],  # noqa: S607
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError("There is no git here.", help=_SNAPSHOT) from error


def _git(folder: Path, *arguments: str) -> bytes:
    done = _call(folder, *arguments)
    if done.returncode:
        raise GitError(f"git {arguments[0]}: {os.fsdecode(done.stderr).strip()[-300:]}")
    return done.stdout


def _line(folder: Path, *arguments: str) -> str:
    return os.fsdecode(_git(folder, *arguments)).strip()


def _lines(folder: Path, *arguments: str) -> list[str]:
    """Give an output whose parts end with a null character."""
    return [one for one in os.fsdecode(_git(folder, *arguments)).split("\0") if one]
