"""The profile list as KubeSpawner reads it, and what is wrong with it.

Source: KubeSpawner 7.1 `_get_initialized_profile_list`, `_load_profile`, `_validate_user_options`;
`allowed_groups` as in the 2i2c hubs, `access`, `groups` and `users` as in nebari.

Pure: no clock, no network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from slugify import slugify

from ..catalog.problems import Loc
from .codes import Code, Findings
from .traits import TRAITS

_ENTRY_KEYS: Final = frozenset(
    [
        "display_name",
        "description",
        "slug",
        "default",
        "kubespawner_override",
        "profile_options",
        "allowed_groups",
        "access",
        "groups",
        "users",
    ]
)
_OPTION_KEYS: Final = frozenset(["display_name", "description", "choices", "unlisted_choice"])
_CHOICE_KEYS: Final = frozenset(
    ["display_name", "description", "default", "kubespawner_override", "allowed_groups"]
)
_UNLISTED_KEYS: Final = frozenset(
    [
        "enabled",
        "display_name",
        "display_name_in_choices",
        "validation_regex",
        "validation_message",
        "kubespawner_override",
        "allowed_groups",
    ]
)
_KNOWN_STRANGERS: Final = {
    "slug": (Code.NO_EFFECT, "KubeSpawner knows a choice by its key; the slug is not used"),
    "dynamic_image_building": (
        Code.NOT_CARRIED,
        "images cannot be built from a repository at the start of a workspace",
    ),
}
"""Keys of other extensions that are often found in such lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer to a question."""

    key: str
    loc: Loc
    title: str
    description: str
    override: Mapping[str, Any]
    groups: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """Permission to type a value that is not listed."""

    loc: Loc
    title: str
    help: str
    override: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One entry of `profile_options`."""

    key: str
    loc: Loc
    title: str
    description: str
    choices: Mapping[str, Choice]
    default: str | None
    unlisted: Unlisted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One profile of the list."""

    slug: str
    loc: Loc
    title: str
    description: str
    default: bool
    override: Mapping[str, Any]
    questions: Mapping[str, Question]
    access: Mapping[str, Any] | None
    """Access in the catalog's words; None where nothing is said."""


def read_entries(raw: Any, loc: Loc, findings: Findings) -> list[Entry]:
    """Read the list. What cannot be read is a finding and left out."""
    if isinstance(raw, Mapping):
        items = [((*loc, key), raw[key]) for key in sorted(raw)]
    elif isinstance(raw, list):
        items = [((*loc, index), item) for index, item in enumerate(raw)]
    else:
        findings.add(Code.WRONG_SHAPE, loc, "a profile list is a list")
        return []
    entries = [_entry(item, place, findings) for place, item in items]
    found = [entry for entry in entries if entry is not None]
    _check_slugs(found, findings)
    if found and not any(entry.default for entry in found):
        title = found[0].title
        findings.add(Code.DEFAULT_IMPLICIT, found[0].loc, f"the default is the first profile, {title!r}")
    return found


def default_entry(entries: list[Entry]) -> Entry | None:
    """Give the profile that starts when nothing is chosen."""
    return next((entry for entry in entries if entry.default), entries[0] if entries else None)


def _check_slugs(entries: list[Entry], findings: Findings) -> None:
    first: dict[str, int] = {}
    for number, entry in enumerate(entries, start=1):
        if not entry.slug:
            message = f"profile {number} has an empty slug: picking it starts the default profile"
            findings.add(Code.EMPTY_SLUG, entry.loc, message, help="Write a slug of letters and digits.")
        elif entry.slug in first:
            other = first[entry.slug]
            message = f"profiles {other} and {number} both have the slug {entry.slug!r}"
            findings.add(Code.DUPLICATE_SLUG, entry.loc, message, help="Write a slug of its own for each.")
        first.setdefault(entry.slug, number)


def _entry(raw: Any, loc: Loc, findings: Findings) -> Entry | None:
    if not _is_mapping(raw, loc, "a profile", findings):
        return None
    _check_keys(raw, _ENTRY_KEYS, loc, findings)
    title = _title(raw, loc, findings)
    slug = raw["slug"] if "slug" in raw else slugify(title)
    if not isinstance(slug, str):
        findings.add(Code.WRONG_SHAPE, (*loc, "slug"), f"a slug is a text, not {slug!r}")
        slug = str(slug)
    questions = _section(raw, "profile_options", loc, findings)
    read = {
        key: _question(key, item, (*loc, "profile_options", key), findings) for key, item in questions.items()
    }
    return Entry(
        slug=slug,
        loc=loc,
        title=title,
        description=_text(raw, "description", loc, findings),
        default=_flag(raw, loc, findings),
        override=_section(raw, "kubespawner_override", loc, findings),
        questions={key: question for key, question in read.items() if question is not None},
        access=_access(raw, loc, findings),
    )


