"""Rules by kind of GPU, team and time; profiles; what the file says wrong."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from services.base import SettingsError, read_settings
from services.idle_culler.facts import PodFacts
from services.idle_culler.limits import GpuKind, gpu_kind
from services.idle_culler.policy import Policy
from services.idle_culler.settings import CullerSettings
from tests.fakes.culler import NOON, SLICE, pod
from tests.unit.idle_culler.catalogs import catalog_with

HOUR = 3600.0
PROFILE = {"profile": "full", "version": 2}


def policy(*rules: object, **fields: object) -> Policy:
    return Policy.model_validate({"rules": list(rules), **fields})


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (None, GpuKind.NONE),
        (pod(0), GpuKind.NONE),
        (pod(1), GpuKind.FULL),
        (pod(8), GpuKind.SEVERAL),
        (pod(1, SLICE), GpuKind.MIG),
        (pod(1, sharing="mig"), GpuKind.MIG),
        (pod(1, sharing="time-slicing"), GpuKind.SHARED),
        (pod(1, sharing="mps"), GpuKind.SHARED),
        (pod(1, "nvidia.com/gpu.shared"), GpuKind.SHARED),
        (pod(1, "amd.com/gpu"), GpuKind.FULL),
    ],
)
def test_kinds_of_gpu(found: PodFacts | None, kind: GpuKind) -> None:
    assert gpu_kind(found) is kind


def test_a_rule_goes_before_the_profile_and_the_profile_before_the_defaults() -> None:
    rules = policy(
        {"when": {"gpu": ["full"]}, "idleTimeout": "30m"}, defaults={"idleTimeout": "9h", "keeps": 7}
    )
    catalog, silent = catalog_with(idleTimeout="2h", warnBefore=["20m"]), catalog_with()
    one, two = pod(**PROFILE), pod(2, **PROFILE)
    assert rules.limits(one, catalog, NOON).idle == 0.5 * HOUR
    assert rules.limits(two, catalog, NOON).idle == 2 * HOUR
    assert rules.limits(two, silent, NOON).idle == 9 * HOUR
    assert rules.limits(two, catalog, NOON).warn_before == (1200.0,)
    assert rules.limits(two, silent, NOON).warn_before == (1800.0, 600.0, 120.0)
    assert rules.limits(one, catalog, NOON).keeps == 7


def test_a_profile_that_the_catalog_does_not_have_leaves_the_defaults() -> None:
    rules, catalog = policy(defaults={"idleTimeout": "9h"}), catalog_with(idleTimeout="2h")
    for fields in (
        {},
        {"profile": "full"},
        {"profile": "full", "version": 9},
        {"profile": "x", "version": 2},
    ):
        assert rules.limits(pod(**fields), catalog, NOON).idle == 9 * HOUR


def test_of_a_server_whose_pod_is_not_seen_nobody_knows_what_holds() -> None:
    rules = policy({"idleTimeout": "1m"}, defaults={"idleTimeout": "1m", "maxDuration": "1m"})
    limits = rules.limits(None, catalog_with(idleTimeout="2h"), NOON)
    assert (limits.known, limits.idle, limits.session) == (False, None, None)


def test_each_limit_is_taken_from_the_first_rule_that_names_it() -> None:
    rules = policy(
        {"when": {"teams": ["nlp"]}, "maxDuration": "24h"},
        {"when": {"gpu": ["full"]}, "idleTimeout": "1h", "maxDuration": "12h"},
    )
    limits = rules.limits(pod(team="nlp"), None, NOON)
    assert (limits.idle, limits.session) == (HOUR, 24 * HOUR)


def test_never_is_a_limit_too() -> None:
    rules = policy({"when": {"teams": ["nlp"]}, "idleTimeout": "never"})
    catalog = catalog_with(idleTimeout="1h")
    assert rules.limits(pod(team="nlp", **PROFILE), catalog, NOON).idle is None
    assert rules.limits(pod(**PROFILE), catalog, NOON).idle == HOUR


@pytest.mark.parametrize(
    ("moment", "matches"),
    [
        ("2026-11-27T21:30:00+00:00", True),  # Friday, 22:30 in Berlin
        ("2026-11-27T20:30:00+00:00", False),  # 21:30
        ("2026-11-28T04:30:00+00:00", True),  # Saturday morning, of Friday's night
        ("2026-11-28T05:30:00+00:00", False),
        ("2026-11-28T21:30:00+00:00", False),  # Saturday night
        ("2026-11-27T04:30:00+00:00", False),  # of Thursday's night
        ("2026-07-03T20:30:00+00:00", True),  # Friday in summer, 22:30 in Berlin
    ],
)
def test_hours_and_days_are_those_of_the_time_zone(moment: str, matches: bool) -> None:
    when = {"hours": "22:00-06:00", "days": ["fri"]}
    rules = policy({"when": when, "idleTimeout": "30m"}, timezone="Europe/Berlin")
    assert (rules.limits(pod(), None, datetime.fromisoformat(moment)).idle is not None) is matches


@pytest.mark.parametrize(
    ("moment", "matches"),
    [
        ("2026-03-29T00:30:00+00:00", False),  # 01:30 in Berlin
        ("2026-03-29T01:30:00+00:00", False),  # 03:30: there was no hour from two to three
        ("2026-10-25T00:30:00+00:00", True),  # 02:30 in summer time
        ("2026-10-25T01:30:00+00:00", True),  # 02:30 again
        ("2026-10-25T02:30:00+00:00", False),
    ],
)
def test_an_hour_that_is_left_out_or_comes_twice(moment: str, matches: bool) -> None:
    rules = policy({"when": {"hours": "02:00-03:00"}, "idleTimeout": "30m"}, timezone="Europe/Berlin")
    assert (rules.limits(pod(), None, datetime.fromisoformat(moment)).idle is not None) is matches


def test_warnings_of_a_profile_come_longest_first_whatever_their_order() -> None:
    catalog = catalog_with(idleTimeout="2h", warnBefore=["2m", "20m", "2m"])
    assert policy().limits(pod(**PROFILE), catalog, NOON).warn_before == (1200.0, 120.0)


def test_a_team_or_profile_that_nobody_has_matches_nobody() -> None:
    rules = policy({"when": {"teams": ["ghosts"], "profiles": ["none"]}, "idleTimeout": "1m"})
    assert rules.limits(pod(), None, NOON).idle is None


def test_hours_within_a_day() -> None:
    rules = policy({"when": {"hours": "09:00-17:00"}, "idleTimeout": "30m"})
    found = [rules.limits(pod(), None, NOON.replace(hour=hour)).idle for hour in (8, 9, 16, 17)]
    assert found == [None, 1800.0, 1800.0, None]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy: {mode: kill}", "policy.mode"),
        ("policy: {timezone: Europe/Nowhere}", "not a time zone"),
        ("policy: {rules: [{when: {hours: 22-6}}]}", "not a time of day"),
        ("policy: {rules: [{when: {hours: '06:00-06:00'}}]}", "no time at all"),
        ("policy: {rules: [{idleTimeout: 3600}]}", "not a duration"),
        ("policy: {rules: [{idelTimeout: 1h}]}", "idelTimeout"),
        ("policy: {defaults: {idleTimeout: -1h}}", "not a duration"),
        ("policy: {defaults: {idleTimeout: 99999999999999d}}", "not a duration"),
        ("policy: {defaults: {idleTimeout: 0s}}", "no time at all"),
        ("policy: {defaults: {maxDuration: 0s}}", "no time at all"),
        ("every: 0s", "no time at all"),
        ("window: 0s", "no time at all"),
        ("sampleEvery: 0s", "no time at all"),
        ("window: 10s", "shorter than sampleEvery"),
        ("policy: []", "policy"),
        ("policy: {rules: [{when: {days: [monday]}}]}", "days"),
        ("policy: {rules: [{when: {gpu: [huge]}}]}", "gpu"),
        ("policy: {defaults: {warnBefore: [2m, 30m]}}", "not in order"),
        ("policy: {defaults: {warnBefore: [2m, 0s]}}", "is none"),
        ("policy: {defaults: {keeps: -1}}", "keeps"),
        ("policy: {thresholds: {gpu: .nan}}", "gpu"),
        ("notify: {users: ['mailto://x']}", "the same for all users"),
        ("namespace: [A B]", "namespace"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "culler.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as error:
        read_settings(CullerSettings, file)
    assert said in str(error.value)
    assert str(file) in str(error.value)
