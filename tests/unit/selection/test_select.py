"""One choice, from whatever way it came, is judged the same."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog, State
from hub_ext.errors import SelectionReason
from hub_ext.selection import Refusal, Selection, offers, select
from hub_ext.selection_access import Person, offered_to
from tests.fakes.workspaces import ADA, BOB, EVE, TEXT, TODAY, open_catalog, workspaces

CUSTOM = f"registry.example.com/nlp/own@sha256:{'d' * 64}"


def started(
    raw: object, person: Person = ADA, *, last: Mapping[str, Any] | None = None, today: date = TODAY
) -> Selection:
    verdict = select(workspaces(), person, raw, today=today, last=last)
    assert isinstance(verdict, Selection), verdict
    return verdict


def refused(
    raw: object,
    person: Person = ADA,
    *,
    last: Mapping[str, Any] | None = None,
    catalog: Catalog | None = None,
    today: date = TODAY,
) -> Refusal:
    verdict = select(catalog or workspaces(), person, raw, today=today, last=last)
    assert isinstance(verdict, Refusal), verdict
    return verdict


@pytest.mark.parametrize(
    ("raw", "label"),
    [
        ({"profile": "cpu"}, "cpu@1"),
        ({"profile": "full"}, "full@3"),
        ({"profile": "full", "version": 3}, "full@3"),
        ({"profile": "full", "version": "3"}, "full@3"),
        ({"profile": "full", "version": "latest"}, "full@3"),
        ({"profile": "full@recommended"}, "full@3"),
        ({"profile": "full@3"}, "full@3"),
        ({"profile": "llm"}, "full@3"),
        ({"profile": "lab"}, "lab@1"),
        ({"profile": "full", "version": 1}, "full@3"),
    ],
)
def test_names_and_versions_lead_to_one_profile(raw: dict[str, Any], label: str) -> None:
    assert started(raw).workspace.profile.label == label


def test_answers_left_out_take_what_is_preselected() -> None:
    assert started({"profile": "full"}).options == {
        "profile": "full",
        "version": 3,
        "image": "torch",
        "cards": "one",
    }


@pytest.mark.parametrize(
    "raw", [{"profile": "cpu"}, {"profile": "full", "cards": "two"}, {"profile": "slice"}]
)
@pytest.mark.parametrize("person", [ADA, EVE])
def test_what_was_accepted_is_accepted_again_unchanged(raw: dict[str, Any], person: Person) -> None:
    options = started(raw, person).options
    assert started(options, person, last=options).options == options


def test_the_body_of_a_newer_hub_is_read_on_an_older_one() -> None:
    assert started({"user_options": {"profile": "cpu"}, "display_name": "x"}).workspace.profile.name == "cpu"


# --- no profile named ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [{}, {"profile": ""}, {"unknown": "1"}, {"display_name": "x"}])
def test_without_a_name_the_default_of_the_catalog_starts(raw: dict[str, Any]) -> None:
    selection = started(raw)
    assert selection.workspace.profile.name == "cpu"
    assert selection.ignored == tuple(key for key in raw if key != "profile")


@pytest.mark.parametrize("key", ["profle", "Profile", "profiles"])
def test_a_misspelt_profile_is_not_the_default(key: str) -> None:
    refusal = refused({key: "full"})
    assert "that stands in “profile”" in refusal.text
    assert refusal.status == 400


@pytest.mark.parametrize(
    "raw",
    [
        {"image": "torch"},
        {"image--unlisted-choice": CUSTOM},
        {"size": "large"},
        {"profile-option-full--cards": "two"},
    ],
)
def test_an_answer_without_its_workspace_does_not_start_the_default(raw: dict[str, Any]) -> None:
    assert refused(raw).status == 400


def test_without_a_default_the_request_must_name_one() -> None:
    catalog = workspaces().model_copy(
        update={"defaults": workspaces().defaults.model_copy(update={"profile": None})}
    )
    refusal = refused({}, catalog=catalog)
    assert (refusal.reason, refusal.status) == (SelectionReason.BAD_REQUEST, 400)
    assert "cpu, full, slice, turns" in refusal.text


def test_with_one_profile_there_is_nothing_to_name() -> None:
    only = workspaces().model_copy(
        update={
            "profiles": (workspaces().by_key["lab", 1].model_copy(update={"state": State.ACTIVE}),),
            "defaults": workspaces().defaults.model_copy(update={"profile": None}),
        }
    )
    verdict = select(only, BOB, {}, today=TODAY)
    assert isinstance(verdict, Selection)
    assert verdict.workspace.profile.name == "lab"


def test_nothing_is_started_where_nothing_is_offered() -> None:
    closed = workspaces().model_copy(update={"profiles": (workspaces().by_key["full", 3],)})
    refusal = refused({}, BOB, catalog=closed)
    assert (refusal.reason, refusal.status) == (SelectionReason.NOTHING_OFFERED, 403)


# --- malformed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        {"profile": ["cpu"]},
        {"profile": 1},
        {"profile": None},
        {"profile": True},
        {"profile": {"name": "cpu"}},
        {"profile": "cpu", "size": ["large"]},
        {"profile": "cpu", "size": 5},
        {"profile": "cpu", "version": [1]},
        {"profile": "cpu", "version": True},
        {"profile": "cpu", "size": "large\nsecond line"},
        {"profile": "x" * 5000},
        ["profile"],
        "cpu",
        None,
        7,
    ],
    ids=str,
)
def test_wrong_types_are_the_request_s_fault(raw: object) -> None:
    refusal = refused(raw, BOB)
    assert (refusal.reason, refusal.status) == (SelectionReason.BAD_REQUEST, 400)
    assert len(refusal.text) < 300


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"profile": "nope"}, SelectionReason.UNKNOWN_PROFILE),
        ({"profile": "__proto__"}, SelectionReason.UNKNOWN_PROFILE),
        ({"profile": "full", "image": "nope"}, SelectionReason.UNKNOWN_OPTION),
        ({"profile": "full", "image": CUSTOM}, SelectionReason.UNKNOWN_OPTION),
        ({"profile": "full", "image": f"custom:{CUSTOM}"}, SelectionReason.UNKNOWN_OPTION),
        ({"profile": "full", "image--unlisted-choice": CUSTOM}, SelectionReason.UNKNOWN_CHOICE),
        ({"profile": "full", "__proto__": "x"}, SelectionReason.UNKNOWN_CHOICE),
        ({"profile": "cpu", "image": "torch"}, SelectionReason.UNKNOWN_CHOICE),
        ({"profile": "cpu", "sise": "large"}, SelectionReason.UNKNOWN_CHOICE),
        ({"profile": "full", "version": 9}, SelectionReason.UNKNOWN_VERSION),
        ({"profile": "full", "version": "newest"}, SelectionReason.UNKNOWN_VERSION),
        ({"profile": "turns", "image": "custom:evil.example.com/nlp/x:1"}, SelectionReason.BAD_IMAGE),
        ({"profile": "turns", "image": f"custom:{CUSTOM}.evil"}, SelectionReason.BAD_IMAGE),
        ({"profile": "turns", "image": "custom:"}, SelectionReason.BAD_IMAGE),
    ],
    ids=str,
)
def test_what_does_not_exist_is_refused_by_name(raw: dict[str, Any], reason: SelectionReason) -> None:
    refusal = refused(raw, catalog=open_catalog())
    assert (refusal.reason, refusal.status) == (reason, 400)


def test_a_refusal_names_what_is_offered_instead() -> None:
    assert refused({"profile": "nope"}).text == (
        "No workspace “nope” is offered to you. Offered: cpu, full, slice, turns."
    )
    assert "usual, large" in refused({"profile": "cpu", "size": "small"}).text


def test_what_was_sent_cannot_break_the_sentence() -> None:
    text = refused({"profile": "\u202e<script>alert(1)</script>" + "x" * 900}, BOB).text
    assert text.isprintable()
    assert len(text) < 200


@pytest.mark.parametrize(
    "raw", [{"profile": "cpu", "size": "x" * 1000}, {"profile": "turns", "image": f"custom:{'x' * 1000}:1"}]
)
def test_a_refusal_has_a_bounded_length_and_whole_sentences(raw: dict[str, Any]) -> None:
    text = refused(raw).text
    assert len(text) < 900
    assert text.endswith(".")


def test_a_listed_image_may_be_named_where_there_is_one_only() -> None:
    assert started({"profile": "cpu", "image": "base"}).workspace.image_key == "base"


def test_an_image_may_be_typed_where_the_catalog_allows_it() -> None:
    selection = started({"profile": "turns", "image": f"custom:{CUSTOM}"}, BOB)
    assert str(selection.workspace.reference) == CUSTOM


# --- access -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hidden", "unknown"),
    [
        ({"profile": "full"}, {"profile": "none"}),
        ({"profile": "full", "version": 9}, {"profile": "none", "version": 9}),
        ({"profile": "llm"}, {"profile": "xyz"}),
        ({"profile": "cpu", "size": "huge"}, {"profile": "cpu", "size": "none"}),
    ],
)
def test_a_hidden_name_is_answered_like_one_that_does_not_exist(
    hidden: dict[str, Any], unknown: dict[str, Any]
) -> None:
    first, second = refused(hidden, BOB), refused(unknown, BOB)
    assert first.status == second.status == 403
    assert first.reason == second.reason
    names = [(h, u) for h, u in zip(hidden.values(), unknown.values(), strict=True) if h != u]
    for name, other in names:
        assert first.text.replace(str(name), str(other)) == second.text


def test_where_nothing_is_hidden_a_wrong_name_is_the_request_s_fault() -> None:
    assert refused({"profile": "none"}, BOB, catalog=open_catalog()).status == 400


def test_groups_count_as_they_are_now() -> None:
    saved = started({"profile": "full"}, ADA).options
    refusal = refused(saved, Person(name="ada"), last=saved)
    assert (refusal.reason, refusal.status) == (SelectionReason.NOT_ALLOWED, 403)
    assert "withdrawn" in refusal.text


def test_each_sees_their_own_offer() -> None:
    assert [p.label for p in offers(workspaces(), ADA, today=TODAY)] == [
        "cpu@1",
        "full@3",
        "slice@1",
        "turns@1",
    ]
    mine = offers(workspaces(), BOB, today=TODAY)
    assert [p.label for p in mine] == ["cpu@1", "turns@1"]
    assert list(mine[0].questions["size"].options) == ["usual", "large"]


def narrowed(choices: dict[str, Any]) -> dict[str, list[str]] | None:
    """Give the options that somebody without a team finds in a profile with these choices."""
    data = yaml.safe_load(TEXT)
    data["profiles"][0]["choices"] = choices
    catalog = load_catalog(data)
    profile = offered_to(catalog.profiles[0], catalog, BOB)
    return profile and {key: list(choice.options) for key, choice in profile.questions.items()}


def option(only: bool = False, **requires: list[str]) -> dict[str, Any]:
    access = {"access": {"teams": ["nlp"]}} if only else {}
    return {"displayName": "x", "requires": requires, **access}


def test_an_option_that_goes_only_with_what_is_not_theirs_is_not_offered() -> None:
    size = {"displayName": "Size", "options": {"s": option(), "l": option(only=True)}}
    disk = {"displayName": "Disk", "options": {"small": option(size=["s", "l"]), "big": option(size=["l"])}}
    assert narrowed({"size": size, "disk": disk}) == {"size": ["s"], "disk": ["small"]}
    size["options"]["s"]["access"] = {"users": ["bob"]}
    disk["options"]["small"]["access"] = {"teams": ["nlp"]}
    assert narrowed({"size": size, "disk": disk}) is None


def test_an_option_that_goes_with_a_typed_image_is_offered() -> None:
    image = {
        "displayName": "Image",
        "options": {
            "base": {**option(size=["s"]), "image": "base"},
            "torch": {**option(only=True), "image": "torch"},
        },
        "custom": {"registries": ["registry.example.com/nlp"]},
    }
    size = {"displayName": "Size", "options": {"s": option(), "l": option()}}
    assert narrowed({"image": image, "size": size}) == {"image": ["base"], "size": ["s", "l"]}
    del image["custom"]
    assert narrowed({"image": image, "size": size}) == {"image": ["base"], "size": ["s"]}


def test_a_member_by_name_is_a_member() -> None:
    assert started({"profile": "slice"}, Person(name="ivy")).team == "vision"


@pytest.mark.parametrize(
    ("raw", "team"),
    [
        ({"profile": "slice"}, "nlp"),
        ({"profile": "slice", "team": "vision"}, "vision"),
        ({"profile": "full"}, "nlp"),
        ({"profile": "cpu", "team": "vision"}, "vision"),
    ],
)
def test_a_workspace_is_booked_on_one_team_of_the_user(raw: dict[str, Any], team: str) -> None:
    assert started(raw, EVE).team == team


@pytest.mark.parametrize(
    ("raw", "person"),
    [({"profile": "cpu", "team": "nlp"}, BOB), ({"profile": "full", "team": "vision"}, EVE)],
)
def test_nothing_is_booked_on_a_team_that_does_not_pay_for_it(raw: dict[str, Any], person: Person) -> None:
    assert refused(raw, person).status == 403


# --- options that go together, versions that went ----------------------------------------------------------


def test_options_that_do_not_go_together_are_refused_with_the_rule() -> None:
    refusal = refused({"profile": "full", "image": "old-torch", "cards": "two"})
    assert (refusal.reason, refusal.status) == (SelectionReason.CONFLICTING_OPTIONS, 400)
    assert "PyTorch, CUDA 13.0" in refusal.text


def test_a_saved_old_version_moves_with_its_choices_and_says_so() -> None:
    saved = {"profile": "full", "version": 2, "image": "old-torch", "gone": "x"}
    selection = started(saved, last=saved)
    assert selection.options == {"profile": "full", "version": 3, "image": "old-torch", "cards": "one"}
    assert "replaced by version 3" in selection.notice
    assert selection.notice.endswith("“gone” can no longer be chosen.")


def test_a_saved_answer_that_is_no_longer_offered_is_told_with_what_starts_instead() -> None:
    saved = {"profile": "full", "version": 2, "cards": "seven"}
    selection = started(saved, last=saved)
    assert selection.options["cards"] == "one"
    assert "“seven” is no longer offered, it starts with" in selection.notice


def test_a_deprecated_version_can_still_be_asked_for_until_its_last_day() -> None:
    asked = {"profile": "full", "version": 2}
    assert started(asked).workspace.profile.label == "full@2"
    assert started(asked, today=date(2027, 4, 1)).workspace.profile.label == "full@3"


def test_a_retired_version_without_successor_is_refused_with_its_message() -> None:
    refusal = refused({"profile": "gone"})
    assert (refusal.reason, refusal.status) == (SelectionReason.RETIRED, 400)
    assert "Its nodes are sold." in refusal.text
