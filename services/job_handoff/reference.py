"""The tables of `REFERENCE.md`, made from the code that they describe.

``python -m services.job_handoff.reference`` writes them anew; a test compares.

Shell in `main` only, which writes a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from .model import RunRequest
from .openapi import describe
from .reasons import RunReason
from .rights import RIGHTS
from .settings import HandoffSettings
from .texts import sentence
from .verdicts import RefusalReason, RunRefusedError

FILE = Path(__file__).with_name("REFERENCE.md")


def tables() -> dict[str, str]:
    """Give each table by its name."""
    return {
        "settings": _rows(("setting", "meaning"), _settings(HandoffSettings)),
        "request": _rows(("field", "meaning"), _settings(RunRequest)),
        "routes": _rows(("call", "path", "what"), _routes()),
        "refusals": _rows(("reason", "status"), _refusals()),
        "reasons": _rows(("reason", "text"), ((f"`{r.value}`", sentence(r)) for r in RunReason)),
        "scopes": _rows(("scope", "why"), ((f"`{s.name}`", s.why) for s in RIGHTS.scopes)),
        "rules": _rows(("where", "what", "verbs", "why"), _rules()),
    }


def _rows(head: tuple[str, ...], rows: Any) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += [
        "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines)


def _settings(kind: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    for field in kind.model_fields.values():
        name = f"{prefix}{field.alias}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _settings(inner, f"{name}.")
        else:
            yield f"`{name}`", field.description or ""


def _routes() -> Iterator[tuple[str, str, str]]:
    for path, calls in describe("/")["paths"].items():
        for method, call in calls.items():
            if method != "parameters":
                yield method.upper(), f"`{path}`", call["summary"]


def _refusals() -> Iterator[tuple[str, str]]:
    for reason in RefusalReason:
        yield f"`{reason.value}`", str(RunRefusedError(reason, "").status)


def _rules() -> Iterator[tuple[str, str, str, str]]:
    for rule in RIGHTS.rules:
        what = ", ".join(f"`{one}`" for one in rule.resources) + (f" of `{rule.group}`" if rule.group else "")
        why = f"{rule.why}{' (may be left out)' if rule.optional else ''}"
        yield rule.where.value, what, ", ".join(rule.verbs), why


def filled(text: str) -> str:
    """Put the tables into a page, between ``<!-- table NAME -->`` and ``<!-- end -->``."""
    known = tables()
    pattern = re.compile(r"<!-- table (?P<name>\w+) -->\n.*?<!-- end -->", re.DOTALL)
    return pattern.sub(lambda m: f"<!-- table {m['name']} -->\n{known[m['name']]}\n<!-- end -->", text)


def main() -> None:
    """Write the tables anew."""
    FILE.write_text(filled(FILE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
