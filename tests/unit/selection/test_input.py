"""The three ways in give one shape."""

from __future__ import annotations

from typing import Any

import pytest

from hub_ext.errors import SelectionError
from hub_ext.selection_input import options_from_form, options_from_link, read_options, shown


def test_of_all_cards_only_the_chosen_one_counts() -> None:
    form = {
        "profile": ["full@3"],
        "full@3.image": ["torch"],
        "full@3.cards": ["two"],
        "full@30.image": ["other"],
        "cpu@1.size": ["large"],
    }
    assert options_from_form(form) == {"profile": "full@3", "image": "torch", "cards": "two"}


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ({}, {}),
        ({"profile": [""]}, {}),
        ({"cpu@1.size": ["large"]}, {}),
        ({"profile": ["cpu@1", "full@3"]}, {"profile": ["cpu@1", "full@3"]}),
        ({"profile": ["cpu@1"], "cpu@1.size": []}, {"profile": "cpu@1", "size": []}),
        ({"profile": ["cpu"], "size": ["large"]}, {"profile": "cpu"}),
    ],
)
def test_a_form_that_is_not_the_page_s_own_is_passed_on(form: dict[str, list[str]], options: Any) -> None:
    assert options_from_form(form) == options


@pytest.mark.parametrize("typed", ["registry.example.com/x:1", "  registry.example.com/x:1 "])
def test_a_typed_answer_counts_when_it_is_chosen(typed: str) -> None:
    form = {"profile": ["a@1"], "a@1.image": ["custom:"], "a@1.image:custom": [typed]}
    assert options_from_form(form) == {"profile": "a@1", "image": "custom:registry.example.com/x:1"}
    assert options_from_form(form | {"a@1.image": ["torch"]}) == {"profile": "a@1", "image": "torch"}


@pytest.mark.parametrize(
    ("query", "prefixed", "options"),
    [
        ({"profile": ["gpu"]}, True, {"profile": "gpu"}),
        ({"opt-profile": ["gpu"]}, True, {"profile": "gpu"}),
        ({"profile": ["gpu"], "opt-image": ["torch"]}, True, {"image": "torch"}),
        ({"opt-opt-x": ["1"]}, True, {"opt-x": "1"}),
        ({"opt-": ["1"]}, True, {}),
        ({"opt-profile": ["gpu"]}, False, {"opt-profile": "gpu"}),
        ({"profile": ["gpu"], "_xsrf": ["2|abc"]}, True, {"profile": "gpu"}),
    ],
)
def test_links_of_both_hub_lines_mean_the_same(
    query: dict[str, list[str]], prefixed: bool, options: dict[str, str]
) -> None:
    assert options_from_link(query, prefixed=prefixed) == options


def test_a_version_may_stand_in_the_profile_or_beside_it() -> None:
    assert read_options({"profile": "a@3"}) == read_options({"profile": "a", "version": 3})
    assert read_options({"profile": "a@3", "version": 4}).version == 4
    assert read_options({"profile": "a@3", "version": 0}).version == 0


@pytest.mark.parametrize("version", [1.5, True, [3], {"number": 3}])
def test_a_version_that_is_neither_number_nor_word_is_told_so(version: object) -> None:
    with pytest.raises(SelectionError, match="“version” must be a whole number or a word"):
        read_options({"profile": "a", "version": version})


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31m", "\u202e", "x" * 999])
def test_a_quoted_text_is_one_short_printable_line(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text)) <= 63
