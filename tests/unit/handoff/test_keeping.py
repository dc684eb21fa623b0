"""What is done again and again: filing, removing, opening gates, freeing what is stuck, cleaning up."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hub_ext.selection_access import Person
from services.job_handoff.board import Seen
from services.job_handoff.ids import base_id
from services.job_handoff.limits import GATE, GATE_ANNOTATION
from services.job_handoff.settings import HandoffSettings
from services.job_handoff.store import StoreError
from services.job_handoff.verdicts import RunRefusedError
from services.job_handoff.view import view_of
from services.kube import NotFoundError

from .conftest import ADA, DIGEST, World, archive, body, start_for_test

OTHER = archive({"other.py": ""})
OLD = "2026-01-01T00:00:00Z"


async def submit(world: World, **changes: object) -> str:
    return (await world.service.desk.submit("ada", body(**changes))).record.id


async def look(world: World, run: str, person: Person = ADA) -> Seen:
    return await world.service.board.one(person, run)


async def test_a_run_that_has_ended_is_filed_once_and_looks_the_same_afterwards(world: World) -> None:
    run = await submit(world)
    world.kube.condition_for_test(run, "Admitted")
    world.kube.pod_for_test(run, "Succeeded", terminated={"exitCode": 0, "startedAt": OLD, "finishedAt": OLD})
    world.kube.end_for_test(run)
    before = await look(world, run)
    for _ in range(2):
        await world.service.keeper.tend()
    assert await world.store.get(f"nlp/ada/runs/{run}/log.txt") == b"hello\nworld"
    world.kube.drop_for_test(f"/apis/batch/v1/namespaces/runs/jobs/{run}")
    after = await look(world, run)
    assert (after.record.id, after.status.phase, after.status.text) == (
        run,
        before.status.phase,
        before.status.text,
    )
    assert await world.service.board.log(after) == "hello\nworld"
    assert (
        world.registry.get_sample_value(
            "gpu_workspaces_handoff_runs_ended_total",
            {"kind": "job", "profile": "cpu@1", "phase": "succeeded", "reason": "succeeded"},
        )
        == 1
    )
    again = await world.service.desk.submit("ada", body())
    assert (again.record.id, again.created) == (run, False)


async def test_a_store_that_does_not_answer_costs_no_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await submit(world)
    world.kube.end_for_test(run)

    async def away(*_arguments: object, **_more: object) -> bool:
        raise StoreError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(world.service.core.store, "put", away)
        await world.service.keeper.tend()
        canceled = await world.service.actions.cancel(ADA, run)
        assert canceled.status.phase.has_ended
        second = await submit(world, key="second")
        await world.service.actions.cancel(ADA, second)
    assert {one["metadata"]["name"] for one in world.kube.all_for_test("jobs")} == {run, second}
    assert world.kube.workload_for_test(second)["spec"]["active"] is False
    await world.service.keeper.tend()
    assert {one["metadata"]["name"] for one in world.kube.all_for_test("jobs")} == {run}
    assert (await look(world, second)).status.phase.value == "canceled"


async def test_a_dead_store_refuses_what_it_could_not_keep(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_arguments: object, **_more: object) -> bool:
        raise StoreError("No space left", fault="full")

    monkeypatch.setattr(world.service.core.store, "get", full)
    with pytest.raises(RunRefusedError) as error:
        await submit(world)
    assert (error.value.reason, error.value.status) == ("store-full", 507)
    assert world.kube.all_for_test("jobs") == []


async def test_a_member_s_limit_holds_a_run_until_there_is_room(world: World) -> None:
    first = await submit(world, profile="card", key="1", choices={})
    second = await submit(world, profile="card", key="2")
    third = await submit(world, profile="card", key="3")
    jobs = {
        one["metadata"]["name"]: one["metadata"]["annotations"] for one in world.kube.all_for_test("jobs")
    }
    assert [GATE_ANNOTATION in jobs[name] for name in (first, second, third)] == [False, False, True]
    assert jobs[third][GATE_ANNOTATION] == GATE
    await world.service.keeper.open_gates()
    assert GATE_ANNOTATION in (await look(world, third)).obj["metadata"]["annotations"]  # type: ignore[index]
    world.kube.end_for_test(first)
    world.service.core.census._taken = float("-inf")
    await world.service.keeper.open_gates()
    assert GATE_ANNOTATION not in (await look(world, third)).obj["metadata"]["annotations"]  # type: ignore[index]


async def test_what_never_fits_is_refused_in_the_words_of_the_spawn_page(world: World) -> None:
    with pytest.raises(RunRefusedError) as error:
        await submit(world, profile="card", choices={"cards": "four"})
    assert error.value.reason == "user-limit"
    assert "This run needs 4 GPUs, but you may have 2 GPUs at the same time." in error.value.text


async def test_a_server_counts_and_one_that_is_released_does_not(world: World) -> None:
    gpu = {"nvidia.com/gpu": "2"}
    world.kube.put_for_test(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "jupyter-ada",
                "namespace": "hub",
                "labels": {"component": "singleuser-server", "gpu-workspaces.jupyter.org/team": "nlp"},
                "annotations": {
                    "gpu-workspaces.jupyter.org/user": "ada",
                    "gpu-workspaces.jupyter.org/server": "",
                },
            },
            "spec": {"containers": [{"name": "notebook", "resources": {"limits": gpu}}]},
            "status": {"phase": "Running"},
        }
    )
    world.hub.add_server("ada", options={"profile": "card"})
    waiting = await world.service.desk.submit("ada", body(profile="card"), dry_run=True)
    assert (waiting.forecast.when, waiting.forecast.reason) == ("wait", "user-limit")
    released = await world.service.desk.submit(
        "ada", body(profile="card", server="", release=True, image="server")
    )
    assert (released.forecast.when, released.released) == ("now", True)
    assert world.hub.stopped == ["ada/"]


async def test_a_run_that_was_admitted_and_cannot_start_gives_its_quota_back(
    world: World, settings: HandoffSettings
) -> None:
    run = await submit(world)
    world.kube.condition_for_test(run, "Admitted")
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    world.kube.pod_for_test(run, "Pending", waiting=waiting)
    await world.service.keeper.tend()
    assert world.kube.workload_for_test(run)["spec"]["active"] is True
    workload = world.kube.workload_for_test(run)
    workload["status"]["conditions"][0]["lastTransitionTime"] = OLD
    world.kube.put_for_test(workload)
    await world.service.keeper.tend()
    assert world.kube.workload_for_test(run)["spec"]["active"] is False
    status = (await look(world, run)).status
    assert (status.phase.value, status.reason) == ("failed", "stuck")
    assert "image-not-found" in status.text


async def test_objects_go_when_their_time_is_over(world: World) -> None:
    run = await submit(world)
    world.kube.end_for_test(run)
    job = world.kube.all_for_test("jobs")[0]
    job["status"]["conditions"][0]["lastTransitionTime"] = OLD
    world.kube.put_for_test(job)
    await world.service.keeper.tend()
    assert world.kube.all_for_test("jobs") == []
    assert (await look(world, run)).status.phase.value == "succeeded"


async def test_what_belongs_to_nothing_is_cleaned_up(world: World, tmp_path: Path) -> None:
    run = await submit(world)
    for name, created in (("run-gone-source", OLD), ("run-new-source", None)):
        metadata = {
            "name": name,
            "namespace": "runs",
            "labels": {"app.kubernetes.io/component": "source", "gpu-workspaces.jupyter.org/job": "x"},
        } | ({"creationTimestamp": created} if created else {})
        world.kube.put_for_test({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await world.store.put("nlp/ada/runs/old/outputs/a", b"x")
    await world.upload(content=OTHER)
    await world.store.put("nlp/ada/runs/new/outputs/a", b"x")
    past = (datetime.now(UTC) - timedelta(days=91)).timestamp()
    sources = list((tmp_path / "store" / "_none/ada/snapshots").iterdir())
    for file in (tmp_path / "store" / "nlp/ada/runs/old/outputs/a", *sources):
        os.utime(file, (past, past))
    await world.service.keeper.clean()
    names = {one["metadata"]["name"] for one in world.kube.all_for_test("configmaps")}
    assert "run-gone-source" not in names
    assert {"run-new-source", f"{run}-source"} <= names
    assert await world.store.get("nlp/ada/runs/old/outputs/a") is None
    kept = {one.path.rpartition("/")[2] for one in await world.store.list("_none/ada/snapshots")}
    assert kept == {f"{DIGEST}.tar.gz", f"{DIGEST}.json"}, "what a run needs stays, whatever its age"
    assert await world.store.get("nlp/ada/runs/new/outputs/a") == b"x"


async def test_a_retry_goes_on_from_the_checkpoints(world: World) -> None:
    run = await submit(world, maxDuration="1h")
    with pytest.raises(RunRefusedError) as error:
        await world.service.actions.retry(ADA, run)
    assert error.value.reason == "not-ended"
    world.kube.end_for_test(run, succeeded=False)
    again = await world.service.actions.retry(ADA, run)
    assert again.created
    assert again.record.lineage == run
    assert (again.record.request["resumeFrom"], again.record.request["maxDuration"]) == (run, "1h")


async def test_nobody_goes_on_from_another_s_run(world: World) -> None:
    run = await submit(world)
    await world.upload("bob")
    with pytest.raises(RunRefusedError) as error:
        await world.service.desk.submit("bob", body(resumeFrom=run))
    assert error.value.reason == "unknown-run"


async def test_a_schedule_is_paused_and_removed(world: World) -> None:
    run = await submit(world, schedule={"cron": "0 6 * * *", "timeZone": "Europe/Berlin"})
    (cron,) = world.kube.all_for_test("cronjobs")
    assert cron["spec"]["jobTemplate"]["metadata"]["annotations"][GATE_ANNOTATION] == GATE
    paused = await world.service.actions.pause(ADA, run, paused=True)
    assert paused.status.text == "Paused."
    await world.service.actions.cancel(ADA, run)
    assert world.kube.all_for_test("cronjobs") == []


async def test_a_run_on_ray_is_not_taken_for_the_job_that_hands_it_over(world: World) -> None:
    run = await submit(world, profile="ray")
    owner = {"kind": "RayJob", "name": run, "uid": "r", "controller": True}
    labels = {"gpu-workspaces.jupyter.org/job": run, "gpu-workspaces.jupyter.org/user": "ada"}
    metadata = {"name": run, "namespace": "runs", "labels": labels, "ownerReferences": [owner]}
    world.kube.put_for_test({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}})
    assert (await look(world, run)).record.kind == "rayjob"
    assert [one.record.kind for one in await world.service.board.mine(ADA)] == ["rayjob"]


async def test_everyone_s_runs_are_for_admins_and_nothing_of_others_is_listed(world: World) -> None:
    run = await submit(world)
    assert [one.record.id for one in await world.service.board.everyones()] == [run]
    assert await world.service.board.mine(Person(name="bob", groups=frozenset({"vision"}))) == ()


# Schedules

DAILY = {"cron": "0 6 * * *", "timeZone": "Europe/Berlin"}


async def test_each_run_of_a_schedule_begins_anew_and_resumes_only_itself(world: World) -> None:
    schedule = await submit(world, schedule=DAILY)
    names = [f"{schedule}-29384756", f"{schedule}-29386196"]
    for name in names:
        start_for_test(world, schedule, name)
    assert [(await look(world, name)).record.lineage for name in names] == names
    assert {base_id(one.record.id) for one in await world.service.board.mine(ADA)} == {schedule}
    world.kube.end_for_test(names[0], succeeded=False)
    again = await world.service.actions.retry(ADA, names[0])
    assert (again.record.lineage, again.record.is_schedule) == (names[0], False)


async def test_a_removed_schedule_is_remembered_and_its_run_goes_on(world: World) -> None:
    schedule = await submit(world, schedule=DAILY)
    start_for_test(world, schedule, f"{schedule}-29384756")
    removed = await world.service.actions.cancel(ADA, schedule)
    assert removed.status.phase.value == "canceled"
    assert world.kube.all_for_test("cronjobs") == []
    assert (await look(world, f"{schedule}-29384756")).status.phase.value == "queued"
    assert (await look(world, schedule)).status.phase.value == "canceled"
    late = await world.service.desk.submit("ada", body(schedule=DAILY))
    assert (late.record.id, late.created) == (schedule, False), "a late repetition does not bring it back"
    anew = await world.service.actions.retry(ADA, schedule)
    assert (anew.created, anew.record.is_schedule, anew.record.lineage) == (True, True, anew.record.id)


async def test_schedules_count_among_what_a_user_may_have(
    world: World, settings: HandoffSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = settings.model_copy(update={"bounds": settings.bounds.model_copy(update={"runs_per_user": 2})})
    monkeypatch.setattr(world.service.desk._judge, "_core", replace(world.service.core, settings=few))
    await submit(world, key="1", schedule=DAILY)
    await submit(world, key="2", schedule=DAILY)
    for again in (False, True):
        if again:
            world.service.core.census._taken = float("-inf")
        with pytest.raises(RunRefusedError) as error:
            await submit(world, key="3", schedule=DAILY)
        assert (error.value.reason, error.value.status) == ("too-many-runs", 429)


# What goes wrong around


async def test_nothing_goes_on_from_the_checkpoints_of_another_team(world: World) -> None:
    world.hub.add_user("eve", groups=["nlp", "vision"])
    await world.upload("eve")
    made = await world.service.desk.submit("eve", body(team="nlp"))
    world.kube.end_for_test(made.record.id, succeeded=False)
    with pytest.raises(RunRefusedError) as error:
        await world.service.desk.submit("eve", body(key="2", team="vision", resumeFrom=made.record.id))
    assert (error.value.reason, error.value.status) == ("other-team", 409)


async def test_a_record_that_cannot_be_read_does_not_hide_the_others(world: World) -> None:
    run = await submit(world)
    await world.service.actions.cancel(ADA, run)
    good = await world.store.get(f"nlp/ada/records/{run}.json")
    assert good is not None
    for name, content in (("a", b"{"), ("b", b"\xff"), ("c", good.replace(b'"canceled"', b'"eaten"'))):
        await world.store.put(f"nlp/ada/records/run-{name}.json", content)
    assert [one.record.id for one in await world.service.board.mine(ADA)] == [run]


async def test_without_kueue_what_there_was_can_still_be_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await submit(world)
    world.kube.end_for_test(run)
    listed = world.kube.list

    async def missing(path: str, **params: str) -> object:
        if path.endswith("/workloads"):
            raise NotFoundError("no such resource", kind="workloads", status=404)
        return await listed(path, **params)

    monkeypatch.setattr(world.kube, "list", missing)
    assert [one.status.phase.value for one in await world.service.board.mine(ADA)] == ["succeeded"]
    await world.service.keeper.tend()
    assert (await look(world, run)).status.phase.value == "succeeded"


async def test_what_a_killed_service_made_for_a_run_goes_with_it_or_without_it(world: World) -> None:
    run = await submit(world, profile="ray")
    kept = next(one for one in world.kube.all_for_test("networkpolicies") if one["metadata"]["name"] == run)
    del kept["metadata"]["ownerReferences"]  # killed before it could say whose it is
    world.kube.put_for_test(kept)
    gone = {
        **kept,
        "metadata": {
            "name": "run-gone",
            "namespace": "runs",
            "creationTimestamp": OLD,
            "labels": {"gpu-workspaces.jupyter.org/job": "run-gone"},
        },
    }
    world.kube.put_for_test(gone)
    await world.service.keeper.clean()
    (policy,) = world.kube.all_for_test("networkpolicies")
    assert (policy["metadata"]["name"], policy["metadata"]["ownerReferences"][0]["name"]) == (run, run)


async def test_a_workspace_is_released_though_the_first_answer_was_lost(world: World) -> None:
    asked = body(server="", release=True)
    before, after = datetime(2026, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
    await world.service.desk.submit("ada", asked)  # it was killed before it could stop the server
    world.hub.add_server("ada", options={"profile": "desk"}, started=before)
    assert not (await world.service.desk.submit("ada", asked, dry_run=True)).released
    assert (await world.service.desk.submit("ada", asked)).released
    assert world.hub.stopped == ["ada/"]
    world.hub.add_server("ada", options={"profile": "desk"}, started=after)
    assert not (await world.service.desk.submit("ada", asked)).released, "one that was started since stays"


# Whose it was, and from where


async def test_who_did_what_with_a_run_is_noted_out_of_their_reach(world: World) -> None:
    run = await submit(world)
    await world.service.actions.cancel(Person(name="root", groups=frozenset()), run, admin=True)
    notes = {
        one.path.rpartition("/")[2].removeprefix(f"{run}-").removesuffix(".json"): json.loads(
            await world.store.get(one.path) or b"{}"
        )
        for one in await world.store.list("_audit")
    }
    assert set(notes) == {"submitted", "canceled", "ended"}
    assert {name: note["actor"] for name, note in notes.items()} == {
        "submitted": "ada",
        "canceled": "root",
        "ended": "",
    }
    for note in notes.values():
        assert (note["user"], note["run"], note["team"], note["entry"]) == ("ada", run, "nlp", "train.py")
        assert note["image"].endswith("1" * 64)
        assert note["source"] == {"type": "snapshot", "sha256": DIGEST}


async def test_the_home_is_mounted_where_it_can_be_and_only_one_s_own_part(world: World) -> None:
    asked = {"source": {"type": "home", "folder": "project"}}
    run = await submit(world, **asked)
    (job,) = world.kube.all_for_test("jobs")
    container = job["spec"]["template"]["spec"]["containers"][0]
    mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
    assert mounts["/home/jovyan"]["subPath"] == "ada"
    told = next(one["value"] for one in container["env"] if one["name"] == "HANDOFF_SPEC")
    assert json.loads(told)["source"] == {"type": "home", "folder": "/home/jovyan/project"}
    with pytest.raises(RunRefusedError) as error:
        await submit(world, key="2", profile="private", **asked)
    assert error.value.reason == "home-not-mountable"
    assert "Send a snapshot" in error.value.text
    assert (await look(world, run)).record.request["source"]["type"] == "home"


async def test_the_page_says_how_old_the_last_checkpoint_is(world: World) -> None:
    run = await submit(world)
    world.kube.condition_for_test(run, "Admitted")
    world.kube.pod_for_test(run)
    now = datetime.now(UTC)
    made = (now - timedelta(minutes=12)).timestamp()
    progress = json.dumps({"checkpoint": made, "cells": 4, "done": 3}).encode()
    await world.store.put(f"nlp/ada/runs/{run}/logs/progress.json", progress)
    seen = await look(world, run)
    view = view_of(seen, now, files={}, log="")
    assert view.checkpoint.startswith("Last checkpoint 12 min")
    assert (view.done, view.cells) == (3, 4)
