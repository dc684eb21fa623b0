"""What users send, read into one shape: REST body, saved options, the spawn page's form, a link's query.

Nothing is judged here beyond its type; `selection` does that.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .catalog.compose import CUSTOM
from .errors import SelectionError, SelectionReason
from .names import shown

PROFILE: Final = "profile"
VERSION: Final = "version"
TEAM: Final = "team"
RESERVED: Final = (PROFILE, VERSION, TEAM)

LINK_PREFIX: Final = "opt-"
"""How JupyterHub 6 marks the options in a link (`SpawnHandler._get_user_options`); 5.x hands it on."""

_LONGEST: Final = 1024
"""Characters of one value; an image reference with its digest has at most some 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asked for, before anything is known about whether it exists."""

    profile: str = ""
    """Empty where no workspace is named."""
    version: int | str | None = None
    """A number, or a word such as `latest`."""
    team: str = ""
    picks: Mapping[str, str] = field(default_factory=dict)


def read_options(raw: object) -> Request:
    """Read `user_options`, wherever they came from.

    Raises
    ------
    SelectionError
        `bad-request`: not an object, or a value of the wrong type; names the field.
    """
    if not isinstance(raw, Mapping):
        raise SelectionError(SelectionReason.BAD_REQUEST, "The options must be an object with a profile.")
    options = _unwrapped(raw)
    texts = {key: _text(key, value) for key, value in options.items() if key != VERSION}
    profile, _, word = texts.get(PROFILE, "").partition("@")
    version = _version(options.get(VERSION))
    return Request(
        profile=profile,
        version=_version(word) if version is None else version,
        team=texts.get(TEAM, ""),
        picks={key: text for key, text in texts.items() if key not in RESERVED},
    )


def _unwrapped(raw: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Accept the request body of JupyterHub 6 on JupyterHub 5, which takes all of it for the options."""
    inner = raw.get("user_options")
    if isinstance(inner, Mapping) and raw.keys() <= {"user_options", "display_name"}:
        raw = inner
    return {str(key): value for key, value in raw.items()}


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise SelectionError(
            SelectionReason.BAD_REQUEST, f"{shown(key)} must be a text, not {_kind(value)}.", field=key
        )
    if len(value) > _LONGEST or not value.isprintable():
        raise SelectionError(
            SelectionReason.BAD_REQUEST,
            f"{shown(key)} must be one line of at most {_LONGEST} characters.",
            field=key,
        )
    return value


def _version(value: object) -> int | str | None:
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise SelectionError(
            SelectionReason.BAD_REQUEST, f"{shown(VERSION)} must be a whole number or a word.", field=VERSION
        )
    text = _text(VERSION, value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "empty")


def options_from_form(form: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Read the spawn page's form: of all cards only the fields of the chosen one count.

    The chosen card says `<profile>@<version>`, and its fields are named `<profile>@<version>.<key>`. What
    does not look like the page's own form is passed on for `read_options` to refuse.
    """
    profile = _single(form.get(PROFILE, ""))
    options: dict[str, Any] = {PROFILE: profile} if profile != "" else {}
    prefix = f"{profile}."
    for name, values in form.items():
        key = name.removeprefix(prefix)
        if key == name or ":" in key:
            continue
        value = _single(values)
        if value == f"{CUSTOM}:":
            value += str(_single(form.get(f"{name}:{CUSTOM}", ""))).strip()
        options[key] = value
    return options


def options_from_link(query: Mapping[str, Sequence[Any]], *, prefixed: bool) -> dict[str, Any]:
    """Read the query of a link to the spawn page.

    Parameters
    ----------
    prefixed
        The hub left the `opt-` in place (JupyterHub 5). As on JupyterHub 6, one prefixed option makes all
        others count as none.
    """
    options = {key: _single(values) for key, values in query.items() if not key.startswith("_")}
    if prefixed and any(key.startswith(LINK_PREFIX) for key in options):
        options = {
            key.removeprefix(LINK_PREFIX): value
            for key, value in options.items()
            if key.startswith(LINK_PREFIX) and key != LINK_PREFIX
        }
    return options


def _single(values: Sequence[Any] | str) -> Any:
    if isinstance(values, str) or len(values) != 1:
        return values
    return values[0]
