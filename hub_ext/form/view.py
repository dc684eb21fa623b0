"""What the spawn page shows, as plain data: the template only lays it out.

Nothing here is taken from the catalog wholesale, so no setting, environment or secret can reach the browser
by being added to a profile.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class NoticeKind(StrEnum):
    """How a notice above the cards is set off."""

    INFO = "info"
    WARNING = "warning"


class Stock(StrEnum):
    """What the cluster has for a card, as its mark shows it; the words beside it say the same."""

    FREE = "free"
    NONE = "none"
    """It can be chosen, and the start waits."""
    UNKNOWN = "unknown"


class BarKind(StrEnum):
    """How the picture of a card's share is drawn."""

    OWN = "own"
    TURNS = "turns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence above the cards."""

    kind: NoticeKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A picture of how much of a physical card one gets: `filled` of `parts`."""

    kind: BarKind
    parts: int
    filled: int


class Answer(NamedTuple):
    """One answer of a question. A large page has thousands, and tuples are made and read fastest."""

    value: str
    label: str
    selected: bool = False
    requires: str = ""
    """JSON object of the answers to other questions that it goes with; empty for any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedAnswer:
    """An answer that is typed, beside those that are listed."""

    mark: str
    """Value of the listed answer that stands for it."""
    field: str
    label: str
    value: str
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to choose inside a card; a single answer is shown as text and not sent."""

    key: str
    field: str
    """Name of the form field."""
    label: str
    help: str
    answers: tuple[Answer, ...]
    typed: TypedAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One folder or address and what becomes of it."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One workspace as one user sees it."""

    value: str
    """What the form sends: name and version."""
    title: str
    description: str
    specs: tuple[str, ...]
    """Short facts in the order GPU, CPU, memory."""
    price: str
    bar: Bar | None
    checked: bool
    refusal: str
    """Why the user cannot start it; empty if they can."""
    caution: str
    """Why what is filled in would be refused now, while another answer would not."""
    room: tuple[str, ...]
    """What is free and how many more may be started; empty where nothing is known or bounded."""
    stock: Stock
    warning: str
    """What the user should know before they build on it, such as an announced end."""
    sharing: str
    questions: tuple[Question, ...]
    stays: tuple[Place, ...]
    goes: tuple[Place, ...]
    session: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cards under one heading."""

    title: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole form."""

    server: str
    """Name of the server that it is for; empty for the default one."""
    notices: tuple[Notice, ...]
    unknown: str
    """What cannot be said about all cards; empty if nothing."""
    groups: tuple[Group, ...]
