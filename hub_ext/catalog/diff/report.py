"""Write a list of changes for a pull request.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .changes import Change, Impact

_TITLES: Final = {
    Impact.BREAKING: "Breaks for users",
    Impact.NOTICEABLE: "Users will notice",
    Impact.MINOR: "New or more",
}


def markdown(changes: Sequence[Change]) -> str:
    """Write changes under a heading per impact, grouped by what they concern."""
    if not changes:
        return "### Workspace catalog\n\nUsers will notice nothing.\n"
    lines = ["### Workspace catalog", ""]
    for impact, title in _TITLES.items():
        group = [change for change in changes if change.impact is impact]
        if not group:
            continue
        lines += [f"#### {title} ({len(group)})", ""]
        for subject in dict.fromkeys(change.subject for change in group):
            lines.append(f"- {_code(subject)}")
            lines += [f"  - {_text(c)}" for c in group if c.subject == subject]
        lines.append("")
    return "\n".join(lines)


def plain(changes: Iterable[Change]) -> str:
    """Write one line per change, for a terminal."""
    return "\n".join(
        f"{change.impact}[{change.code}] {change.subject}: {' '.join(change.message.split())}"
        for change in changes
    )


def _text(change: Change) -> str:
    remedy = f" _{_escape(change.help)}_" if change.help else ""
    return f"{_escape(change.message)} ({change.code}){remedy}"


def _escape(text: str) -> str:
    """Keep texts of the catalog from being read as Markdown or HTML, and on one line."""
    text = " ".join(text.split())
    for character in "\\`*_{}[]<>|#~&":
        text = text.replace(character, f"\\{character}")
    return text


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
