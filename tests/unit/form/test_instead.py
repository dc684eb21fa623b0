"""A refusal by a limit says what would fit instead, the nearest first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hub_ext.catalog.compose import Workspace
from hub_ext.cluster.capacity import Availability, Supply
from hub_ext.cluster.offer import Offer
from hub_ext.form.entries import Entries, Visit, entries_for
from hub_ext.form.instead import what_fits
from hub_ext.quota.arithmetic import Amount, Resources
from hub_ext.quota.demand import asked_by, weights_of
from hub_ext.quota.policy import Limit, check, room
from hub_ext.quota.usage import Usage
from hub_ext.quota.verdicts import Scope, Shortage
from tests.fakes.workspaces import ADA, TODAY, workspaces

WEIGHTS = weights_of(workspaces())


def entries(bound: Mapping[str, Amount], *, gone: str = "") -> Entries:
    """Lay out the page of somebody with a limit; `gone` has no nodes."""
    limits = [Limit(scope=Scope.USER, bound=bound)]

    def look(workspace: Workspace, _team: str) -> Offer:
        asked = asked_by(workspace, WEIGHTS)
        supply = Supply.NO_NODE if workspace.profile.name == gone else Supply.FREE
        return Offer(
            asked=asked,
            refusal=check(asked, Usage(), limits),
            room=room(asked, Usage(), limits),
            availability=Availability(supply=supply, free=1),
        )

    visit = Visit(person=ADA, server_name="", today=TODAY, last={}, look=look)
    return entries_for(workspaces(), visit)


def refusal_of(found: Entries, profile: str) -> str:
    return next(e.room.refusal for e in found.entries if e.workspace.profile.name == profile)


def test_smaller_ones_are_named_the_largest_first() -> None:
    text = refusal_of(entries({"gpuEquivalents": 0.5}), "full")
    assert text.endswith("What would fit now: Shared GPU, GPU slice, Notebook.")


def test_what_has_no_nodes_is_no_help() -> None:
    assert "Shared GPU" not in refusal_of(entries({"gpuEquivalents": 0.5}, gone="turns"), "full")


def test_where_nothing_fits_advice_takes_the_place_of_names() -> None:
    text = refusal_of(entries({"servers": 0}), "full")
    assert text.endswith("Pick a smaller one, or ask an administrator.")


@pytest.mark.parametrize(("profile", "asked"), [("cpu", {"cpu": 64000}), ("none", {"memory": 2**50})])
def test_who_asks_for_no_gpu_is_named_none(profile: str, asked: dict[str, int]) -> None:
    names = what_fits(entries({}).entries, profile=profile, asked=Resources(asked))
    assert names == (() if profile == "cpu" else ("Notebook",))


@pytest.mark.parametrize(
    ("resource", "limit", "fits"),
    [
        ("requests.nvidia.com/gpu", 0, ("Shared GPU", "GPU slice", "Notebook")),
        ("requests.nvidia.com/gpu.shared", 0, ("GPU slice", "Notebook")),
        ("limits.cpu", 3999, ("Shared GPU", "Notebook")),
        ("pods", 0, ()),
    ],
)
def test_what_a_quota_of_the_namespace_leaves_counts_though_the_hub_does_not_see_it(
    resource: str, limit: int, fits: tuple[str, ...]
) -> None:
    short = Shortage(resource=resource, asked=limit + 1, used=0, limit=limit)
    asked = Resources({"gpuEquivalents": 1, "memory": 2**36})
    assert what_fits(entries({}).entries, profile="full", asked=asked, short=[short]) == fits
