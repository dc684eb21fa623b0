"""What a verb has to say, and the exit status that follows from it.

Pure: no clock, no network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..errors import Finding, Severity

WELL: Final = 0
FINDINGS: Final = 1
FAILED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Findings, the result for programs, and the same for people."""

    findings: Sequence[Finding] = ()
    result: Any = None
    """JSON data; what it holds is the verb's own business."""
    text: str = ""
    told: frozenset[Severity] = frozenset()
    """Findings of these severities are told by the text already."""
    failed: bool = False
    """The command could not do its work; the findings say why."""

    def exit_status(self, *, strict: bool) -> int:
        """Give 0, 1 or 2; notes never count, warnings only with `strict`."""
        if self.failed:
            return FAILED
        counted = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
        return FINDINGS if any(finding.severity in counted for finding in self.findings) else WELL

    def as_dict(self, verb: str, *, strict: bool) -> dict[str, Any]:
        """Give the whole as JSON data."""
        return {
            "verb": verb,
            "status": self.exit_status(strict=strict),
            "findings": [finding.as_dict() for finding in self.findings],
            "result": self.result,
        }


def table(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Align columns with two spaces between them; the last one may be as long as it likes."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append(indent + "  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)


def count(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 error``, ``3 errors``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def unreadable(findings: Sequence[Finding]) -> bool:
    """Say whether the source could not even be read, which is no finding about what is in it."""
    return any(finding.code == "unreadable" for finding in findings)
