"""Write the service's page from its code: ``python -m services.idle_culler.reference``.

What is explained in words stands in ``guide.md``; settings, words, metrics and rights are listed from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hub_ext.units import format_duration

from ..base import PrometheusSettings, ServiceSettings
from .handlers import ROUTES
from .metrics import CullerMetrics
from .policy import Breaker, Defaults, Mode, Policy, Rule, Settings, Thresholds, When, WithoutAgent
from .reasons import TEXTS
from .rights import RIGHTS
from .settings import CullerSettings, Notify, Record
from .stopping import Outcome

FOLDER: Final = Path(__file__).parent
FILE: Final = FOLDER / "REFERENCE.md"
_NOTE: Final = "<!-- Written by `python -m services.idle_culler.reference`; do not edit. -->\n\n"
_MODELS: Final[tuple[tuple[str, type[BaseModel]], ...]] = (
    ("", CullerSettings),
    ("prometheus", PrometheusSettings),
    ("notify", Notify),
    ("record", Record),
    ("policy", Policy),
    ("policy.defaults", Defaults),
    ("policy.rules[]", Rule),
    ("policy.rules[].when", When),
    ("policy.thresholds", Thresholds),
    ("policy.breaker", Breaker),
)
_WORDS: Final = {
    "mode": Mode,
    "withoutAgent": WithoutAgent,
}


def reference() -> str:
    """Give the page as Markdown."""
    parts = [_NOTE, (FOLDER / "guide.md").read_text(encoding="utf-8"), "\n## Settings\n\n"]
    parts += [_section(place, model) for place, model in _MODELS]
    parts += [_words(name, words) for name, words in _WORDS.items()]
    parts.append("## Words for why\n\nThe same in the log, in metrics, in answers and on the page.\n\n")
    parts.append(_table(("reason", "text, with `…` for what differs"), _reasons()))
    parts.append("\n## What comes of a stop\n\n")
    parts.append(_table(("outcome", "what"), _members(Outcome)))
    parts.append("\n## API\n\nBelow the service's prefix; `hub_ext/protocol.py` has the messages.\n\n")
    parts.append(_table(("path", "what"), _routes()))
    parts.append("\n## Metrics\n\n")
    parts.append(_table(("metric", "labels", "what"), _metrics()))
    parts.append(
        "\nAudit lines go to the logger `gpu_workspaces.audit`: who or what did what to whose server.\n"
    )
    parts.append("\n## Rights\n\n")
    parts.append(_table(("of the hub", "what for"), ((f"`{s.name}`", s.why) for s in RIGHTS.scopes)))
    parts.append("\n")
    parts.append(_table(("of the cluster", "verbs", "what for"), _rules()))
    return "".join(parts)


def _section(place: str, model: type[BaseModel]) -> str:
    inherited = set(ServiceSettings.model_fields) if model is CullerSettings else set()
    rows = []
    for name, field in model.model_fields.items():
        if name in inherited or (model is Rule and name != "when"):
            continue
        default = _default(field.get_default(call_default_factory=True))
        rows.append((f"`{field.alias or name}`", default, _about(name, field)))
    title = f"### `{place}`\n\n" if place else ""
    more = "A rule has the keys of `policy.defaults`, and:\n\n" if model is Rule else ""
    return f"{title}{more}{_table(('key', 'default', 'what'), rows)}\n"


def _about(name: str, field: FieldInfo) -> str:
    """Say what a key is: by itself, in the model that it overrides a default of, or by its own model."""
    base = Settings.model_fields.get(name)
    text = field.description or (base.description if base else "") or _summary(field.annotation)
    return " ".join(text.split())


def _summary(annotation: Any) -> str:
    models = [one for one in (annotation, *getattr(annotation, "__args__", ())) if isinstance(one, type)]
    found = next((one.__doc__ for one in models if issubclass(one, BaseModel)), None)
    return (found or "").partition("\n")[0]


def _default(value: Any) -> str:
    match value:
        case timedelta():
            text = format_duration(value)
        case Enum():
            text = str(value.value)
        case bool():
            text = str(value).lower()
        case tuple() if value and isinstance(value[0], timedelta):
            text = f"[{', '.join(map(format_duration, value))}]"
        case int() | float() | str():
            text = str(value)
        case _:
            text = ""
    return f"`{text}`" if text else ""


def _words(name: str, words: type[Enum]) -> str:
    return f"### Words of `{name}`\n\n{_table(('word', 'what'), _members(words))}\n"


def _members(words: type[Enum]) -> Iterator[tuple[str, str]]:
    """Give the members of an enumeration with the docstrings below them."""
    source = (FOLDER / f"{words.__module__.rpartition('.')[2]}.py").read_text(encoding="utf-8")
    body = source.partition(f"class {words.__name__}(")[2].partition("\n\n\n")[0]
    for member in words:
        after = body.partition(f"{member.name} = ")[2].partition("\n")[2].strip()
        text = after[3:].partition('"""')[0] if after.startswith('"""') else ""
        yield f"`{member.value}`", " ".join(text.split())


def _reasons() -> Iterator[tuple[str, str]]:
    for reason, text in TEXTS.items():
        yield f"`{reason}`", text.replace("{of}", " (…)")


def _routes() -> Iterator[tuple[str, str]]:
    for path, handler, _ in ROUTES:
        verbs = [verb.upper() for verb in ("get", "post") if verb in vars(handler)]
        yield f"`{' '.join(verbs)} {path or '/'}`", (handler.__doc__ or "").partition("\n")[0]


def _metrics() -> Iterator[tuple[str, str, str]]:
    registry = CollectorRegistry()
    made = vars(CullerMetrics(registry))
    labels = {one._name: one._labelnames for one in made.values()}
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield f"`{name}`", ", ".join(labels[family.name]), family.documentation


def _rules() -> Iterator[tuple[str, str, str]]:
    for rule in RIGHTS.rules:
        yield f"`{', '.join(rule.resources)}` ({rule.where.value})", ", ".join(rule.verbs), rule.why


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines)


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
