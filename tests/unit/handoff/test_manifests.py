"""The objects of runs: complete, within `restricted`, and with nothing in them that a user wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml

from hub_ext.catalog.model import Catalog
from services.job_handoff.ids import ANNOTATION_RECORD, base_id, request_hash, run_id
from services.job_handoff.manifest.build import build_run, build_runner_map, build_source_map
from services.job_handoff.manifest.rayjob import RayVerdict, judge_ray_job
from services.job_handoff.manifest.site import Site
from services.job_handoff.manifest.trainjob import accelerators, complete_resources
from services.job_handoff.plan import Plan
from services.job_handoff.record import parse_record
from services.job_handoff.settings import HandoffSettings

from .conftest import DIGEST, NOW

Make = Callable[..., Plan]


@pytest.fixture
def build(catalog: Catalog, settings: HandoffSettings, plan: Make) -> Callable[..., dict[str, Any]]:
    def make(source_map: str = "", told: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
        site = Site(
            settings=settings.model_copy(update=told or {}),
            runner_map="handoff-runner-x",
            source_map=source_map,
            token="the-token",
            submitted=NOW,
        )
        return build_run(catalog, plan(**changes), site)

    return make


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("job-cpu", {"source_map": "run-x-source"}),
        ("job-card", {"profile": "card", "choices": {"cards": "four"}, "retries": 2}),
        ("job-slice", {"profile": "slice"}),
        ("job-share", {"profile": "share"}),
        ("trainjob-card", {"profile": "card", "kind": "trainjob", "nodes": 2}),
        ("rayjob", {"profile": "ray", "nodes": 3}),
        ("cronjob", {"schedule": {"cron": "0 6 * * 1-5", "timeZone": "Europe/Berlin"}}),
    ],
)
def test_objects_are_as_they_were_looked_at(
    build: Callable[..., dict[str, Any]],
    golden: Callable[[str, str], None],
    name: str,
    changes: dict[str, Any],
) -> None:
    golden(f"handoff/{name}.yaml", yaml.safe_dump(build(**changes), sort_keys=False, width=110))


def templates(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every pod that an object leads to."""
    spec = obj["spec"]
    match obj["kind"]:
        case "Job":
            yield spec["template"]["spec"]
        case "CronJob":
            yield spec["jobTemplate"]["spec"]["template"]["spec"]
        case "TrainJob":
            for patch in spec["runtimePatches"]:
                for job in patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]:
                    yield job["template"]["spec"]["template"]["spec"]
        case "RayJob":
            cluster = spec["rayClusterSpec"]
            yield cluster["headGroupSpec"]["template"]["spec"]
            yield from (one["template"]["spec"] for one in cluster.get("workerGroupSpecs", ()))
            yield spec["submitterPodTemplate"]["spec"]


KINDS = [
    {},
    {"profile": "card"},
    {"profile": "card", "kind": "trainjob", "nodes": 4},
    {"profile": "ray", "nodes": 2},
    {"schedule": {"cron": "* * * * *"}},
]


@pytest.mark.parametrize("changes", KINDS)
def test_every_pod_is_within_restricted(
    build: Callable[..., dict[str, Any]], changes: dict[str, Any]
) -> None:
    for spec in templates(build(**changes)):
        assert spec["serviceAccountName"] == "handoff-runner"
        assert spec.get("automountServiceAccountToken", False) is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["runAsUser"] > 0
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        allowed = {"configMap", "emptyDir", "persistentVolumeClaim", "ephemeral", "projected"}
        for volume in spec.get("volumes", ()):
            assert set(volume) - {"name"} <= allowed
        assert not spec.get("hostNetwork")


def test_only_claims_that_exist_there_are_mounted(build: Callable[..., dict[str, Any]]) -> None:
    (spec,) = templates(build())
    claims = [
        one["persistentVolumeClaim"]["claimName"] for one in spec["volumes"] if "persistentVolumeClaim" in one
    ]
    assert claims == ["datasets"]


def env(obj: dict[str, Any]) -> dict[str, str]:
    (spec,) = templates(obj)
    return {one["name"]: one.get("value", "") for one in spec["containers"][0]["env"]}


def test_what_a_user_writes_stays_a_value(build: Callable[..., dict[str, Any]]) -> None:
    nasty = "$(HANDOFF_TOKEN) {user} \n- x: y"
    entry = {"type": "script", "path": "a.py", "arguments": [nasty]}
    obj = build(environment={"APP_X": nasty}, entry=entry, name="<b>$(x)</b>")
    assert env(obj)["APP_X"] == nasty.replace("$", "$$")
    assert json.loads(env(obj)["HANDOFF_SPEC"].replace("$$", "$"))["entry"]["arguments"] == [nasty]
    (spec,) = templates(obj)
    assert nasty not in json.dumps(spec["containers"][0]["command"])
    labels = {**obj["metadata"]["labels"], **obj["spec"]["template"]["metadata"]["labels"]}
    assert not any("<b>" in value or "$" in value for value in labels.values())


