"""Prepares a run of a file as a job: the bundle's command uploads a snapshot, and its answer names the page.

Shell: starts a process.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

URL_ENV: Final = "GPU_WORKSPACES_HANDOFF_URL"
"""Variable of a workspace: where job-handoff answers. Without it the pages do not offer to run jobs."""
COMMAND = (sys.executable, "-m", "hub_ext.cli", "run")
PREPARE_SECONDS = 300
"""A snapshot of a large folder takes some of these to upload."""


class JobError(Exception):
    """A file could not be prepared.

    Parameters
    ----------
    problem
        Why, as a sentence for the user.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


async def prepare_job(root: str, path: str) -> str:
    """Upload what a run of the file needs and return the page where the user goes on. Raises `JobError`."""
    file = find_file(root, path)
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, file.name, "--prepare", "--json"),
        cwd=file.parent,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said, complaint = await asyncio.wait_for(process.communicate(), PREPARE_SECONDS)
    except TimeoutError:
        process.kill()
        raise JobError(f"Preparing {path} took more than {PREPARE_SECONDS} seconds") from None
    if url := page_of(said.decode(errors="replace")):
        return url
    raise JobError(problem_of(said.decode(errors="replace"), complaint.decode(errors="replace"), path))


def find_file(root: str, path: str) -> Path:
    """The file that a path below the server's root means. Raises `JobError`."""
    folder = Path(root).resolve()
    file = (folder / path.lstrip("/")).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        raise JobError(f"{path} is no file of this workspace")
    return file


def page_of(said: str) -> str | None:
    """The page that the command's JSON names, if it is one of HTTP or of this hub."""
    result = _read(said).get("result")
    url = result.get("url") if isinstance(result, dict) else None
    good = isinstance(url, str) and url.startswith(("/", "https://", "http://")) and not url.startswith("//")
    return url if good else None


def problem_of(said: str, complaint: str, path: str) -> str:
    """Why the command gave no page: its findings, its error, or the last line that it complained with."""
    answer = _read(said)
    findings = answer.get("findings")
    messages = [
        str(finding["message"])
        for finding in (findings if isinstance(findings, list) else ())
        if isinstance(finding, dict) and finding.get("message")
    ]
    last = complaint.strip().rpartition("\n")[2]
    error = answer.get("error")
    return "; ".join(messages) or str(error or "") or last or f"{path} could not be prepared"


def _read(said: str) -> dict[str, object]:
    try:
        found = json.loads(said)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
