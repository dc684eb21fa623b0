"""When a schedule starts next: as the library of the CronJob controller counts, told in words."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hub_ext.errors import BadValueError
from services.job_handoff.cron import next_after, read_cron
from services.job_handoff.inputs import check_schedule
from services.job_handoff.model import Schedule
from services.job_handoff.schedules import clock, coming, schedule_status, zone_of
from services.job_handoff.verdicts import RunRefusedError

from .conftest import ADA, World, body

GOLDEN = Path(__file__).parents[2] / "golden/handoff/cron.json"
"""What robfig/cron v3.0.1 says: `ParseStandard` of the line with its zone, then `Next` again and again."""
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
DAILY = {"cron": "0 6 * * *", "timeZone": "Europe/Berlin"}


def cases() -> list[Any]:
    found = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return [pytest.param(one, id=f"{one['cron']} {one['zone']} {one['after']}") for one in found]


@pytest.mark.parametrize("case", cases())
def test_a_line_means_what_it_means_to_the_controller(case: dict[str, Any]) -> None:
    if case.get("refused"):
        with pytest.raises(BadValueError):
            read_cron(case["cron"])
        return
    cron, moment = read_cron(case["cron"]), datetime.fromisoformat(case["after"])
    for wanted in case["next"]:
        found = next_after(cron, ZoneInfo(case["zone"]), moment)
        if wanted == "never":
            assert found is None
            return
        assert found == datetime.fromisoformat(wanted)
        moment = found


@pytest.mark.parametrize(
    "text",
    [
        ",",
        ", , , , ,",
        "* , * * *",
        "*-5 * * * *",
        "TZ=UTC * * * * *",
        "CRON_TZ=UTC * * * * *",
        "@every 1h",
        "٣ * * * *",
        "",
        "\u2003".join("*****") + "x",
    ],
)
def test_what_no_controller_could_start_by_is_refused(text: str) -> None:
    with pytest.raises(BadValueError) as error:
        read_cron(text)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("text", ["9" * 5000, "*/" + "9" * 5000, "1-" + "9" * 5000, "*/99999999999"])
def test_a_number_of_any_length_is_no_time(text: str) -> None:
    with pytest.raises(BadValueError):
        read_cron(f"{text} * * * *")


def test_a_day_that_a_zone_left_out_is_not_looked_for_without_end() -> None:
    """Samoa had no 30th of December in 2011; the controller's library never comes back from there."""
    start = datetime(2011, 12, 1, tzinfo=UTC)
    assert next_after(read_cron("0 0 30 12 *"), ZoneInfo("Pacific/Apia"), start) is None


@pytest.mark.parametrize(
    ("cron", "zone", "field", "told"),
    [
        ("0 0 30 2 *", "Etc/UTC", "schedule.cron", "never start anything"),
        ("0 0 31 4,6,9,11 *", "Europe/Berlin", "schedule.cron", "never start anything"),
        ("0 25 * * *", "Etc/UTC", "schedule.cron", "the hour '25' is not between 0 and 23"),
        ("0 6 * * 7", "Etc/UTC", "schedule.cron", "the weekday '7' is not between 0 and 6"),
        ("0 6 * *", "Etc/UTC", "schedule.cron", "it has 4 fields"),
        ("TZ=Europe/Berlin 0 6 * * *", "Etc/UTC", "schedule.cron", "the time zone has its own field"),
        ("@every 5m", "Etc/UTC", "schedule.cron", "there are @yearly"),
        ("0 6 * * *", "Europe/Berlln", "schedule.timeZone", "no time zone 'Europe/Berlln'"),
        ("0 6 * * *", "Local", "schedule.timeZone", "no time zone 'Local'"),
        ("0 6 * * *", "Europe", "schedule.timeZone", "no time zone 'Europe'"),
        ("0 6 * * *", "../../etc/passwd", "schedule.timeZone", "no time zone"),
    ],
)
def test_a_schedule_that_starts_nothing_is_refused_and_says_why(
    cron: str, zone: str, field: str, told: str
) -> None:
    with pytest.raises(RunRefusedError) as error:
        check_schedule(Schedule.model_construct(cron=cron, time_zone=zone), date(2026, 11, 30))
    assert (error.value.reason, error.value.field, error.value.status) == ("bad-schedule", field, 400)
    assert told in error.value.message
    assert error.value.help


