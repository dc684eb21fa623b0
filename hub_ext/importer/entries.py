"""The profile list as KubeSpawner reads it, and what is wrong with it.

Source: KubeSpawner 7.1 `_get_initialized_profile_list`, `_load_profile`, `_validate_user_options`;
`allowed_groups` as in the 2i2c hubs, `access`, `groups` and `users` as in nebari.

Pure: no clock, no network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from slugify import slugify

from ..catalog.problems import Loc
from .codes import Code, Findings
from .keys import check_keys, flag, is_mapping, section, text, title

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
    _check_default(found, findings)
    return found


def _check_default(entries: list[Entry], findings: Findings) -> None:
    marked = [entry for entry in entries if entry.default]
    if entries and not marked:
        message = f"the default is the first profile, {entries[0].title!r}"
        findings.add(Code.DEFAULT_IMPLICIT, entries[0].loc, message)
    for entry in marked[1:]:
        message = (
            f"{marked[0].title!r} and {entry.title!r} are both the default; KubeSpawner starts the first"
        )
        findings.add(Code.TWO_DEFAULTS, (*entry.loc, "default"), message, help="Keep one.")


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
    if not is_mapping(raw, loc, "a profile", findings):
        return None
    check_keys(raw, _ENTRY_KEYS, loc, findings)
    name = title(raw, loc, findings)
    slug = raw["slug"] if "slug" in raw else slugify(name)
    if not isinstance(slug, str):
        findings.add(Code.WRONG_SHAPE, (*loc, "slug"), f"a slug is a text, not {slug!r}")
        slug = str(slug)
    questions = section(raw, "profile_options", loc, findings)
    read = {
        key: _question(key, item, (*loc, "profile_options", key), findings) for key, item in questions.items()
    }
    return Entry(
        slug=slug,
        loc=loc,
        title=name,
        description=text(raw, "description", loc, findings),
        default=flag(raw, loc, findings),
        override=section(raw, "kubespawner_override", loc, findings),
        questions={key: question for key, question in read.items() if question is not None},
        access=_access(raw, loc, findings),
    )


def _question(key: str, raw: Any, loc: Loc, findings: Findings) -> Question | None:
    if not is_mapping(raw, loc, "an option", findings):
        return None
    check_keys(raw, _OPTION_KEYS, loc, findings)
    choices: dict[str, Choice] = {}
    default = None
    for name, item in section(raw, "choices", loc, findings).items():
        place = (*loc, "choices", name)
        if not is_mapping(item, place, "a choice", findings):
            continue
        check_keys(item, _CHOICE_KEYS, place, findings)
        if flag(item, place, findings):
            if default is not None:
                message = f"{default!r} and {str(name)!r} are both the default; KubeSpawner takes the first"
                findings.add(Code.TWO_DEFAULTS, (*place, "default"), message, help="Keep one.")
            default = default or str(name)
        choices[str(name)] = Choice(
            key=str(name),
            loc=place,
            title=title(item, place, findings),
            description=text(item, "description", place, findings),
            override=section(item, "kubespawner_override", place, findings),
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
        title=title(raw, loc, findings),
        description=text(raw, "description", loc, findings),
        choices=choices,
        default=default,
        unlisted=unlisted,
    )


def _unlisted(raw: Mapping[str, Any], loc: Loc, findings: Findings) -> Unlisted | None:
    place = (*loc, "unlisted_choice")
    item = section(raw, "unlisted_choice", loc, findings)
    check_keys(item, _UNLISTED_KEYS, place, findings)
    if not item.get("enabled"):
        return None
    if _groups(item, place, findings) is not None:
        message = "typed values cannot be offered to some groups only"
        findings.add(Code.NOT_CARRIED, (*place, "allowed_groups"), message)
        return None
    return Unlisted(
        loc=place,
        title=text(item, "display_name", place, findings),
        help=text(item, "validation_message", place, findings),
        override=section(item, "kubespawner_override", place, findings),
    )


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
