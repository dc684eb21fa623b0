"""What one user sees, and what is filled in for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from hub_ext.catalog.compose import Workspace
from hub_ext.catalog.model import Price
from hub_ext.cluster.capacity import Availability, Supply
from hub_ext.cluster.offer import NODES_UNSEEN, NOT_LOADED, Offer
from hub_ext.form import facts
from hub_ext.form.entries import Visit
from hub_ext.form.page import build_page
from hub_ext.form.room import Look
from hub_ext.form.view import BarKind, Card, NoticeKind, Page, Stock
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.policy import Room
from hub_ext.quota.verdicts import Fault, Reason
from hub_ext.quota.verdicts import Refusal as QuotaRefusal
from hub_ext.selection import Refusal, select
from hub_ext.selection_access import Person
from tests.fakes.workspaces import ADA, BOB, EVE, TODAY, workspaces


def page(
    person: Person = ADA,
    *,
    last: Mapping[str, Any] | None = None,
    link: Mapping[str, Any] | None = None,
    refused: Mapping[str, Any] | None = None,
    hub_home: bool = False,
) -> Page:
    visit = Visit(
        person=person,
        server_name="",
        today=TODAY,
        last=last or {},
        link=link,
        refused=refused,
        hub_home=hub_home,
    )
    return build_page(workspaces(), visit)


def cards(shown: Page) -> dict[str, Card]:
    return {card.value: card for group in shown.groups for card in group.cards}


def checked(shown: Page) -> list[str]:
    return [value for value, card in cards(shown).items() if card.checked]


def selected(card: Card) -> dict[str, str]:
    return {q.key: a.value for q in card.questions for a in q.answers if a.selected}


def test_cards_stand_in_groups_in_the_order_of_the_catalog() -> None:
    groups = [(group.title, [card.value for card in group.cards]) for group in page().groups]
    assert groups == [
        ("Without GPU", ["cpu@1"]),
        ("Whole GPU", ["full@3"]),
        ("GPU slice", ["slice@1"]),
        ("Shared GPU", ["turns@1"]),
    ]


def test_a_card_tells_what_it_is() -> None:
    card = cards(page())["full@3"]
    assert card.specs == ("One full card", "H200, 141 GB", "8 CPU", "64 GiB memory")
    assert card.price == "4.20 EUR per hour"
    assert "yours alone" in card.sharing
    assert [place.path for place in card.stays] == ["/home/jovyan"]
    assert [place.path for place in card.goes] == ["/scratch", ""]
    assert card.session == (
        "after 1 h 30 min without activity",
        "after 12 h in any case",
        "you are warned 30 min and 2 min before",
    )


@pytest.mark.parametrize(
    ("per_hour", "text"),
    [("0", "no charge"), ("0.0001", "0.0001 EUR per hour"), ("1E+3", "1000.00 EUR per hour")],
)
def test_a_price_is_told_however_small(per_hour: str, text: str) -> None:
    assert facts.price(Price(per_hour=Decimal(per_hour), currency="EUR")) == text
    assert facts.price(None) == ""


@pytest.mark.parametrize(
    ("value", "kind", "parts", "filled"),
    [("full@3", BarKind.OWN, 1, 1), ("slice@1", BarKind.OWN, 7, 1), ("turns@1", BarKind.TURNS, 1, 1)],
)
def test_the_share_of_a_card_is_drawn(value: str, kind: BarKind, parts: int, filled: int) -> None:
    bar = cards(page())[value].bar
    assert bar is not None
    assert (bar.kind, bar.parts, bar.filled) == (kind, parts, filled)


def test_a_workspace_without_gpu_has_no_share_to_draw() -> None:
    card = cards(page())["cpu@1"]
    assert (card.bar, card.sharing) == (None, "")
    assert card.specs == ("1\N{EN DASH}2 CPU", "4 GiB memory")


def test_an_answer_is_told_with_what_it_changes() -> None:
    (size,) = [q for q in cards(page(BOB))["cpu@1"].questions if q.key == "size"]
    assert [answer.label for answer in size.answers] == [
        "Usual",
        "Large (8 CPU, 32 GiB memory, 0.40 EUR per hour)",
    ]


def test_what_is_not_the_user_s_is_not_sent() -> None:
    shown = page(BOB)
    assert set(cards(shown)) == {"cpu@1", "turns@1"}
    assert "Huge" not in repr(shown)


def test_what_others_may_see_is_locked_and_says_for_whom_it_is() -> None:
    full = workspaces().by_key["full", 3]
    assert full.access is not None
    seen = full.model_copy(update={"access": full.access.model_copy(update={"show_to_others": True})})
    catalog = workspaces().model_copy(
        update={"profiles": tuple(seen if p.key == seen.key else p for p in workspaces().profiles)}
    )
    shown = build_page(catalog, Visit(person=BOB, server_name="", today=TODAY, last={}))
    assert list(cards(shown)) == ["cpu@1", "full@3", "turns@1"]
    text = "One full card is for members of Language. Ask the administrator to be added."
    assert [card.refusal for card in cards(shown).values()] == ["", text, ""]
    verdict = select(catalog, BOB, {"profile": "full"}, today=TODAY)
    assert isinstance(verdict, Refusal)
    assert (verdict.text, verdict.status) == (text, 403)


def test_a_user_without_any_offer_is_told_whom_to_ask() -> None:
    only = workspaces().model_copy(update={"profiles": (workspaces().by_key["full", 3],)})
    shown = build_page(only, Visit(person=BOB, server_name="", today=TODAY, last={}))
    assert shown.groups == ()
    assert [notice.kind for notice in shown.notices] == [NoticeKind.WARNING]


# --- what is filled in --------------------------------------------------------------------------------------


def test_the_default_is_preselected_without_a_word() -> None:
    shown = page()
    assert checked(shown) == ["cpu@1"]
    assert shown.notices == ()


def test_the_last_choice_is_preselected_with_its_answers() -> None:
    shown = page(last={"profile": "full", "version": 3, "image": "old-torch", "cards": "one"})
    assert checked(shown) == ["full@3"]
    assert selected(cards(shown)["full@3"]) == {"image": "old-torch", "cards": "one"}


def test_the_last_choice_of_an_old_version_moves_to_the_new_one() -> None:
    shown = page(last={"profile": "full", "version": 2, "image": "old-torch"})
    assert checked(shown) == ["full@3"]
    assert "replaced by version 3" in shown.notices[0].text


@pytest.mark.parametrize(
    "last",
    [
        {"profile": "removed", "image": "x"},
        {"profile": "gone", "version": 1},
        {"profile": 7},
        {"profile": "full", "cards": "nine"},
    ],
)
def test_a_last_choice_that_is_gone_leaves_the_default_and_a_notice(last: dict[str, Any]) -> None:
    shown = page(last=last)
    assert checked(shown) == ["cpu@1"]
    (notice,) = shown.notices
    assert notice.kind is NoticeKind.WARNING
    assert notice.text.startswith("Your last choice cannot be started again.")


def test_a_last_choice_that_was_withdrawn_says_so() -> None:
    shown = page(Person(name="ada"), last={"profile": "full", "version": 3})
    assert checked(shown) == ["cpu@1"]
    assert "withdrawn" in shown.notices[0].text


def test_a_link_wins_over_the_last_choice() -> None:
    shown = page(last={"profile": "cpu"}, link={"profile": "full", "cards": "two"})
    assert checked(shown) == ["full@3"]
    assert selected(cards(shown)["full@3"])["cards"] == "two"


def test_a_link_shows_a_hidden_workspace() -> None:
    assert "lab@1" not in cards(page())
    assert checked(page(link={"profile": "lab"})) == ["lab@1"]


@pytest.mark.parametrize("link", [{"profile": "nope"}, {"image": "torch"}, {"profile": "full"}])
def test_a_link_that_leads_nowhere_says_so_and_starts_no_other_choice(link: dict[str, str]) -> None:
    shown = page(BOB, last={"profile": "turns"}, link=link)
    assert shown.notices[0].text.startswith("This link cannot be followed.")
    assert checked(shown) == ["turns@1"]


def test_a_refused_form_keeps_what_was_chosen() -> None:
    shown = page(refused={"profile": "full@3", "image": "old-torch", "cards": "two"}, last={"profile": "cpu"})
    assert checked(shown) == ["full@3"]
    assert shown.notices == ()


def test_a_refused_answer_does_not_take_the_others_with_it() -> None:
    shown = page(refused={"profile": "full@3", "image": "old-torch", "cards": "nine"})
    assert selected(cards(shown)["full@3"]) == {"image": "old-torch", "cards": "one"}


def test_a_typed_image_is_kept() -> None:
    image = f"registry.example.com/nlp/own@sha256:{'d' * 64}"
    card = cards(page(last={"profile": "turns", "image": f"custom:{image}"}))["turns@1"]
    (question,) = card.questions
    assert question.typed is not None
    assert question.typed.value == image
    assert selected(card) == {"image": "custom:"}


def test_who_is_in_several_teams_is_asked() -> None:
    (question,) = [q for q in cards(page(EVE))["slice@1"].questions if q.key == "team"]
    assert [answer.label for answer in question.answers] == ["Language", "vision"]
    assert not [q for q in cards(page(ADA))["slice@1"].questions if q.key == "team"]


def test_without_a_home_the_page_says_that_nothing_is_kept() -> None:
    bare = workspaces().by_key["cpu", 1]
    bare = bare.model_copy(update={"storage": bare.storage.model_copy(update={"home": None})})
    catalog = workspaces().model_copy(update={"profiles": (bare,)})
    for hub_home, kept in ((False, 0), (True, 1)):
        visit = Visit(person=BOB, server_name="", today=TODAY, last={}, hub_home=hub_home)
        (card,) = cards(build_page(catalog, visit)).values()
        assert len(card.stays) == kept


FREE = Availability(supply=Supply.FREE, free=3)
NO_MORE = QuotaRefusal(reason=Reason.USER_LIMIT, text="You have 1 of 1 GPU in use.", fault=Fault.USER)


def offers(availability: Availability, refused: Callable[[Workspace, str], bool]) -> Look:
    """Make what says what may be started: one more for the user and two for the team, or none."""

    def look(workspace: Workspace, team: str) -> Offer:
        no = refused(workspace, team)
        room = Room(user=0 if no else 1, team=2, cluster=None)
        return Offer(asked=Resources(), refusal=NO_MORE if no else None, room=room, availability=availability)

    return look


def shown_with(look: Look | None, last: Mapping[str, Any] | None = None, person: Person = ADA) -> Page:
    return build_page(
        workspaces(), Visit(person=person, server_name="", today=TODAY, last=last or {}, look=look)
    )


def test_a_card_says_what_is_free_and_how_many_more() -> None:
    shown = shown_with(offers(FREE, lambda *_: False))
    card = cards(shown)["full@3"]
    assert card.room == ("3 free now", "1 more for you", "2 more for your team")
    assert (card.stock, card.refusal, shown.unknown) == (Stock.FREE, "", "")


@pytest.mark.parametrize("supply", [Supply.FULL, Supply.NO_NODE, Supply.NOT_OFFERED])
def test_where_nothing_is_free_one_may_still_wait(supply: Supply) -> None:
    card = cards(shown_with(offers(Availability(supply=supply), lambda *_: False)))["full@3"]
    assert (card.stock, card.refusal) == (Stock.NONE, "")
    assert card.room[0]


def test_a_card_that_would_be_refused_says_why_and_is_not_preselected() -> None:
    look = offers(FREE, lambda workspace, _: workspace.profile.name == "full")
    shown = shown_with(look, last={"profile": "full"})
    card = cards(shown)["full@3"]
    assert card.refusal == NO_MORE.text
    assert "none left for you" in card.room
    assert checked(shown) == []


def test_where_nothing_can_be_started_the_page_says_so_once() -> None:
    shown = shown_with(offers(FREE, lambda *_: True))
    assert [notice.text for notice in shown.notices] == [
        "None of your workspaces can be started at the moment. Each of them says why."
    ]
    assert shown_with(offers(FREE, lambda workspace, _: workspace.profile.name == "full")).notices == ()


def test_a_home_that_is_elsewhere_is_told_beside_an_announced_end_and_locks_nothing() -> None:
    def look(workspace: Workspace, team: str) -> Offer:
        told = "Your home is in zone-c." if workspace.profile.name == "full" else ""
        return replace(offers(FREE, lambda *_: False)(workspace, team), warning=told)

    shown = cards(shown_with(look, last={"profile": "full"}))
    assert (shown["full@3"].warning, shown["cpu@1"].warning) == ("Your home is in zone-c.", "")
    assert (shown["full@3"].checked, shown["full@3"].refusal) == (True, "")
    assert (shown["full@3"].stock, shown["cpu@1"].stock) == (Stock.NONE, Stock.FREE)


def test_a_card_with_another_answer_that_fits_stays_open() -> None:
    look = offers(FREE, lambda workspace, _: workspace.picks.get("cards") == "two")
    shown = shown_with(look, last={"profile": "full", "cards": "two"})
    card = cards(shown)["full@3"]
    assert (card.refusal, card.caution) == ("", NO_MORE.text)
    assert checked(shown) == ["full@3"]


def test_a_card_that_another_team_has_room_for_stays_open() -> None:
    look = offers(FREE, lambda _, team: team == "nlp")
    card = cards(shown_with(look, person=EVE))["cpu@1"]
    assert (card.refusal, card.caution) == ("", NO_MORE.text)


def test_what_is_not_known_is_said_once_and_closes_nothing() -> None:
    nothing = shown_with(None)
    assert nothing.unknown == NOT_LOADED
    unseen = shown_with(offers(Availability(supply=Supply.UNKNOWN), lambda *_: False))
    assert unseen.unknown == NODES_UNSEEN
    for page_ in (nothing, unseen):
        assert {card.stock for card in cards(page_).values()} == {Stock.UNKNOWN}
        assert not any(card.refusal for card in cards(page_).values())
