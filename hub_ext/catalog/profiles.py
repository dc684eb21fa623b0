"""Profiles: what is offered, in versions that never change once published.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..errors import BadValueError, NameRuleError
from ..names import is_dns_label
from .base import EnvName, Flag, Key, LabelKey, LabelValue, Model, Name, Text
from .choices import Choice, ChoiceSource
from .jobs import RunRules
from .policy import Access, Price, Security, Session
from .resources import Resources
from .storage import Storage


class State(StrEnum):
    """Where a version is in its life."""

    ACTIVE = "active"
    HIDDEN = "hidden"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


class Alias(StrEnum):
    """Words that stand for a version."""

    LATEST = "latest"
    RECOMMENDED = "recommended"


@dataclass(frozen=True, slots=True)
class ProfileRef:
    """A profile by name, and a version by number or by word."""

    name: str
    """Empty where the name is that of the profile that refers."""
    version: int | Alias = Alias.RECOMMENDED

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


_REF: Final = re.compile(r"(?P<name>[^@]+)(?:@(?P<version>[^@]+))?")


def parse_profile_ref(value: object) -> ProfileRef:
    """Read `name`, `name@3`, `name@latest` or a bare version number.

    Raises
    ------
    NameRuleError
        Anything else.
    """
    if isinstance(value, ProfileRef):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return ProfileRef("", value)
    match = _REF.fullmatch(value) if isinstance(value, str) else None
    if match is None or not is_dns_label(match["name"]):
        raise NameRuleError(f"{value!r} does not name a profile", help="Write name, name@3 or name@latest.")
    word = match["version"] or Alias.RECOMMENDED
    if word in set(Alias):
        return ProfileRef(match["name"], Alias(word))
    if not word.isascii() or not word.isdigit() or int(word[:9]) < 1:
        raise NameRuleError(
            f"{word!r} is not a version", help=f"Write a number, {Alias.LATEST} or {Alias.RECOMMENDED}."
        )
    return ProfileRef(match["name"], int(word))


def _check_name_only(ref: ProfileRef) -> ProfileRef:
    if not ref.name:
        raise BadValueError("a bare version says no profile", help="Write name@3.")
    return ref


_TARGET_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(@([0-9]+|latest|recommended))?$",
}
_REF_SCHEMA: Final[dict[str, Any]] = {"anyOf": [{"type": "integer", "minimum": 1}, _TARGET_SCHEMA]}
Replacement = Annotated[ProfileRef, BeforeValidator(parse_profile_ref), WithJsonSchema(_REF_SCHEMA)]
Target = Annotated[
    ProfileRef,
    BeforeValidator(parse_profile_ref),
    AfterValidator(_check_name_only),
    WithJsonSchema(_TARGET_SCHEMA),
]


class Profile(Model):
    """One version of one workspace."""

    name: Name
    """Stays the same through all versions."""
    version: int = Field(ge=1, le=999_999, strict=True)
    """Counts up; a published version is not changed, a new one is added."""
    state: State = State.ACTIVE
    """`active` is offered; `hidden` can be started by link only; `deprecated` is offered with a notice until
    `until`; `retired` cannot be started."""
    recommended: Flag = False
    """What `name@recommended` means; at most one version of a name. Without one it is the latest."""
    replaced_by: Replacement | None = None
    """Version (or `other-name@version`) that takes over saved choices of this one."""
    message: str = ""
    """Told to users of a deprecated or retired version."""
    until: date | None = None
    """Last day of a deprecated version."""
    display_name: Text
    """What users read."""
    description: str = ""
    """What it is for, in a sentence or two."""
    category: str = ""
    """Heading on the spawn page."""
    images: tuple[Key, ...] = Field(min_length=1)
    """The image, or several to choose from; the first is preselected."""
    resources: Resources
    choices: dict[Key, ChoiceSource] = Field(default_factory=dict)
    """Further choices: written here, or taken from `optionSets` by name."""
    storage: Storage = Storage()
    environment: dict[EnvName, str] = Field(default_factory=dict)
    """Variables of the workspace. No secrets: users and their code can read them."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Further labels of the pod."""
    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Further annotations of the pod."""
    session: Session = Session()
    security: Security = Security()
    access: Access | None = None
    """Who may start it; left out, `defaults.access`, else everyone."""
    jobs: RunRules | None = None
    """How runs of it are made; left out, nothing can be handed off to it."""
    price: Price | None = None

    @property
    def questions(self) -> dict[str, Choice]:
        """What a user may pick; complete in a catalog that `load_catalog` returned."""
        return {key: choice for key, choice in self.choices.items() if isinstance(choice, Choice)}

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.version

    @property
    def label(self) -> str:
        """Name and version as people write them: `gpu-full@3`."""
        return f"{self.name}@{self.version}"
