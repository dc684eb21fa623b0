"""What a name, a link or a saved choice comes to, on which day."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Alias, Catalog, ProfileRef, State
from hub_ext.catalog.versions import lifetime_notice, offered, pick, resolve, state_on, versions_of
from hub_ext.errors import SelectionError, SelectionReason

from .conftest import GONE, Edit, changed

TODAY = date(2026, 11, 30)
LAST_DAY = date(2027, 3, 31)
LATER = date(2027, 4, 1)


@pytest.fixture
def catalog(clean: dict[str, Any]) -> Callable[[Edit], Catalog]:
    return lambda edit: load_catalog(changed(clean, edit))


@pytest.mark.parametrize(
    ("name", "version", "edit", "label"),
    [
        ("gpu-full", None, {}, "gpu-full@3"),
        ("gpu-full", 3, {}, "gpu-full@3"),
        ("gpu-full", "3", {}, "gpu-full@3"),
        ("gpu-full", 2, {}, "gpu-full@3"),
        ("gpu-full", "latest", {}, "gpu-full@3"),
        ("gpu-full", "recommended", {}, "gpu-full@3"),
        ("llm", None, {}, "gpu-full@3"),
        ("llm", 2, {}, "gpu-full@3"),
        ("gpu-full", 2, {"profiles.1.replacedBy": "gpu-part@1"}, "gpu-part@1"),
        ("gpu-full", 2, {"profiles.1.replacedBy": "gpu-part"}, "gpu-part@1"),
        ("gpu-full", 2, {"profiles.1.replacedBy": GONE}, "gpu-full@2"),
        ("gpu-full", 2, {"profiles.1.state": "active", "profiles.1.until": GONE}, "gpu-full@2"),
        ("gpu-full", None, {"profiles.1.state": "active", "profiles.1.recommended": True}, "gpu-full@2"),
        ("gpu-full", "latest", {"profiles.2.state": "hidden"}, "gpu-full@2"),
        ("gpu-full", 3, {"profiles.2.state": "hidden"}, "gpu-full@3"),
        ("gpu-full", 2, {"profiles.2.state": "hidden"}, "gpu-full@3"),
    ],
)
def test_choices_resolve(
    catalog: Callable[[Edit], Catalog], name: str, version: int | str | None, edit: Edit, label: str
) -> None:
    if edit.get("profiles.2.state") == "hidden" and version == "latest":
        edit = {**edit, "profiles.1.replacedBy": GONE}
    assert resolve(catalog(edit), name, version, today=TODAY).profile.label == label


@pytest.mark.parametrize(
    ("name", "version", "reason"),
    [
        ("gone", None, SelectionReason.UNKNOWN_PROFILE),
        ("", None, SelectionReason.UNKNOWN_PROFILE),
        ("gpu-full", 9, SelectionReason.UNKNOWN_VERSION),
        ("gpu-full", 0, SelectionReason.UNKNOWN_VERSION),
        ("gpu-full", "newest", SelectionReason.UNKNOWN_VERSION),
        ("gpu-full", "\N{SUPERSCRIPT TWO}", SelectionReason.UNKNOWN_VERSION),
        ("gpu-full", "9" * 5000, SelectionReason.UNKNOWN_VERSION),
        ("gpu-full@3", None, SelectionReason.UNKNOWN_PROFILE),
    ],
)
def test_what_does_not_resolve_says_why(
    catalog: Callable[[Edit], Catalog], name: str, version: int | str | None, reason: SelectionReason
) -> None:
    with pytest.raises(SelectionError) as caught:
        resolve(catalog({}), name, version, today=TODAY)
    assert caught.value.reason is reason
    assert caught.value.allowed


def test_a_replaced_choice_says_what_replaced_it(catalog: Callable[[Edit], Catalog]) -> None:
    resolution = resolve(catalog({}), "gpu-full", 2, today=TODAY)
    assert resolution.moved_from == "gpu-full@2"
    assert (
        resolution.notice == "One full card (version 2) is replaced by version 3. CUDA 12 ends on 31 March."
    )


def test_an_explicit_choice_of_a_deprecated_version_starts_until_its_last_day(
    catalog: Callable[[Edit], Catalog],
) -> None:
    made = catalog({})
    on_last = resolve(made, "gpu-full", 2, today=LAST_DAY, explicit=True)
    assert on_last.profile.label == "gpu-full@2"
    assert "until 2027-03-31" in on_last.notice
    assert resolve(made, "gpu-full", 2, today=LATER, explicit=True).profile.label == "gpu-full@3"


def test_a_last_day_without_replacement_ends_in_a_reason(catalog: Callable[[Edit], Catalog]) -> None:
    made = catalog({"profiles.1.replacedBy": GONE})
    assert resolve(made, "gpu-full", 2, today=LAST_DAY).profile.label == "gpu-full@2"
    with pytest.raises(SelectionError, match="no longer offered") as caught:
        resolve(made, "gpu-full", 2, today=LATER)
    assert caught.value.reason is SelectionReason.RETIRED
    assert caught.value.message.endswith("CUDA 12 ends on 31 March.")


def test_a_chain_is_followed_to_the_first_version_that_starts(catalog: Callable[[Edit], Catalog]) -> None:
    fourth = {
        "name": "gpu-full",
        "version": 4,
        "displayName": "X",
        "images": ["torch"],
        "resources": {"cpu": 8, "memory": "64Gi", "gpu": {"pool": "gpu-full"}},
        "access": {"teams": ["nlp"]},
    }
    made = catalog({"profiles.2.state": "retired", "profiles.2.replacedBy": 4, "profiles.5": fourth})
    assert resolve(made, "gpu-full", 2, today=TODAY).profile.label == "gpu-full@4"
    assert [p.version for p in versions_of(made, "gpu-full")] == [4, 3, 2]


def test_the_spawn_page_shows_active_versions_and_those_without_replacement(
    catalog: Callable[[Edit], Catalog],
) -> None:
    labels = [p.label for p in offered(catalog({}), today=TODAY)]
    assert labels == ["cpu@1", "gpu-full@3", "gpu-part@1", "gpu-share@1"]
    kept = catalog({"profiles.1.replacedBy": GONE, "profiles.0.state": "hidden"})
    assert [p.label for p in offered(kept, today=TODAY)][:2] == ["gpu-full@2", "gpu-full@3"]
    assert "gpu-full@2" not in [p.label for p in offered(kept, today=LATER)]
    assert lifetime_notice(kept.by_key["gpu-full", 2]).startswith("One full card (version 2) is deprecated")
    assert lifetime_notice(kept.by_key["gpu-full", 3]) == ""


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_finds_its_own_profiles(clean: dict[str, Any], deep: bool) -> None:
    catalog = load_catalog(clean)
    assert ("cpu", 1) in catalog.by_key
    copy = catalog.model_copy(update={"profiles": catalog.profiles[1:]}, deep=deep)
    assert ("cpu", 1) not in copy.by_key
    assert set(copy.by_key) == {profile.key for profile in catalog.profiles[1:]}
    assert ("cpu", 1) in catalog.by_key


def test_a_cycle_that_escaped_the_check_still_ends(clean: dict[str, Any]) -> None:
    catalog = load_catalog(clean)
    third = catalog.by_key["gpu-full", 3].model_copy(
        update={"state": State.RETIRED, "replaced_by": ProfileRef("", 2)}
    )
    second = catalog.by_key["gpu-full", 2].model_copy(update={"state": State.RETIRED})
    broken = catalog.model_copy(update={"profiles": (second, third)})
    with pytest.raises(SelectionError):
        resolve(broken, "gpu-full", 2, today=TODAY)


STATES = st.sampled_from(list(State))
REFS = st.one_of(
    st.none(),
    st.builds(
        ProfileRef, st.sampled_from(["", "a", "b"]), st.one_of(st.integers(1, 4), st.sampled_from(Alias))
    ),
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_nothing_ever_falls_through(clean: dict[str, Any], data: st.DataObject) -> None:
    """Whatever the versions are: a choice comes to one that can be started, or to a reason."""
    catalog = load_catalog(clean)
    template = catalog.by_key["gpu-full", 2]
    keys = data.draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3)), unique=True, max_size=5))
    profiles = tuple(
        template.model_copy(
            update={
                "name": name,
                "version": version,
                "state": data.draw(STATES),
                "replaced_by": data.draw(REFS),
                "until": data.draw(
                    st.one_of(st.none(), st.sampled_from([date(2026, 1, 1), date(2028, 1, 1)]))
                ),
                "recommended": data.draw(st.booleans()),
            }
        )
        for name, version in keys
    )
    made = Catalog.model_construct(
        **{
            **{key: getattr(catalog, key) for key in Catalog.model_fields},
            "profiles": profiles,
            "aliases": {},
        }
    )
    asked = ProfileRef(
        data.draw(st.sampled_from("abc")), data.draw(st.one_of(st.integers(1, 4), st.sampled_from(Alias)))
    )
    wanted = pick(made, asked, today=TODAY)
    try:
        resolution = resolve(made, asked.name, str(asked.version), today=TODAY)
    except SelectionError:
        assert wanted is None or state_on(wanted, TODAY) in {State.RETIRED, State.DEPRECATED}
        return
    assert wanted is not None
    assert state_on(resolution.profile, TODAY) is not State.RETIRED
    assert (resolution.moved_from == "") is (resolution.profile.key == wanted.key)
    assert bool(resolution.notice) is (resolution.moved_from != "" or wanted.state is State.DEPRECATED)