def test_the_29th_of_february_comes() -> None:
    check_schedule(Schedule(cron="0 0 29 2 *"), date(2026, 11, 30))


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("2026-12-01T05:00:00+00:00", "Tuesday, 2026-12-01 at 06:00 (Europe/Berlin)"),
        ("2026-10-25T00:30:00+00:00", "Sunday, 2026-10-25 at 02:30 (Europe/Berlin, UTC+02:00)"),
        ("2026-10-25T01:30:00+00:00", "Sunday, 2026-10-25 at 02:30 (Europe/Berlin, UTC+01:00)"),
        ("2026-03-29T01:00:00+00:00", "Sunday, 2026-03-29 at 03:00 (Europe/Berlin)"),
    ],
)
def test_a_time_that_clocks_show_twice_is_told_apart(moment: str, told: str) -> None:
    assert clock(datetime.fromisoformat(moment), "Europe/Berlin") == told


def cron_job(
    cron: str = "0 * * * *", *, created: str = "2026-11-01T00:00:00Z", **changes: Any
) -> dict[str, Any]:
    spec = {"schedule": cron, "timeZone": "Etc/UTC", "startingDeadlineSeconds": 3600} | changes
    status = {key: spec.pop(key) for key in ("lastScheduleTime", "active") if key in spec}
    return {
        "kind": "CronJob",
        "metadata": {"creationTimestamp": created},
        "spec": spec,
        "status": status,
    }


BEFORE = "It started last on 2026-11-30 at 08:00 UTC."
DUE = "Due since Monday, 2026-11-30 at 09:00 (Etc/UTC): it starts"


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        (cron_job(suspend=True), "Paused."),
        (
            cron_job(lastScheduleTime="2026-11-30T09:00:00Z"),
            f"Starts next on Monday, 2026-11-30 at 10:00 (Etc/UTC). {BEFORE.replace('08', '09')}",
        ),
        (
            cron_job("0 6 * * *", created="2026-11-30T08:00:00Z"),
            "Starts next on Tuesday, 2026-12-01 at 06:00 (Etc/UTC).",
        ),
        (cron_job(lastScheduleTime="2026-11-30T08:00:00Z"), f"{DUE} now. {BEFORE}"),
        (
            cron_job(lastScheduleTime="2026-11-30T08:00:00Z", active=[{"name": "x"}]),
            f"{DUE} when the run before it has ended, if that is within 60 min. {BEFORE}",
        ),
        (cron_job("0 0 30 2 *"), "Starts by its schedule."),
        (cron_job("nonsense"), "Starts by its schedule."),
        (cron_job(timeZone="Europe/Gone"), "Starts by its schedule."),
    ],
)
def test_a_schedule_says_when_it_starts_next(schedule: dict[str, Any], told: str) -> None:
    assert schedule_status(schedule, NOW).text == told
    assert (coming(schedule, NOW) is None) is told.startswith(("Paused", "Starts by"))


def test_a_time_that_was_missed_long_ago_is_not_made_up() -> None:
    """The controller makes up for an hour; a schedule that goes on within it starts at once."""
    found = coming(cron_job("30 7 * * *", lastScheduleTime="2026-11-28T07:30:00Z"), NOW)
    assert found is not None
    assert (found.at.isoformat(), found.due) == ("2026-12-01T07:30:00+00:00", False)


def test_what_a_controller_has_started_is_not_told_as_coming_by_a_clock_behind_its_own() -> None:
    found = coming(cron_job(lastScheduleTime="2026-11-30T10:00:00Z"), NOW)
    assert found is not None
    assert found.at.hour == 11


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "", "Europe/../../x", "a\x00b", "Europe/Berlin "]
)
def test_no_name_leads_out_of_the_data_base_of_zones(name: str) -> None:
    with pytest.raises(BadValueError):
        zone_of(name)


async def test_all_that_tells_of_a_schedule_says_when_it_starts(world: World) -> None:
    tried = await world.service.desk.submit("ada", body(schedule=DAILY), dry_run=True)
    made = await world.service.desk.submit("ada", body(schedule=DAILY))
    assert tried.told == made.told
    assert tried.coming is not None
    assert made.told[0].startswith("It starts on ")
    answer = made.as_dict()
    starts = datetime.fromisoformat(answer["next"])
    assert starts.astimezone(ZoneInfo("Europe/Berlin")).hour == 6
    assert timedelta(0) < starts - datetime.now(UTC) <= timedelta(days=1, hours=1)
    seen = await world.service.board.one(ADA, made.record.id)
    (listed,) = await world.service.board.mine(ADA)
    assert seen.as_dict()["next"] == listed.as_dict()["next"] == answer["next"]
    paused = await world.service.actions.pause(ADA, made.record.id, paused=True)
    assert (paused.as_dict()["next"], paused.status.reason) == (None, "held")
