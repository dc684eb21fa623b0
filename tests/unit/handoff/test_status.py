"""How a run stands: one phase, one reason and one sentence, from what the cluster shows."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from hub_ext.cluster import texts as waits
from hub_ext.cluster.pods import read_pod
from hub_ext.cluster.waits import WaitReason
from hub_ext.quota import texts as quota
from hub_ext.quota.verdicts import Reason
from services.job_handoff.ids import ANNOTATION_CANCELED, ANNOTATION_STUCK
from services.job_handoff.reasons import RunReason
from services.job_handoff.status import Observed, Phase, judge
from services.job_handoff.texts import of_run, sentence
from services.job_handoff.workload import read_queue_state

from .conftest import NOW

STAMP = "2026-11-30T08:50:00Z"


def obj(kind: str = "Job", status: dict[str, Any] | None = None, **notes: str) -> dict[str, Any]:
    metadata = {"name": "run-x", "uid": "u", "annotations": notes, "creationTimestamp": STAMP}
    return {"kind": kind, "metadata": metadata, "status": status or {}}


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": STAMP}


def workload(*conditions: dict[str, Any], active: bool = True) -> dict[str, Any]:
    metadata = {"name": "job-run-x", "creationTimestamp": STAMP}
    return {"metadata": metadata, "spec": {"active": active}, "status": {"conditions": list(conditions)}}


ADMITTED = (condition("QuotaReserved"), condition("Admitted"))


def pod(phase: str = "Running", name: str = "run-x-1", **state: Any) -> Any:
    container = state or {"running": {"startedAt": STAMP}}
    raw = {
        "metadata": {
            "name": name,
            "namespace": "runs",
            "uid": name,
            "creationTimestamp": STAMP,
            "labels": {},
        },
        "spec": {"containers": [{"name": "main", "image": "i"}], "nodeName": "n"},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": container}]},
    }
    return read_pod(raw)


def ended(code: int, reason: str = "Error", word: dict[str, Any] | None = None) -> Any:
    message = json.dumps(word) if word else ""
    facts = {"exitCode": code, "reason": reason, "message": message, "startedAt": STAMP, "finishedAt": STAMP}
    return pod("Failed", terminated=facts)


FAILED = {"conditions": [condition("Failed", reason="BackoffLimitExceeded", message="Job has reached …")]}


@pytest.mark.parametrize(
    ("seen", "phase", "reason"),
    [
        (Observed(obj=obj(), now=NOW), Phase.QUEUED, "queued"),
        (Observed(obj=obj(), now=NOW, workload=workload()), Phase.QUEUED, "queued"),
        (Observed(obj=obj(), now=NOW, workload=workload(*ADMITTED)), Phase.STARTING, "admitted"),
        (Observed(obj=obj(), now=NOW, workload=workload(*ADMITTED), pods=(pod(),)), Phase.RUNNING, "running"),
        (
            Observed(
                obj=obj(),
                now=NOW,
                workload=workload(*ADMITTED),
                pods=(pod("Pending", waiting={"reason": "ErrImagePull", "message": "not found"}),),
            ),
            Phase.STARTING,
            "image-not-found",
        ),
        (
            Observed(obj=obj(status={"conditions": [condition("Complete")]}), now=NOW),
            Phase.SUCCEEDED,
            "succeeded",
        ),
        (Observed(obj=obj(status=FAILED), now=NOW, pods=(ended(3),)), Phase.FAILED, "program-failed"),
        (
            Observed(obj=obj(status=FAILED), now=NOW, pods=(ended(137, "OOMKilled"),)),
            Phase.FAILED,
            "out-of-memory",
        ),
        (
            Observed(obj=obj(status=FAILED), now=NOW, pods=(ended(1, word={"reason": "gpu-out-of-memory"}),)),
            Phase.FAILED,
            "gpu-out-of-memory",
        ),
        (
            Observed(
                obj=obj(status=FAILED),
                now=NOW,
                pods=(ended(42, word={"reason": "kernel-missing", "message": "kernels: python3"}),),
            ),
            Phase.FAILED,
            "kernel-missing",
        ),
        *(
            (
                Observed(
                    obj=obj(kind, FAILED),
                    now=NOW,
                    pods=(ended(3), ended(143, word={"reason": "ended-by-cluster"})),
                ),
                Phase.FAILED,
                reason,
            )
            for kind, reason in (("Job", "ended-by-cluster"), ("TrainJob", "program-failed"))
        ),
        (
            Observed(
                obj=obj("TrainJob", FAILED),
                now=NOW,
                pods=(ended(143, word={"reason": "ended-by-cluster"}),),
                last_word={"reason": "program-failed", "exit": 3},
            ),
            Phase.FAILED,
            "program-failed",
        ),
        (
            Observed(obj=obj(status=FAILED), now=NOW, last_word={"reason": "source-lost", "message": "x"}),
            Phase.FAILED,
            "source-lost",
        ),
        (Observed(obj=obj(status=FAILED), now=NOW), Phase.FAILED, "failed"),
        (
            Observed(obj=obj(status=FAILED), now=NOW, last_word={"reason": "succeeded"}),
            Phase.FAILED,
            "failed",
        ),
        (
            Observed(
                obj=obj(status={"conditions": [condition("Failed", reason="DeadlineExceeded")]}), now=NOW
            ),
            Phase.FAILED,
            "deadline",
        ),
        (Observed(obj=obj(**{ANNOTATION_CANCELED: STAMP}), now=NOW), Phase.CANCELED, "canceled"),
        (
            Observed(
                obj=obj(**{ANNOTATION_STUCK: "volume-elsewhere"}), now=NOW, workload=workload(active=False)
            ),
            Phase.FAILED,
            "stuck",
        ),
        (
            Observed(
                obj=obj(),
                now=NOW,
                workload=workload(
                    condition("Evicted", reason="DeactivatedDueToMaximumExecutionTimeExceeded"), active=False
                ),
            ),
            Phase.FAILED,
            "deadline",
        ),
        (Observed(obj=obj(), now=NOW, workload=workload(active=False)), Phase.FAILED, "deactivated"),
        (
            Observed(
                obj=obj("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}), now=NOW
            ),
            Phase.SUCCEEDED,
            "succeeded",
        ),
        (
            Observed(obj=obj("RayJob", {"jobDeploymentStatus": "Complete", "jobStatus": "FAILED"}), now=NOW),
            Phase.FAILED,
            "failed",
        ),
        (
            Observed(
                obj=obj("RayJob", {"jobDeploymentStatus": "ValidationFailed", "message": "name"}), now=NOW
            ),
            Phase.FAILED,
            "refused",
        ),
        (
            Observed(obj=obj("TrainJob", {"conditions": [condition("Complete")]}), now=NOW),
            Phase.SUCCEEDED,
            "succeeded",
        ),
    ],
)
def test_a_run_stands(seen: Observed, phase: Phase, reason: str) -> None:
    status = judge(seen)
    assert (status.phase, status.reason) == (phase, reason)
    assert status.text.endswith(".")
    assert "workspace" not in status.text
    assert json.dumps(status.as_dict())


SET = "couldn't assign flavors to pod set main: "
FULL = "insufficient unused quota for cpu in flavor b, 1 more needed"


@pytest.mark.parametrize(
    ("reason", "message", "found"),
    [
        ("WaitingForQuota", "", "waiting-for-quota"),
        ("ExceedsMaxQuota", "", "exceeds-queue"),
        ("NoMatchingFlavor", "", "no-matching-flavor"),
        ("TopologyPlacementFailed", "", "topology"),
        ("WaitingForPreemptedWorkloads", "", "waiting-for-preempted"),
        ("WaitingForPodsReady", "", "waiting-for-pods"),
        ("Misconfigured", "", "queue-misconfigured"),
        ("OnHold", "", "held"),
        ("AdmissionGated", "", "held"),
        (
            "Pending",
            "couldn't assign flavors: insufficient unused quota for cpu in flavor f, 1 more needed",
            "waiting-for-quota",
        ),
        (
            "Pending",
            "couldn't assign flavors: insufficient quota for cpu in flavor f, > maximum capacity (4)",
            "exceeds-queue",
        ),
        (
            "Pending",
            f"{SET}insufficient quota for cpu in flavor a, > maximum capacity (4), {FULL}",
            "waiting-for-quota",
        ),
        (
            "Pending",
            f"{SET}{FULL}. Pending the preemption of 2 workload(s)",
            "waiting-for-preempted",
        ),
        ("Inadmissible", "ClusterQueue preempt-topology not found", "queue-misconfigured"),
        ("Pending", "resource cpu unavailable in ClusterQueue", "queue-misconfigured"),
        ("Inadmissible", "LocalQueue nlp doesn't exist", "queue-misconfigured"),
        ("Inadmissible", "ClusterQueue nlp is inactive", "queue-stopped"),
        ("Pending", "something nobody has said before", "queued"),
    ],
)
def test_both_ways_in_which_kueue_says_why_are_read(reason: str, message: str, found: str) -> None:
    waits = workload(condition("QuotaReserved", "False", reason, message))
    status = judge(Observed(obj=obj(), now=NOW, workload=waits))
    assert (status.phase, status.reason) == (Phase.QUEUED, found)
    assert status.detail == message


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("Preempted", "preempted"),
        ("PodsReadyTimeout", "requeued"),
        ("AdmissionCheck", "admission-check"),
        ("ClusterQueueStopped", "queue-stopped"),
        ("NodeFailures", "requeued"),
        ("SomethingNew", "requeued"),
    ],
)
def test_evictions_are_named(word: str, found: str) -> None:
    waits = workload(condition("Evicted", reason=word), condition("QuotaReserved", "False", "Pending"))
    assert judge(Observed(obj=obj(), now=NOW, workload=waits)).reason == found


def test_preemptions_stay_counted_when_the_run_is_back() -> None:
    back = workload(*ADMITTED, condition("Preempted", "False", "QuotaReserved"))
    assert read_queue_state(back).preemptions == 1
    counted = workload(*ADMITTED)
    counted["status"]["schedulingStats"] = {"evictions": [{"reason": "Preempted", "count": 3}]}
    assert read_queue_state(counted).preemptions == 3


@pytest.mark.parametrize(
    ("ahead", "words"), [(0, "the next one"), (1, "1 run is ahead"), (7, "7 runs are ahead")]
)
def test_the_place_in_the_queue_is_told(ahead: int, words: str) -> None:
    status = judge(Observed(obj=obj(), now=NOW, workload=workload(), position=ahead))
    assert words in status.text
    assert status.position == ahead


def test_a_place_in_the_queue_is_no_news_for_one_that_runs() -> None:
    seen = Observed(obj=obj(), now=NOW, workload=workload(*ADMITTED), pods=(pod(),), position=3)
    assert judge(seen).position is None


@pytest.mark.parametrize("message", ["", "{", "[]", '{"reason": "nonsense"}', '{"reason": 3}', "Traceback …"])
def test_what_is_no_word_of_the_runner_is_only_text(message: str) -> None:
    facts = {"exitCode": 1, "reason": "Error", "message": message, "startedAt": STAMP, "finishedAt": STAMP}
    status = judge(Observed(obj=obj(status=FAILED), now=NOW, pods=(pod("Failed", terminated=facts),)))
    assert status.reason == "program-failed"


def test_every_reason_has_a_sentence() -> None:
    for reason in RunReason:
        assert sentence(reason).endswith(".")
    assert "(kernels: python3)" in sentence(RunReason.KERNEL_MISSING, "kernels: python3")


def test_of_several_pods_the_one_that_failed_says_why() -> None:
    well = {
        "exitCode": 0,
        "message": json.dumps({"reason": "succeeded"}),
        "startedAt": STAMP,
        "finishedAt": STAMP,
    }
    pods = (
        ended(3, word={"reason": "program-failed", "exit": 3}),
        pod("Succeeded", "run-x-2", terminated=well),
    )
    failed = obj("TrainJob", {"conditions": [condition("Failed", reason="JobsFailed")]})
    status = judge(Observed(obj=failed, now=NOW, pods=pods))
    assert (status.reason, "exit status 3" in status.text) == ("program-failed", True)


@pytest.mark.parametrize("where", ["pod", "store"])
def test_results_that_are_not_kept_are_told_of_a_run_that_is_done(where: str) -> None:
    word = {"reason": "results-not-kept", "message": "outputs/a: You keep 2 MiB", "exit": 0}
    well = {"exitCode": 0, "message": json.dumps(word), "startedAt": STAMP, "finishedAt": STAMP}
    done = obj("TrainJob", {"conditions": [condition("Complete")]})
    pods = (pod("Succeeded", terminated=well), pod("Succeeded", "run-x-2", terminated={"exitCode": 0}))
    found = {"pods": pods} if where == "pod" else {"last_word": word}
    status = judge(Observed(obj=done, now=NOW, **found))
    assert (status.phase, status.reason) == (Phase.SUCCEEDED, "results-not-kept")
    assert "(outputs/a: You keep 2 MiB)" in status.text


def test_a_new_pod_decides_over_an_old_one() -> None:
    first, second = ended(1), pod(name="run-x-2")
    running = judge(Observed(obj=obj(), now=NOW, workload=workload(*ADMITTED), pods=(first, second)))
    assert (running.phase, running.attempts) == (Phase.RUNNING, 2)
    assert NOW - (running.started or NOW) == timedelta(minutes=10)


SAID = (
    Reason.LIMITS_REQUIRED,
    Reason.MISSING_OBJECT,
    Reason.QUOTA_ABSENT,
    Reason.QUOTA_CONFLICT,
    Reason.LIMIT_RANGE,
)


@pytest.mark.parametrize("form", [" {}", " ({})", ": {}", ': secret "{}"'])
def test_names_stay_as_they_are_where_sentences_speak_of_runs(form: str) -> None:
    for name in ("r.io/workspace/x:1", "workspace-home", "the/workspace", "a.workspace", "workspace"):
        what, plain = form.format(name), form.format("NAME")
        told = [(waits.sentence(one, what), waits.sentence(one, plain)) for one in WaitReason]
        told += [(quota.refused(one, what), quota.refused(one, plain)) for one in SAID]
        for text, other in told:
            assert "workspace" not in of_run(other).lower()
            assert of_run(text) == of_run(other).replace("NAME", name)
    assert of_run("No quota covers workspaces of this priority.") == "No quota covers runs of this priority."
