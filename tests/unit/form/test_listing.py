"""The page's facts as JSON: the same as the page shows, what to send back, and nothing that is not shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
import yaml

from hub_ext.catalog.compose import Workspace
from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.cluster.capacity import Availability, Supply
from hub_ext.cluster.offer import Offer
from hub_ext.cluster.waits import Usual
from hub_ext.cluster.warmth import Warmth
from hub_ext.form.answer import Offered, WorkspaceList
from hub_ext.form.entries import Visit
from hub_ext.form.listing import list_workspaces
from hub_ext.form.page import build_page
from hub_ext.form.reference import reference
from hub_ext.form.room import Look
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.policy import Room
from hub_ext.quota.verdicts import Fault, Reason
from hub_ext.quota.verdicts import Refusal as QuotaRefusal
from hub_ext.selection import Selection, select
from hub_ext.selection_access import Person
from tests.fakes.workspaces import ADA, BOB, EVE, TEXT, TODAY, workspaces


def offer(*, refused: str = "") -> Offer:
    refusal = QuotaRefusal(reason=Reason.TEAM_LIMIT, text=refused, fault=Fault.USER) if refused else None
    return Offer(
        asked=Resources({}),
        refusal=refusal,
        room=Room(user=1, team=0 if refused else 2, cluster=None),
        availability=Availability(supply=Supply.FREE, free=3),
        warmth=Warmth(warm=2),
        usual=Usual(warm=timedelta(seconds=20)),
    )


def visit(person: Person = ADA, **more: Any) -> Visit:
    return Visit(**{"person": person, "server_name": "", "today": TODAY, "last": {}} | more)


def listed(person: Person = ADA, *, catalog: Catalog | None = None, **more: Any) -> dict[str, Offered]:
    found = list_workspaces(catalog or workspaces(), visit(person, **more))
    return {f"{one.profile}@{one.version}": one for one in found.workspaces}


def look_at(**refused: str) -> Look:
    def look(workspace: Workspace, _team: str) -> Offer:
        return offer(refused=refused.get(workspace.profile.name, ""))

    return look


@pytest.mark.parametrize("person", [ADA, BOB, EVE], ids=lambda person: person.name)
def test_it_lists_what_the_page_shows_in_the_same_words(person: Person) -> None:
    seen = visit(person, look=look_at(full="Your team has 2 of 2 GPUs in use."))
    page = build_page(workspaces(), seen)
    found = list_workspaces(workspaces(), seen)
    cards = [(group.title, card) for group in page.groups for card in group.cards]
    assert len(cards) == len(found.workspaces) > 0
    for (title, card), one in zip(cards, found.workspaces, strict=True):
        assert (one.group, one.title, one.selected) == (title, card.title, card.checked)
        assert (one.refused.text if one.refused else "") == card.refusal + card.caution
        assert one.may_start is not bool(card.refusal)
        assert one.now is not None
        assert one.now.text == " · ".join(card.room)
    assert found.unknown == page.unknown


@pytest.mark.parametrize("person", [ADA, BOB, EVE], ids=lambda person: person.name)
def test_what_it_says_to_send_starts_what_it_describes(person: Person) -> None:
    for one in listed(person).values():
        verdict = select(workspaces(), person, one.options, today=TODAY)
        assert isinstance(verdict, Selection)
        assert verdict.options == one.options
        assert [choice.name for choice in one.choices if choice.name not in one.options] == []


def test_every_answer_it_offers_is_taken_alone_or_says_what_it_needs() -> None:
    for one in listed(EVE).values():
        for choice in one.choices:
            for option in choice.options:
                wanted = {name: values[0] for name, values in option.requires.items()}
                options = one.options | wanted | {choice.name: option.value}
                assert isinstance(select(workspaces(), EVE, options, today=TODAY), Selection)


def test_what_is_free_how_many_more_and_how_warm() -> None:
    now = listed(look=look_at())["full@3"].now
    assert now is not None
    assert (now.supply, now.free, now.room.user, now.room.team, now.room.cluster) == ("free", 3, 1, 2, None)
    assert (now.start.warm, now.start.warm_nodes, now.start.usual_warm_seconds) == (True, 2, 20)
    assert now.start.usual_cold_seconds is None


def test_without_a_view_of_the_cluster_it_says_that_it_does_not_know() -> None:
    found = list_workspaces(workspaces(), visit())
    assert found.unknown
    assert all(one.now is None and one.may_start for one in found.workspaces)


def test_numbers_are_numbers() -> None:
    one = listed()["full@3"]
    assert (one.cpu.request, one.cpu.limit, one.memory.limit) == (8, 8, 64 << 30)
    assert one.gpu is not None
    assert (one.gpu.count, one.gpu.product, one.gpu.own_memory) == (1, "NVIDIA-H200", True)
    assert (one.session.idle_seconds, one.session.warn_before_seconds) == (5400, (1800, 120))
    assert json.loads(one.model_dump_json())["price"] == {"perHour": "4.2", "currency": "EUR"}


def catalog_with(change: Mapping[str, Any]) -> Catalog:
    data = yaml.safe_load(TEXT)
    data["profiles"] = [profile | change for profile in data["profiles"]]
    return load_catalog(data)


def test_what_is_for_others_says_no_more_than_its_card() -> None:
    catalog = catalog_with({"access": {"teams": ["nlp"], "showToOthers": True}})
    for one in listed(BOB, catalog=catalog, look=look_at()).values():
        assert (one.may_start, one.options, one.choices, one.kept, one.gone, one.now) == (
            False,
            {},
            (),
            (),
            (),
            None,
        )
        assert one.refused is not None
        assert one.refused.reason == "not-allowed"
        assert "Language" in one.refused.text


def test_no_setting_of_a_pod_is_in_it() -> None:
    catalog = catalog_with(
        {"environment": {"SECRET": "hunter2"}, "annotations": {"example.com/secret": "hunter2"}}
    )
    text = list_workspaces(catalog, visit(EVE, look=look_at())).model_dump_json()
    for hidden in ("hunter2", "sha256:", "nodeSelector", "CC-1", "registry.example.com/torch"):
        assert hidden not in text


def test_it_is_read_back_as_it_was_written() -> None:
    found = list_workspaces(workspaces(), visit(EVE, look=look_at(full="No.")))
    assert WorkspaceList.model_validate_json(found.model_dump_json()) == found


def test_the_reference_page_is_written_from_the_models(golden: Callable[[str, str], None]) -> None:
    golden("../../hub_ext/form/REFERENCE.md", reference())
