"""What rendering to a target gives: documents, and what the target has no words for.

Pure: no clock, no network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..errors import Finding, Severity
from .documents import to_yaml

Object = Mapping[str, Any]

MANAGED_BY = {"app.kubernetes.io/managed-by": "gpu-workspaces"}
"""Label of every object that is rendered for a cluster."""


class Code(StrEnum):
    """What a rendering has to say beside its documents."""

    NOT_EXPRESSIBLE = "not-expressible"
    """The catalog says something that the target cannot; the message says what takes its place."""
    NODE_LABELS = "node-labels"
    """Labels that nodes need so that the rendered configuration reaches them."""
    NO_NAMESPACE = "team-without-namespace"
    """A team has no namespace of its own, so nothing can be rendered for it there."""
    SHARED_PULLER = "puller-pulls-everywhere"
    """The chart's image puller cannot tell pools apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """The result for one target; the same catalog always gives the same one."""

    documents: tuple[Object, ...]
    findings: tuple[Finding, ...] = ()

    def to_yaml(self) -> str:
        """Write all documents; notes stand above them as comments."""
        told = [finding for finding in self.findings if finding.severity is Severity.NOTE]
        notes = [f"# {line}" for finding in told for line in _lines(finding)]
        body = to_yaml(*self.documents) if self.documents else ""
        return "\n".join([*notes, body]) if notes else body


def _lines(finding: Finding) -> list[str]:
    text = f"{finding.path}: {finding.message}" if finding.path else finding.message
    return [line for part in (text, finding.help) for line in part.splitlines()]


def note(code: Code, path: str, message: str, *, help: str = "") -> Finding:  # noqa: A002
    """Say something about a rendering that stops nobody."""
    return Finding(severity=Severity.NOTE, code=code, path=path, message=message, help=help)
