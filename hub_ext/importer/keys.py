"""Reading the keys of a profile list, and saying what is wrong with one.

Pure: no clock, no network.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.problems import Loc
from ..spelling import meant
from .codes import Code, Findings
from .traits import TRAITS

_KNOWN_STRANGERS: Final = {
    "slug": (Code.NO_EFFECT, "KubeSpawner knows a choice by its key; the slug is not used"),
    "dynamic_image_building": (
        Code.NOT_CARRIED,
        "images cannot be built from a repository at the start of a workspace",
    ),
}
"""Keys of other extensions that are often found in such lists."""


def check_keys(raw: Mapping[Any, Any], known: frozenset[str], loc: Loc, findings: Findings) -> None:
    """Say which keys nothing reads."""
    for key in raw:
        if key in known:
            continue
        close = meant(str(key), sorted(known), alike=0.75)
        if key in _KNOWN_STRANGERS:
            code, message = _KNOWN_STRANGERS[key]
            if raw[key] != loc[-1]:
                findings.add(code, (*loc, key), message)
        elif close:
            findings.add(Code.UNKNOWN_KEY, (*loc, key), f"nothing reads {key!r}", help=f"Write {close}.")
        elif key in TRAITS:
            findings.add(
                Code.MISPLACED_KEY,
                (*loc, key),
                f"{key} has no effect here",
                help="Put it inside kubespawner_override if it was meant for the server.",
            )
        else:
            findings.add(
                Code.NOT_CARRIED, (*loc, key), f"KubeSpawner does not know {key!r}, nor does the catalog"
            )


def is_mapping(raw: Any, loc: Loc, what: str, findings: Findings) -> bool:
    """Say whether `raw` is a mapping; if not, that is a finding."""
    if isinstance(raw, Mapping):
        return True
    findings.add(Code.WRONG_SHAPE, loc, f"{what} is a mapping, not {raw!r}")
    return False


def section(raw: Mapping[str, Any], key: str, loc: Loc, findings: Findings) -> Mapping[str, Any]:
    """Give the mapping under a key; empty if there is none or something else."""
    value = raw.get(key)
    if value is None:
        return {}
    return value if is_mapping(value, (*loc, key), key, findings) else {}


def title(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> str:
    """Give the display name, or the key where there is none."""
    title = raw.get("display_name")
    if isinstance(title, str) and title.strip():
        return title.strip()
    code = Code.NOT_STATED if isinstance(loc[-1], str) else Code.WRONG_SHAPE
    findings.add(code, loc, "display_name is missing")
    return str(title) if title else str(loc[-1])


def text(raw: Mapping[str, Any], key: str, loc: Loc, findings: Findings) -> str:
    """Give a text as one line; empty if there is none."""
    value = raw.get(key)
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    findings.add(Code.WRONG_SHAPE, (*loc, key), f"{key} is a text, not {value!r}")
    return str(value)


def flag(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> bool:
    """Give `default` by its meaning."""
    value = raw.get("default", False)
    if isinstance(value, bool) or value is None:
        return bool(value)
    meant = str(value).strip().lower() in {"true", "yes", "on", "1"}
    findings.add(
        Code.DEFAULT_NOT_BOOLEAN,
        (*loc, "default"),
        f"default is {value!r}, which KubeSpawner takes for true",
        help=f"Write {str(meant).lower()} without quotes; the draft takes it by its meaning.",
    )
    return meant
