"""What can go wrong, drawn as a tree; every error carries fields, names the place and says what to do.

::

    WorkspaceError
    ├── CatalogError(findings)              the catalog is wrong: nothing is loaded
    ├── BadValueError(code, message, help)  one value cannot be read (also a ValueError)
    │   ├── QuantityError                   … a quantity, a duration or a count
    │   └── NameRuleError                   … an object name, a label or an image reference
    ├── SelectionError(reason, message, …)  a user asked for what they cannot have: shown to the user
    ├── RemoteError(system, status, what)   another system failed; foreign exceptions end here
    │   ├── HubError
    │   ├── KubeError(kind, namespace, name)
    │   │   ├── GoneError                   … a watch has to begin anew (`cluster.sources`)
    │   │   ├── DeniedError                 … the hub may not read it (`cluster.sources`)
    │   │   └── NotFoundError, …            … by what services do about it (`services.kube`)
    │   └── PrometheusError
    ├── UsageError                          the command line makes no sense as a whole (`cli.catalogs`)
    └── PreviewError                        a hub's configuration gives no pod (`cli.preview`)

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Severity(StrEnum):
    """How bad a finding is; only an error stops a catalog from loading."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class FindingCode(StrEnum):
    """Base of names of findings: each is written once, with how bad it is and what it means."""

    severity: Severity
    meaning: str

    def __new__(cls, word: str, severity: Severity = Severity.ERROR, meaning: str = "") -> Self:
        """Make a member of what `error`, `warning` or `note` gives; it is found by the word alone."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.severity, made.meaning = severity, meaning
        return made


def error(word: str, meaning: str) -> tuple[str, Severity, str]:
    """Write a finding that stops a source from being used."""
    return word, Severity.ERROR, meaning


def warning(word: str, meaning: str) -> tuple[str, Severity, str]:
    """Write a finding that needs a look."""
    return word, Severity.WARNING, meaning


def note(word: str, meaning: str) -> tuple[str, Severity, str]:
    """Write a finding that only tells."""
    return word, Severity.NOTE, meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to say about a source: what, where, and what to do."""

    severity: Severity
    code: str
    """Stable word from the table of codes, for filters and links."""
    message: str
    path: str = ""
    """Place inside the document, as `yq` writes it: ``profiles[2].resources.gpu.count``."""
    file: str | None = None
    line: int | None = None
    """First line is 1; None where the source has no lines."""
    help: str = ""

    def as_dict(self) -> dict[str, str | int | None]:
        """Give the fields in the order of the command's JSON output."""
        return {
            "severity": self.severity.value,
            "code": self.code,
            "path": self.path,
            "file": self.file,
            "line": self.line,
            "message": self.message,
            "help": self.help,
        }

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        head = f"{place}: " if place else ""
        where = f" at {self.path}" if self.path else ""
        tail = f"\n    {self.help}" if self.help else ""
        return f"{head}{self.severity.value}[{self.code}]{where}: {self.message}{tail}"


class WorkspaceError(Exception):
    """Base of everything this project raises on purpose."""


class CatalogError(WorkspaceError):
    """The catalog cannot be used; carries every finding, not only the first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(self.findings)

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity is Severity.ERROR)

    def __str__(self) -> str:
        count = len(self.errors)
        head = f"the catalog has {count} error{'' if count == 1 else 's'}"
        return "\n".join([head, *map(str, self.findings)])


class BadValueError(WorkspaceError, ValueError):
    """One value cannot be read. `code` is a finding code, `help` the remedy."""

    def __init__(self, message: str, *, code: str = "bad-value", help: str = "") -> None:  # noqa: A002
        self.code = code
        self.message = message
        self.help = help
        super().__init__(message)


class QuantityError(BadValueError):
    """A quantity, a duration or a count cannot be read."""

    def __init__(self, message: str, *, code: str = "bad-quantity", help: str = "") -> None:  # noqa: A002
        super().__init__(message, code=code, help=help)


class NameRuleError(BadValueError):
    """A name, a label value or an image reference breaks the rules for it."""

    def __init__(self, message: str, *, code: str = "bad-name", help: str = "") -> None:  # noqa: A002
        super().__init__(message, code=code, help=help)


class SelectionReason(StrEnum):
    """Why a choice was refused."""

    UNKNOWN_PROFILE = "unknown-profile"
    UNKNOWN_VERSION = "unknown-version"
    UNKNOWN_CHOICE = "unknown-choice"
    UNKNOWN_OPTION = "unknown-option"
    CONFLICTING_OPTIONS = "conflicting-options"
    BAD_IMAGE = "bad-image"
    RETIRED = "retired"
    NOT_ALLOWED = "not-allowed"
    NOTHING_OFFERED = "nothing-offered"
    BAD_REQUEST = "bad-request"


class SelectionError(WorkspaceError):
    """A user asked for what they cannot have. `message` is plain text for that user."""

    def __init__(
        self,
        reason: SelectionReason,
        message: str,
        *,
        field: str = "",
        allowed: Iterable[str] = (),
        help: str = "",  # noqa: A002
    ) -> None:
        self.reason = reason
        self.message = message
        self.field = field
        """The key of `user_options` that is at fault, empty for the choice as a whole."""
        self.allowed = tuple(allowed)
        """What may stand there instead."""
        self.help = help
        super().__init__(message)


class RemoteError(WorkspaceError):
    """Another system did not do what it was asked; `status` is its HTTP status, if it answered."""

    def __init__(self, what: str, *, system: str, status: int | None = None) -> None:
        self.what = what
        self.system = system
        self.status = status
        super().__init__(f"{system}: {what}" if status is None else f"{system}: {what} (status {status})")


class HubError(RemoteError):
    """JupyterHub's REST interface failed."""

    def __init__(self, what: str, *, status: int | None = None) -> None:
        super().__init__(what, system="JupyterHub", status=status)


class KubeError(RemoteError):
    """The Kubernetes API failed on one object."""

    def __init__(
        self,
        what: str,
        *,
        kind: str,
        namespace: str = "",
        name: str = "",
        status: int | None = None,
        reason: str = "",
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.reason = reason
        """In the API's own word, such as ``AlreadyExists``; empty where it gave none."""
        super().__init__(what, system="Kubernetes", status=status)


class PrometheusError(RemoteError):
    """A query could not be answered."""

    def __init__(self, what: str, *, status: int | None = None) -> None:
        super().__init__(what, system="Prometheus", status=status)
