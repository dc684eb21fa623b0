"""What a difference between two catalogs can be, and how much it means to users.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...errors import Finding, Severity


class Impact(StrEnum):
    """How much users are affected."""

    BREAKING = "breaking"
    """Work stops, files are elsewhere, or a right is gone."""
    NOTICEABLE = "noticeable"
    """Users see a difference and can go on."""
    MINOR = "minor"
    """More of something, or a new offer."""


class ChangeCode(StrEnum):
    """Stable words for what changed."""

    NO_LONGER_STARTS = "no-longer-starts"
    MOVED = "moved"
    DEPRECATED = "deprecated"
    HIDDEN = "hidden"
    OFFERED = "offered"
    ADDED = "added"
    RENAMED = "renamed"
    RECOMMENDED = "recommended"
    DEFAULT_PROFILE = "default-profile"
    ALIAS = "alias"
    ACCESS_LOST = "access-lost"
    ACCESS_GAINED = "access-gained"
    PRICE = "price"
    IMAGE = "image"
    IMAGE_REMOVED = "image-removed"
    CUDA_MAJOR = "cuda-major"
    CPU = "cpu"
    MEMORY = "memory"
    GPU_KIND = "gpu-kind"
    GPU_COUNT = "gpu-count"
    HOME = "home"
    HOME_PATH = "home-path"
    HOME_SIZE = "home-size"
    SCRATCH = "scratch"
    MOUNT = "mount"
    MOUNT_PATH = "mount-path"
    MOUNT_READ_ONLY = "mount-read-only"
    CHECKPOINTS = "checkpoints"
    SHARED_MEMORY = "shared-memory"
    WORK_DIR = "work-dir"
    CHOICE = "choice"
    OPTION = "option"
    ENVIRONMENT = "environment"
    SESSION = "session"
    SECURITY = "security"
    TEAM = "team"
    QUOTA = "quota"


_SEVERITY: Final = {
    Impact.BREAKING: Severity.ERROR,
    Impact.NOTICEABLE: Severity.WARNING,
    Impact.MINOR: Severity.NOTE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that users will notice."""

    impact: Impact
    code: ChangeCode
    subject: str
    """Whom it concerns: ``gpu-full@2 → gpu-full@3``, ``team nlp``."""
    message: str
    help: str = ""

    def finding(self) -> Finding:
        """Give it in the shape of the command's output: breaking is an error, minor a note."""
        return Finding(
            severity=_SEVERITY[self.impact],
            code=self.code.value,
            path=self.subject,
            message=self.message,
            help=self.help,
        )


ORDER: Final = {impact: index for index, impact in enumerate(Impact)}
