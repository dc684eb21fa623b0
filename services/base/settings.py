"""What an admin tells a service in its file.

Shell in one function: `_read` reads the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from hub_ext.catalog.base import Model
from hub_ext.catalog.source import Document, place, read_text
from hub_ext.errors import Finding, Severity, WorkspaceError
from hub_ext.managed import CATALOG, SETTINGS

from .mistakes import explain

S = TypeVar("S", bound="ServiceSettings")


class SettingsError(WorkspaceError):
    """The settings cannot be used; carries every finding, not only the first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(self.findings)

    def __str__(self) -> str:
        return "\n".join(["the settings are wrong", *map(str, self.findings)])


class ServiceSettings(Model):
    """What every service can be told; a service adds its own."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    authenticate_metrics: bool = True
    """Whether `/metrics` asks for a token with the scope `read:metrics`, as the hub's own does. The hub's
    proxy publishes all paths of a service: without it anyone may read them."""


class PrometheusSettings(Model):
    """Where metrics of the cluster are."""

    url: str
    """Such as ``http://prometheus-server.monitoring``."""
    token_file: Path | None = None
    """File with a bearer token; it is read anew for every question."""
    ca_file: Path | None = None
    """Certificates to trust in place of the usual ones."""


def read_settings(kind: type[S], path: Path | None, environment: Mapping[str, str] = os.environ) -> S:
    """Read the settings of a service from its YAML file, or else from a variable; see `hub_ext.managed`.

    Raises
    ------
    SettingsError
        The file cannot be read or says what does not make sense.
    """
    document = _read(path) if path else _parse(environment.get(SETTINGS) or "{}", SETTINGS)
    if document.problems:
        raise SettingsError(_finding(document, p.loc, p.message, p.help) for p in document.problems)
    if not isinstance(document.data, Mapping | None):
        raise SettingsError([_finding(document, (), "keys and values are expected")])
    data = dict(document.data or {})
    if CATALOG in environment and "catalog" in kind.model_fields:
        data.setdefault("catalog", environment[CATALOG])
    try:
        return kind.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SettingsError(
            _finding(document, details["loc"], *explain(kind, details))
            for details in error.errors(include_url=False)
        ) from None


def _read(path: Path) -> Document:
    try:
        return _parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        problem = f"the file cannot be read: {why}"
        raise SettingsError([_finding(Document(data=None, file=str(path)), (), problem)]) from None


def _parse(text: str, source: str) -> Document:
    documents = read_text(text, source)
    if len(documents) > 1:
        raise SettingsError([_finding(documents[0], (), f"there are {len(documents)} documents, not one")])
    return documents[0] if documents else Document(data={}, file=source)


def _finding(document: Document, loc: tuple[int | str, ...], message: str, remedy: str = "") -> Finding:
    file, line, path = place(document, loc)
    return Finding(
        severity=Severity.ERROR,
        code="bad-setting",
        message=message,
        path=path,
        file=file,
        line=line,
        help=remedy,
    )
