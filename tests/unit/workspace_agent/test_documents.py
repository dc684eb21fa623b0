"""What the pages told, and what became of a wish to save."""

from __future__ import annotations

from hub_ext.protocol import Document, SaveRequest, Unsaved
from services.workspace_agent.documents import (
    MOST_PAGES,
    NO_ANSWER,
    SILENT_SECONDS,
    Pages,
    SaveRound,
    close_round,
)

A, B = Document(path="a.ipynb", kind="notebook"), Document(path="b.py", kind="file")


def test_without_a_page_nothing_is_known() -> None:
    pages = Pages()
    assert pages.documents(0) is None
    assert pages.input_seconds(0) is None


def test_documents_of_all_pages_each_once() -> None:
    pages = Pages()
    pages.tell("one", [A, B], input_seconds=None, now=10)
    pages.tell("two", [A], input_seconds=None, now=20)
    assert pages.documents(25) == (A, B)
    pages.tell("one", [], input_seconds=None, now=30)
    assert pages.documents(30) == (A,)


def test_a_page_that_closed_or_fell_silent_is_gone() -> None:
    pages = Pages()
    pages.tell("one", [A], input_seconds=None, now=0)
    assert pages.documents(SILENT_SECONDS - 1) == (A,)
    assert pages.documents(SILENT_SECONDS) is None
    pages.tell("one", [A], input_seconds=None, now=0)
    pages.close("one")
    pages.close("never there")
    assert pages.documents(1) is None


def test_input_is_the_last_in_any_page_and_outlives_it() -> None:
    pages = Pages()
    pages.tell("one", [], input_seconds=5, now=100)
    pages.tell("two", [], input_seconds=50, now=110)
    pages.tell("three", [], input_seconds=None, now=120)
    pages.close("one")
    assert pages.input_seconds(125) == 30


def test_the_number_of_pages_is_bounded() -> None:
    pages = Pages()
    for number in range(MOST_PAGES + 5):
        pages.tell(str(number), [], input_seconds=None, now=number)
    assert len(pages.open(MOST_PAGES + 5)) == MOST_PAGES


def asked(*pages: str) -> SaveRound:
    return SaveRound(request=SaveRequest(id="s1", seconds=60), missing=frozenset(pages))


def test_a_round_ends_when_all_pages_answered() -> None:
    first = asked("one", "two").answered("one", ["a.ipynb"], [])
    assert not first.done
    second = first.answered("two", [], [Unsaved(path="b.py", why="read-only")])
    assert second.done
    told = close_round(second, {}, server="gpu")
    assert (told.server, told.save, told.saved) == ("gpu", "s1", ("a.ipynb",))
    assert told.failed == (Unsaved(path="b.py", why="read-only"),)


def test_nobody_is_asked_where_no_page_is_open() -> None:
    assert asked().done


def test_answers_of_others_and_second_answers_change_nothing() -> None:
    first = asked("one").answered("one", ["a.ipynb"], [])
    assert first.answered("stranger", ["x"], []) == first
    assert first.answered("one", ["x"], []) == first


def test_what_a_silent_page_had_unsaved_failed_unless_another_saved_it() -> None:
    pages = Pages()
    pages.tell("one", [A], input_seconds=None, now=0)
    pages.tell("two", [A, B], input_seconds=None, now=0)
    told = close_round(asked("one", "two").answered("one", [A.path], []), pages.open(1), server="")
    assert told.saved == (A.path,)
    assert told.failed == (Unsaved(path=B.path, why=NO_ANSWER),)
