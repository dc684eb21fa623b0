"""The state of a git checkout: the commit, and what was changed since, so that nothing is silently lost.

Shell: runs git.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hub_ext.errors import WorkspaceError

from .archive import Packed, pack


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


def read_checkout(folder: Path) -> Checkout:
    """Read a checkout.

    Raises
    ------
    GitError
        No checkout, no remote that a run could fetch from, or a commit that was not pushed.
    """
    root = Path(_git(folder, "rev-parse", "--show-toplevel"))
    commit = _git(root, "rev-parse", "HEAD")
    url = _https(_git(root, "remote", "get-url", "origin"))
    if not _git(root, "branch", "--remotes", "--contains", commit):
        raise GitError(f"The commit {commit[:12]} is on no remote.", help="Push it first: git push.")
    below = folder.resolve().relative_to(root.resolve()).as_posix()
    return Checkout(url=url, commit=commit, folder="" if below == "." else below, changes=_changes(root))


def _changes(root: Path) -> Packed | None:
    patch = _git(root, "diff", "HEAD", "--binary", strip=False)
    untracked = [
        name for name in _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0") if name
    ]
    if not patch and not untracked:
        return None
    with tempfile.TemporaryDirectory() as made:
        staged = Path(made)
        if patch:
            (staged / "changes.patch").write_text(patch, encoding="utf-8", errors="surrogateescape")
        for name in untracked:
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((root / name).read_bytes())
        return pack(staged)


def _https(url: str) -> str:
    """Write the address of a remote so that it needs no key of the user: a run has none."""
    if url.startswith("git@"):
        host, _, path = url.removeprefix("git@").partition(":")
        url = f"https://{host}/{path}"
    if not url.startswith("https://") or "@" in url:
        raise GitError(f"The remote {url!r} is not reached by plain https.", help="Send a snapshot instead.")
    return url


def _git(folder: Path, *arguments: str, strip: bool = True) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, errors="surrogateescape", check=False
    )
    if done.returncode:
        raise GitError(f"git {arguments[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout.strip() if strip else done.stdout