def test_a_pod_without_a_gpu_sees_none(build: Callable[..., dict[str, Any]]) -> None:
    assert env(build())["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in env(build(profile="card"))


def test_the_record_on_the_object_reads_back(build: Callable[..., dict[str, Any]]) -> None:
    record = parse_record(build()["metadata"]["annotations"][ANNOTATION_RECORD])
    assert (record.user, record.team, record.profile) == ("ada", "nlp", "cpu@1")
    request = record.read_request()
    spans = build(maxDuration="90m", retries=2, schedule={"cron": "* * * * *"})["metadata"]["annotations"]
    again = parse_record(spans[ANNOTATION_RECORD]).read_request()
    assert (again.max_duration, again.retries) == (timedelta(minutes=90), 2)
    assert request.source.sha256 == DIGEST  # type: ignore[union-attr]
    assert request.key is None


def test_checkpoints_go_straight_to_the_team_s_bucket_where_it_has_keys(
    build: Callable[..., dict[str, Any]], catalog: Catalog
) -> None:
    assert env(build())["CHECKPOINT_URI"] == "file:///workspace/checkpoints/"
    obj = build(told={"team_secrets": {"nlp": "s3-nlp"}})
    (spec,) = templates(obj)
    assert spec["containers"][0]["envFrom"] == [{"secretRef": {"name": "s3-nlp"}}]


@pytest.mark.parametrize("count", [("one", 1), ("four", 4)])
def test_processes_of_a_node_are_its_cards(
    build: Callable[..., dict[str, Any]], count: tuple[str, int]
) -> None:
    obj = build(profile="card", kind="trainjob", choices={"cards": count[0]})
    trainer = obj["spec"]["trainer"]
    assert trainer["numProcPerNode"] == count[1]
    for side in ("requests", "limits"):
        assert set(trainer["resourcesPerNode"][side]) == {"cpu", "memory", "nvidia.com/gpu"}


def test_slices_and_shares_have_one_process(build: Callable[..., dict[str, Any]]) -> None:
    for profile in ("slice", "share"):
        assert build(profile=profile, kind="trainjob")["spec"]["trainer"]["numProcPerNode"] == 1


def test_resources_of_a_training_are_complete_whatever_was_raised() -> None:
    runtime = {"limits": {"nvidia.com/gpu": "4", "memory": "64Gi"}}
    more = complete_resources(runtime, {"requests": {"memory": "128Gi"}})
    assert more["limits"] == more["requests"] == {"nvidia.com/gpu": "4", "memory": "128Gi"}
    assert accelerators(more["limits"]) == 4
    asked = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}
    only = complete_resources({}, {"requests": asked})
    assert only["limits"]["nvidia.com/gpu"] == only["requests"]["nvidia.com/gpu"] == "1"
    kept = complete_resources({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, {})
    assert (kept["requests"]["cpu"], kept["limits"]["cpu"]) == ("1", "2")


@pytest.mark.parametrize(
    ("spec", "verdict"),
    [
        ({"shutdownAfterJobFinishes": False}, RayVerdict.ERROR),
        ({}, RayVerdict.ERROR),
        ({"shutdownAfterJobFinishes": True, "clusterSelector": {"ray.io/cluster": "c"}}, RayVerdict.ERROR),
        ({"shutdownAfterJobFinishes": False, "ttlSecondsAfterFinished": 600}, RayVerdict.ERROR),
        (
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": {"workerGroupSpecs": [{}] * 18}},
            RayVerdict.ERROR,
        ),
        (
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": {"workerGroupSpecs": [{}] * 17}},
            RayVerdict.OK,
        ),
        (
            {"shutdownAfterJobFinishes": True, "rayClusterSpec": {"enableInTreeAutoscaling": True}},
            RayVerdict.CONDITIONAL,
        ),
        ({"shutdownAfterJobFinishes": True, "rayClusterSpec": {"workerGroupSpecs": [{}] * 2}}, RayVerdict.OK),
    ],
)
def test_ray_jobs_that_kueue_can_hold(spec: dict[str, Any], verdict: RayVerdict) -> None:
    assert judge_ray_job({"kind": "RayJob", "spec": spec})[0] is verdict


def test_our_own_ray_jobs_can_be_held(build: Callable[..., dict[str, Any]]) -> None:
    assert judge_ray_job(build(profile="ray", nodes=3)) == (RayVerdict.OK, "")


# Names


def test_names_are_valid_for_every_kind_and_say_nothing_of_the_user() -> None:
    name = run_id("ada@example.org", "k")
    assert len(name) <= 47, "KubeRay and Kueue append to it"
    assert name[0].isalpha()
    assert name == name.lower()
    assert "ada" not in name


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ab", "c"), ("a", "bc")),
        (("Alice", "k"), ("alice", "k")),
        (("a", "k"), ("a", "K")),
        (("a-b", ""), ("a", "-b")),
    ],
)
def test_two_users_never_share_a_name(first: tuple[str, str], second: tuple[str, str]) -> None:
    assert run_id(*first) != run_id(*second)


def test_a_run_of_a_schedule_knows_its_schedule() -> None:
    name = run_id("ada", "k")
    assert base_id(f"{name}-29384756") == base_id(name) == name


def test_the_hash_of_a_request_does_not_depend_on_order() -> None:
    assert request_hash({"a": 1, "b": {"c": 2}}) == request_hash({"b": {"c": 2}, "a": 1})
    assert request_hash({"a": 1}) != request_hash({"a": 2})


def test_config_maps_are_named_by_what_is_in_them() -> None:
    first, second = build_runner_map("runs", {"a.py": "1"}), build_runner_map("runs", {"a.py": "2"})
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert build_source_map("runs", "run-x", b"x")["immutable"] is True


def test_time_limits_count_in_kueue_and_have_kubernetes_as_a_guard(
    build: Callable[..., dict[str, Any]],
) -> None:
    obj = build(maxDuration="2h")
    assert obj["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] == "7200"
    assert obj["spec"]["activeDeadlineSeconds"] > timedelta(hours=2).total_seconds()