def _question(key: str, raw: Any, loc: Loc, findings: Findings) -> Question | None:
    if not _is_mapping(raw, loc, "an option", findings):
        return None
    _check_keys(raw, _OPTION_KEYS, loc, findings)
    choices: dict[str, Choice] = {}
    default = None
    for name, item in _section(raw, "choices", loc, findings).items():
        place = (*loc, "choices", name)
        if not _is_mapping(item, place, "a choice", findings):
            continue
        _check_keys(item, _CHOICE_KEYS, place, findings)
        if _flag(item, place, findings) and default is None:
            default = str(name)
        choices[str(name)] = Choice(
            key=str(name),
            loc=place,
            title=_title(item, place, findings),
            description=_text(item, "description", place, findings),
            override=_section(item, "kubespawner_override", place, findings),
            groups=_groups(item, place, findings),
        )
    unlisted = _unlisted(raw, loc, findings)
    if not choices:
        message = "an option without choices has no answer that a start without a form could take"
        findings.add(Code.NOT_CARRIED, loc, message, help="Write at least one choice.")
        return None
    return Question(
        key=str(key),
        loc=loc,
        title=_title(raw, loc, findings),
        description=_text(raw, "description", loc, findings),
        choices=choices,
        default=default,
        unlisted=unlisted,
    )


def _unlisted(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> Unlisted | None:
    place = (*loc, "unlisted_choice")
    item = _section(raw, "unlisted_choice", loc, findings)
    _check_keys(item, _UNLISTED_KEYS, place, findings)
    if not item.get("enabled"):
        return None
    if _groups(item, place, findings) is not None:
        message = "typed values cannot be offered to some groups only"
        findings.add(Code.NOT_CARRIED, (*place, "allowed_groups"), message)
        return None
    return Unlisted(
        loc=place,
        title=_text(item, "display_name", place, findings),
        help=_text(item, "validation_message", place, findings),
        override=_section(item, "kubespawner_override", place, findings),
    )


def _check_keys(raw: Mapping[Any, Any], known: frozenset[str], loc: Loc, findings: Findings) -> None:
    for key in raw:
        if key in known:
            continue
        close = get_close_matches(str(key), known, n=1, cutoff=0.75)
        if key in _KNOWN_STRANGERS:
            code, message = _KNOWN_STRANGERS[key]
            if raw[key] != loc[-1]:
                findings.add(code, (*loc, key), message)
        elif close:
            findings.add(Code.UNKNOWN_KEY, (*loc, key), f"nothing reads {key!r}", help=f"Write {close[0]}.")
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


def _is_mapping(raw: Any, loc: Loc, what: str, findings: Findings) -> bool:
    if isinstance(raw, Mapping):
        return True
    findings.add(Code.WRONG_SHAPE, loc, f"{what} is a mapping, not {raw!r}")
    return False


def _section(raw: Mapping[str, Any], key: str, loc: Loc, findings: Findings) -> Mapping[str, Any]:
    value = raw.get(key)
    if value is None:
        return {}
    return value if _is_mapping(value, (*loc, key), key, findings) else {}


def _title(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> str:
    title = raw.get("display_name")
    if isinstance(title, str) and title.strip():
        return title.strip()
    code = Code.NOT_STATED if isinstance(loc[-1], str) else Code.WRONG_SHAPE
    findings.add(code, loc, "display_name is missing")
    return str(title) if title else str(loc[-1])


def _text(raw: Mapping[str, Any], key: str, loc: Loc, findings: Findings) -> str:
    value = raw.get(key)
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    findings.add(Code.WRONG_SHAPE, (*loc, key), f"{key} is a text, not {value!r}")
    return str(value)


def _flag(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> bool:
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


def _groups(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> tuple[str, ...] | None:
    if "allowed_groups" not in raw:
        return None
    return _names(raw["allowed_groups"], (*loc, "allowed_groups"), findings)


def _names(value: Any, loc: Loc, findings: Findings) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    findings.add(Code.WRONG_SHAPE, loc, f"a list of names, not {value!r}")
    return ()


def _access(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> dict[str, Any] | None:
    allowed = _groups(raw, loc, findings)
    if allowed is not None:
        return {"groups": list(allowed)}
    kind = raw.get("access")
    if kind is None or kind == "all":
        return {"everyone": True}
    if kind == "yaml":
        named = {key: list(_names(raw.get(key) or [], (*loc, key), findings)) for key in ("groups", "users")}
        return {key: names for key, names in named.items() if names}
    findings.add(
        Code.NOT_CARRIED,
        (*loc, "access"),
        f"access: {kind} is decided outside of the values; the draft offers the profile to nobody",
        help="Write the groups under access.",
    )
    return {"groups": []}
