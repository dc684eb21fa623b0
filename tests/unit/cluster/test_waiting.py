"""Why a start waits: from pod, events and nodes to one sentence and what follows from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hub_ext.cluster.admission import judge_crash
from hub_ext.cluster.events import Event, read_event
from hub_ext.cluster.images import classify, short_name
from hub_ext.cluster.nodes import read_node
from hub_ext.cluster.pods import read_pod
from hub_ext.cluster.scheduling import Kind, obstacles
from hub_ext.cluster.texts import sentence, span, timed_out
from hub_ext.cluster.waiting import explain
from hub_ext.cluster.waits import Around, Place, Stage, Usual, Wait, WaitReason
from hub_ext.cluster.workloads import read_workload
from hub_ext.quota.verdicts import Fault
from tests.unit.cluster.objects import (
    GPU,
    IMAGE,
    NOW,
    at,
    condition,
    container_status,
    make_event,
    make_node,
    make_pod,
)

NO_ROOM = f"0/4 nodes are available: 4 Insufficient {GPU}. preemption: 0/4 nodes are available: 4 No victims."


def told(pod: dict[str, Any] | None, *events: dict[str, Any], seconds: float = 60, **around: Any) -> Wait:
    read = [one for one in (read_event(event, NOW) for event in events) if one is not None]
    now = NOW + timedelta(seconds=seconds)
    return explain(read_pod(pod) if pod else None, read, Around(now=now, **around))


def waiting_pod(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    waits = container_status(waiting={"reason": reason, "message": message})
    return make_pod(node="n1", status={"containerStatuses": [{**waits, **more}]})


# Stages of a healthy start ----------------------------------------------------------------------------------


def test_a_normal_scale_up_is_no_error() -> None:
    """The scheduler complains first, then the autoscaler adds a node: nothing of that is a warning."""
    unplaced, placed = make_pod(), make_pod(node="n1")
    failed = make_event("FailedScheduling", NO_ROOM, warning=True, exact=True)
    scaling = make_event("TriggeredScaleUp", "pod triggered scale-up: [{gpu-pool 0->1 (max 5)}]", seconds=6)
    again = make_event("FailedScheduling", NO_ROOM, seconds=40, warning=True, exact=True)
    pulling = make_event("Pulling", f'Pulling image "{IMAGE}"', seconds=172, container="notebook")
    pulled = make_event("Pulled", "Successfully pulled image", seconds=410, container="notebook")
    usual = Usual(pull=timedelta(minutes=4), scale_up=timedelta(minutes=3))
    waits = [
        told(unplaced, failed),
        told(unplaced, failed, scaling, again, usual=usual),
        told(placed, failed, scaling, again, pulling, seconds=232, usual=usual),
        told(placed, failed, scaling, again, pulling, pulled, seconds=411),
    ]
    assert [wait.stage for wait in waits] == [Stage.WAITING, Stage.SCALING, Stage.PULLING, Stage.STARTING]
    assert not any(wait.warning or wait.fatal for wait in waits)
    assert waits[0].text == (
        "Waiting for a node with room: too few GPUs on 4 nodes. "
        "It starts as soon as somebody stops a workspace."
    )
    assert waits[1].text == "A node is being added for this workspace, usually 3 min."
    assert waits[2].text == "Fetching the software of the workspace for 60 s, usually 4 min."


def test_before_there_is_anything_to_say() -> None:
    assert told(None).reason is WaitReason.REQUESTED
    assert told(make_pod()).reason is WaitReason.SCHEDULING
    assert told(make_pod(node="n1")).reason is WaitReason.STARTING


def test_a_home_is_attached_before_anything_starts() -> None:
    spec = {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home-ada"}}]}
    assert told(make_pod(node="n1", spec=spec)).stage is Stage.VOLUME
    ready = {"conditions": [condition("PodReadyToStartContainers")]}
    assert told(make_pod(node="n1", spec=spec, status=ready)).stage is Stage.STARTING


def test_init_containers_are_named() -> None:
    spec = {"initContainers": [{"name": "fetch-data"}, {"name": "log", "restartPolicy": "Always"}]}
    running = container_status("fetch-data", running={"startedAt": "2026-11-30T12:00:05Z"})
    wait = told(make_pod(node="n1", spec=spec, status={"initContainerStatuses": [running]}))
    assert (wait.stage, wait.text) == (Stage.PREPARING, "Preparing the workspace (fetch-data).")
    done = [
        container_status("fetch-data", terminated={"exitCode": 0, "reason": "Completed"}),
        container_status("log", running={"startedAt": "2026-11-30T12:00:05Z"}),
    ]
    assert (
        told(make_pod(node="n1", spec=spec, status={"initContainerStatuses": done})).stage is Stage.STARTING
    )


def test_a_running_notebook_waits_for_nothing_but_its_answer() -> None:
    running = container_status(running={"startedAt": "2026-11-30T12:00:05Z"})
    pod = make_pod(node="n1", phase="Running", status={"containerStatuses": [running]})
    assert told(pod).stage is Stage.RUNNING


# Queues -----------------------------------------------------------------------------------------------------


def gated(message: str = "", **labels: str) -> tuple[dict[str, Any], Any]:
    pod = make_pod(
        spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
        labels={"kueue.x-k8s.io/queue-name": "interactive", **labels},
        status={"conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]},
    )
    workload = read_workload(
        {
            "metadata": {"uid": "w", "ownerReferences": [{"uid": "pod-1"}]},
            "spec": {"queueName": "interactive"},
            "status": {
                "conditions": [condition("QuotaReserved", "False", reason="Pending", message=message)]
            },
        }
    )
    return pod, workload


def test_a_wait_in_a_queue_is_named_and_does_not_eat_the_start_timeout() -> None:
    pod, workload = gated(
        f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in "
        "flavor h200, 1 more needed"
    )
    wait = told(pod, seconds=310, workload=workload)
    assert (wait.stage, wait.counts, wait.fatal) == (Stage.QUEUED, False, False)
    assert wait.text == (
        "Waiting in the queue interactive for 1 GPU in flavor h200. It starts by itself when it is its turn."
    )
    assert wait.data == {"queue": "interactive", "flavor": "h200", "more": "1"}


def test_without_sight_of_workloads_the_queue_is_still_named() -> None:
    wait = told(gated()[0])
    assert wait.text.startswith("Waiting in the queue interactive.")


def test_a_queue_that_can_never_hold_it_ends_the_wait() -> None:
    pod, workload = gated(
        f"couldn't assign flavors to pod set main: insufficient quota for {GPU} in flavor h200, previously "
        "considered podsets requests (0) + current podset request (8) > maximum capacity (4)"
    )
    wait = told(pod, workload=workload)
    assert (wait.reason, wait.fatal, wait.fault) == (WaitReason.QUEUE_TOO_SMALL, True, Fault.ADMIN)
    assert "it holds 4 GPUs in all" in wait.text


NO_FLAVORS = "couldn't assign flavors to pod set main: "
TOO_SMALL = (("a100", 6), ("l40", 4))


def test_a_queue_with_several_flavors_is_too_small_only_if_all_of_them_are() -> None:
    sizes = "previously considered podsets requests (0) + current podset request (8) > maximum capacity"
    a100, l40 = (
        f"insufficient quota for {GPU} in flavor {flavor}, {sizes} ({most})" for flavor, most in TOO_SMALL
    )
    never = told(gated()[0], workload=gated(f"{NO_FLAVORS}{a100}, {l40}")[1])
    assert (never.reason, never.fatal) == (WaitReason.QUEUE_TOO_SMALL, True)
    assert "it holds 6 GPUs in all" in never.text
    h200 = f"insufficient unused quota for {GPU} in flavor h200, 2 more needed"
    later = told(gated()[0], workload=gated(f"{NO_FLAVORS}{a100}, {l40}, {h200}")[1])
    assert (later.reason, later.fatal) == (WaitReason.IN_QUEUE, False)
    assert later.text.startswith("Waiting in the queue interactive for 2 GPUs in flavor h200.")


def test_a_queue_that_does_not_count_what_is_asked_for_ends_the_wait() -> None:
    pod, workload = gated(
        "couldn't assign flavors to pod set main: resource nvidia.com/mig-1g.18gb unavailable in ClusterQueue"
    )
    wait = told(pod, workload=workload)
    assert (wait.reason, wait.fatal, wait.fault) == (WaitReason.QUEUE_TOO_SMALL, True, Fault.ADMIN)
    assert "can never hold this workspace: it has no 1g.18gb GPU slices." in wait.text


@pytest.mark.parametrize(
    "message",
    [
        "LocalQueue interactive doesn't exist",
        "ClusterQueue gpus is inactive",
        "ClusterQueue gpus is stopped",
        "LocalQueue interactive is terminating or missing",
    ],
)
def test_a_queue_that_takes_nothing_is_a_matter_for_admins(message: str) -> None:
    pod, workload = gated(message)
    wait = told(pod, workload=workload)
    assert (wait.reason, wait.fatal, wait.warning) == (WaitReason.QUEUE_STOPPED, False, True)


def test_other_gates_are_named() -> None:
    pod = make_pod(spec={"schedulingGates": [{"name": "example.com/approval"}]})
    wait = told(pod)
    assert wait.text == "Held back by the cluster (example.com/approval) until it is released."
    assert not wait.counts


@pytest.mark.parametrize(
    ("kind", "reason", "message", "expected"),
    [
        ("TerminationTarget", "StoppedByKueue", "Preempted to accommodate a workload", WaitReason.PREEMPTED),
        ("DisruptionTarget", "PreemptionByScheduler", "", WaitReason.PREEMPTED),
        ("DisruptionTarget", "DeletionByTaintManager", "", WaitReason.NODE_LOST),
        ("DisruptionTarget", "EvictionByEvictionAPI", "", WaitReason.EVICTED),
        ("Ready", "", "", WaitReason.DELETED),
    ],
)
def test_a_pod_that_goes_says_why(kind: str, reason: str, message: str, expected: WaitReason) -> None:
    going = make_pod(
        node="n1",
        metadata={"deletionTimestamp": "2026-11-30T12:00:30Z"},
        status={"conditions": [condition(kind, reason=reason, message=message)]},
    )
    wait = told(going)
    assert (wait.reason, wait.fatal, wait.again) == (expected, True, True)


# Places -----------------------------------------------------------------------------------------------------


def test_the_scheduler_is_read_node_by_node() -> None:
    message = (
        "0/9 nodes are available: 1 node(s) had untolerated taint(s) {nvidia.com/gpu: present}, "
        "2 Insufficient cpu, 3 Insufficient nvidia.com/gpu, "
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable, "
        "1 Too many pods. preemption: 0/9 nodes are available: 9 Preemption is not helpful."
    )
    assert [(one.kind, one.nodes, one.what[:14]) for one in obstacles(message)] == [
        (Kind.TAINT, 1, "node(s) had un"),
        (Kind.INSUFFICIENT, 2, "cpu"),
        (Kind.INSUFFICIENT, 3, GPU),
        (Kind.SELECTOR, 1, "node(s) didn't"),
        (Kind.CORDONED, 1, "node(s) were u"),
        (Kind.PODS, 1, "Too many pods"),
    ]
    assert obstacles("no nodes available to schedule pods") == ()


@pytest.mark.parametrize(
    "rest",
    [
        "",
        " preemption: 0/4 nodes are available: 4 No preemption victims found for incoming pod.",
        " no new claims to deallocate, preemption: 0/4 nodes are available: 1 Preemption is not helpful.",
        " still not schedulable, preemption: not eligible due to a terminating pod on the nominated node.",
    ],
    ids=["alone", "1.32", "1.34", "claims"],
)
def test_what_follows_about_preemption_and_claims_is_not_about_nodes(rest: str) -> None:
    message = f"0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient {GPU}.{rest}"
    assert [(one.kind, one.what) for one in obstacles(message)][1:] == [(Kind.INSUFFICIENT, GPU)]
    assert len(obstacles(message)) == 2


def fails(message: str, **place: Any) -> Wait:
    event = make_event("FailedScheduling", message, warning=True, exact=True)
    return told(make_pod(), event, place=Place(**place))


def test_a_home_in_another_zone_is_no_lack_of_gpus() -> None:
    message = f"1 node(s) had volume node affinity conflict, 4 Insufficient {GPU}"
    known = fails(message, zones=frozenset({"zone-a", "zone-b"}), home_zones=frozenset({"zone-c"}))
    assert (known.reason, known.fatal) == (WaitReason.ZONE_CONFLICT, True)
    assert known.text.startswith(
        "Your home volume cannot be moved to where this workspace has nodes. Your home is in zone-c; "
        "this workspace's machines are in zone-a and zone-b. Please tell"
    )
    unknown = fails(message)
    assert (unknown.reason, unknown.fatal) == (WaitReason.ZONE_CONFLICT, False), (
        "full nodes may be in its zone"
    )
    assert fails("0/2 nodes are available: 2 node(s) had volume node affinity conflict.").fatal
    here = fails(message, zones=frozenset({"zone-c"}), home_zones=frozenset({"zone-c"}))
    assert not here.fatal


def test_what_fits_no_node_does_not_wait() -> None:
    assert fails(NO_ROOM, nodes=4, offering=0).reason is WaitReason.TOO_LARGE
    assert fails(NO_ROOM, nodes=4, offering=2).reason is WaitReason.NO_ROOM
    assert fails(NO_ROOM, nodes=4, offering=0, scales=True).reason is WaitReason.NO_ROOM
    assert fails(NO_ROOM).reason is WaitReason.NO_ROOM, "nodes cannot be seen"
    away = "0/2 nodes are available: 2 node(s) had untolerated taint(s) {team: other}."
    assert fails(away, nodes=0).reason is WaitReason.NO_MATCHING_NODE
    assert not fails(away, nodes=0, scales=True).fatal


def test_cards_with_a_fault_are_named_and_no_smaller_workspace_is_advised() -> None:
    event = make_event("FailedScheduling", NO_ROOM, warning=True, exact=True)
    place = Place(nodes=1, offering=0, faulty=("n1",))
    fresh, old = (told(make_pod(), event, seconds=seconds, place=place) for seconds in (5, 60))
    assert fresh.reason is old.reason is WaitReason.DEVICE_UNHEALTHY
    assert (fresh.stage, fresh.fatal, old.fatal) == (Stage.WAITING, False, True)
    assert old.text.startswith("The GPU of the node (n1) has a fault and is not given out.")
    others = Place(nodes=2, offering=1, faulty=("n1",))
    assert told(make_pod(), event, place=others).reason is WaitReason.NO_ROOM


def test_the_present_cause_counts_where_the_scheduler_s_event_keeps_an_earlier_one() -> None:
    unbound = "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    series = {"series": {"count": 2, "lastObservedTime": at(3, micro=True)}}
    event = make_event("FailedScheduling", unbound, warning=True, exact=True, **series)
    assert told(make_pod(), event).reason is WaitReason.VOLUME_UNBOUND
    now = condition("PodScheduled", "False", reason="Unschedulable", message=NO_ROOM)
    pod = make_pod(status={"conditions": [now]})
    assert told(pod, event).reason is WaitReason.NO_ROOM
    place = Place(nodes=1, offering=0, faulty=("n1",))
    assert told(pod, event, place=place).reason is WaitReason.DEVICE_UNHEALTHY
    silent = make_pod(status={"conditions": [condition("PodScheduled", "False", reason="Unschedulable")]})
    assert told(silent, event).reason is WaitReason.VOLUME_UNBOUND


def test_labels_of_the_hub_and_of_the_pool_that_no_node_has_together_are_named() -> None:
    pod = make_pod(spec={"nodeSelector": {"pool": "users", "machine": "g4dn.xlarge"}})
    nowhere = (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s) {role: control}, "
        "2 node(s) didn't match Pod's node affinity/selector."
    )
    event = make_event("FailedScheduling", nowhere, warning=True, exact=True)
    fresh, old = (told(pod, event, seconds=seconds, place=Place(nodes=1, offering=1)) for seconds in (5, 60))
    assert fresh.reason is old.reason is WaitReason.NO_MATCHING_NODE
    assert old.text.startswith(
        "No node of the cluster takes this workspace (it needs machine=g4dn.xlarge and pool=users)."
    )
    assert (fresh.fatal, old.fatal) == (False, True)
    scales = told(pod, event, place=Place(nodes=1, offering=1, scales=True))
    assert scales.reason is WaitReason.NO_ROOM
    full = nowhere.replace("2 node(s)", "1 Insufficient cpu, 1 node(s)")
    assert (
        told(pod, make_event("FailedScheduling", full, warning=True, exact=True)).reason is WaitReason.NO_ROOM
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("0/2 nodes are available: 2 Too many pods.", "the nodes hold as many pods as they may"),
        ("0/2 nodes are available: 2 node(s) were unschedulable.", "closed for maintenance"),
        ("0/2 nodes are available: 2 node(s) did something new.", "none takes it at the moment"),
        (f"0/1 nodes are available: 1 Insufficient {GPU}.", "too few GPUs on 1 node."),
        (f"0/4 nodes available: 4 Insufficient {GPU}", "too few GPUs on 4 nodes."),
        (
            (
                "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient ephemeral-storage, "
                "1 Insufficient nvidia.com/mig-1g.18gb."
            ),
            "too few CPU cores, too little disk space and too few 1g.18gb GPU slices on 3 nodes.",
        ),
    ],
)
def test_why_there_is_no_room(message: str, text: str) -> None:
    assert text in fails(message).text


def test_an_autoscaler_that_gives_up_says_why_and_may_change_its_mind() -> None:
    failed = make_event("FailedScheduling", NO_ROOM, warning=True)
    refused = make_event(
        "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", seconds=5
    )
    wait = told(make_pod(), failed, refused)
    assert (wait.reason, wait.fatal) == (WaitReason.NO_SCALE_UP, False)
    assert "(there are as many nodes as there may be)" in wait.text
    assert "max node group size reached" in wait.detail
    later = make_event("Nominated", "Pod should schedule on: nodeclaim/x", seconds=9)
    assert told(make_pod(), failed, refused, later).reason is WaitReason.SCALING_UP


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            (
                "pod didn't trigger scale-up: 1 node(s) didn't match Pod's node affinity/selector, "
                f"2 max node group size reached, 1 Insufficient {GPU}, 1 Insufficient memory"
            ),
            " (there are as many nodes as there may be; too few GPUs and too little memory on a new one)",
        ),
        ("pod didn't trigger scale-up: 2 in backoff after failed scale-up", " (the last try failed)"),
        (
            (
                "Failed adding 1 nodes to group g due to OutOfResource.GCE_STOCKOUT; source errors: "
                "Instance 'n' creation failed: ZONE_RESOURCE_POOL_EXHAUSTED"
            ),
            " (the cloud has no such machine left)",
        ),
        ("pod didn't trigger scale-up: 3 node(s) had untolerated taint(s)", ""),
        ("", ""),
    ],
)
def test_what_an_autoscaler_says_is_put_in_words(message: str, words: str) -> None:
    refused = make_event("NotTriggerScaleUp", message, seconds=5)
    wait = told(make_pod(), make_event("FailedScheduling", NO_ROOM, warning=True), refused)
    assert wait.text.startswith(f"Waiting for room: no node can be added now{words}.")


@pytest.mark.parametrize(("seconds", "fatal"), [(29, False), (30, True)])
def test_a_claim_that_is_missing_may_only_not_be_visible_yet(seconds: int, fatal: bool) -> None:
    event = make_event("FailedScheduling", 'persistentvolumeclaim "datasets" not found', warning=True)
    wait = told(make_pod(), event, seconds=seconds)
    assert (wait.reason, wait.fatal) == (WaitReason.VOLUME_MISSING, fatal)
    assert "A volume of this workspace does not exist: datasets." in wait.text


def test_storage_that_is_being_made_is_waited_for() -> None:
    wait = fails("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    assert (wait.reason, wait.stage, wait.warning) == (WaitReason.VOLUME_UNBOUND, Stage.VOLUME, False)


def test_a_gpu_claim_that_is_refused_is_only_told_by_its_event() -> None:
    event = make_event(
        "FailedResourceClaimCreation",
        'PodResourceClaim gpu: failed to create ResourceClaim: resourceclaims "x" is forbidden: '
        "exceeded quota: q, requested: 1",
        warning=True,
    )
    wait = told(make_pod(), event)
    assert (wait.reason, wait.fatal) == (WaitReason.CLAIM_REFUSED, False)
    assert "(the quota of the namespace is used up)" in wait.text
    assert "exceeded quota: q" in wait.detail


# Nodes ------------------------------------------------------------------------------------------------------

SHARES = (
    "Pod was rejected: Allocate failed due to rpc error: code = Unknown desc = invalid allocation request "
    'for "nvidia.com/gpu.shared": invalid request: maximum request size for shared resources is 1; found 2, '
    "which is unexpected"
)


def refused(reason: str, message: str = "") -> Wait:
    """A pod that the kubelet rejects has neither conditions nor container statuses."""
    return told(make_pod(node="n1", phase="Failed", status={"reason": reason, "message": message}))


def test_more_than_one_share_fails_at_once_and_is_a_mistake_of_the_configuration() -> None:
    wait = refused("UnexpectedAdmissionError", SHARES)
    assert (wait.reason, wait.fatal, wait.again, wait.fault) == (
        WaitReason.SHARE_REFUSED, True, False, Fault.ADMIN
    )  # fmt: skip
    assert "asks for more than one share of a GPU (2), and only single shares are given out" in wait.text
    assert refused(
        "UnexpectedAdmissionError", "request too large, maximum for shared resources is 1"
    ).reason is (WaitReason.SHARE_REFUSED)


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        (
            "UnexpectedAdmissionError",
            "requested number of devices unavailable for nvidia.com/gpu. Requested: 5, Available: 4",
            WaitReason.DEVICE_TAKEN,
        ),
        (
            "UnexpectedAdmissionError",
            "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu",
            WaitReason.DEVICE_UNHEALTHY,
        ),
        ("UnexpectedAdmissionError", "something else", WaitReason.NODE_REFUSED),
        ("OutOfnvidia.com/gpu", "Node didn't have enough resource", WaitReason.NODE_REFUSED),
        ("NodeAffinity", "Predicate NodeAffinity failed", WaitReason.NODE_REFUSED),
        ("Evicted", "The node was low on resource: memory.", WaitReason.EVICTED),
        ("Preempting", "", WaitReason.PREEMPTED),
        ("NodeLost", "", WaitReason.NODE_LOST),
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", WaitReason.NODE_LOST),
    ],
)
def test_what_a_node_refuses_or_ends_may_go_better_next_time(
    reason: str, message: str, expected: WaitReason
) -> None:
    wait = refused(reason, message)
    assert (wait.reason, wait.fatal, wait.again, wait.fault) == (expected, True, True, Fault.CLUSTER)


@pytest.mark.parametrize(
    ("reason", "message", "text"),
    [
        (f"OutOf{GPU}", "Node didn't have enough resource", "take the workspace: too few GPUs left."),
        ("OutOfmemory", "", "take the workspace: too little memory left."),
        ("OutOfpods", "", "take the workspace: it holds as many pods as it may."),
        ("NodeAffinity", "Predicate NodeAffinity failed", "did not take the workspace."),
        (
            "Evicted",
            "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 5Mi.",
            "ended the workspace: the node ran short of disk space.",
        ),
        (
            "Evicted",
            'Usage of EmptyDir volume "scratch" exceeds the limit "5Gi". ',
            "ended the workspace: the workspace used more disk space than it may.",
        ),
    ],
)
def test_what_a_node_lacked_is_put_in_words(reason: str, message: str, text: str) -> None:
    wait = refused(reason, message)
    assert text in wait.text
    assert wait.detail == f"{reason}: {message}".strip(": ")


def test_a_node_that_falls_silent_is_named_and_waited_for() -> None:
    wait = told(make_pod(node="n1"), node=read_node(make_node(ready="False")))
    assert (wait.reason, wait.fatal, wait.warning) == (WaitReason.NODE_SILENT, False, True)


# Images -----------------------------------------------------------------------------------------------------

REF = "registry.example.com/ai/torch:1"


PULLS = {
    WaitReason.IMAGE_NOT_FOUND: [
        f'code = NotFound desc = failed to pull and unpack image "{REF}": {REF}: not found',
        "manifest unknown: manifest unknown",
    ],
    WaitReason.IMAGE_ACCESS: [
        "pull access denied, repository does not exist or may require authorization: insufficient_scope",
        "unexpected status from HEAD request to https://r/v2/x/manifests/1: 401 Unauthorized",
        "unexpected status from HEAD request to https://r/v2/x/manifests/1: 403 Forbidden",
    ],
    WaitReason.REGISTRY_BUSY: ["unexpected status from HEAD request to https://r: 429 Too Many Requests"],
    WaitReason.REGISTRY_UNREACHABLE: [
        "dial tcp 10.0.0.1:443: connect: connection refused",
        "dial tcp: lookup registry.example.com: no such host",
        "httpReadSeeker: failed open: unexpected status from GET request: 503 Service Unavailable",
        "failed to copy: unexpected EOF",
        "something that nobody has seen before",
    ],
    WaitReason.REGISTRY_CERTIFICATE: ["tls: failed to verify certificate: x509: unknown authority"],
    WaitReason.IMAGE_PLATFORM: ["no match for platform in manifest: not found"],
    WaitReason.DISK_FULL: ["write /var/lib/containerd/x: no space left on device"],
}


@pytest.mark.parametrize(
    ("message", "expected"), [(text, reason) for reason, texts in PULLS.items() for text in texts]
)
def test_why_an_image_does_not_come(message: str, expected: WaitReason) -> None:
    heals = expected in {WaitReason.REGISTRY_BUSY, WaitReason.REGISTRY_UNREACHABLE}
    for reason in ("ErrImagePull", "ImagePullBackOff"):
        wait = told(waiting_pod(reason, message))
        assert (wait.reason, wait.fatal, wait.warning) == (expected, not heals, True)


def test_the_cause_is_known_during_the_back_off_too() -> None:
    """Older kubelets say only that they back off; the event of the failure before has the cause."""
    failed = make_event(
        "Failed", f'Failed to pull image "{REF}": {REF}: not found', container="notebook", warning=True
    )
    back_off = make_event("BackOff", f'Back-off pulling image "{REF}"', seconds=20, container="notebook")
    wait = told(waiting_pod("ImagePullBackOff", f'Back-off pulling image "{REF}"'), failed, back_off)
    assert wait.reason is WaitReason.IMAGE_NOT_FOUND
    assert "registry.example.com/ai/torch@abababababab" in wait.text


def test_a_pull_secret_that_does_not_exist_is_named() -> None:
    secret = make_event(
        "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (regcred)"
    )
    wait = told(waiting_pod("ErrImagePull", "401 Unauthorized"), secret)
    assert "a pull secret of it does not exist" in wait.text


@pytest.mark.parametrize(
    ("state", "message", "expected"),
    [
        ("InvalidImageName", "invalid reference format", WaitReason.IMAGE_INVALID),
        ("ErrImageNeverPull", "is not present with pull policy of Never", WaitReason.IMAGE_ABSENT),
    ],
)
def test_images_that_are_never_fetched(state: str, message: str, expected: WaitReason) -> None:
    assert classify(state, message) is expected
    assert told(waiting_pod(state, message)).fatal


def test_a_registry_that_hangs_is_told_by_the_time_it_takes() -> None:
    pulling = make_event("Pulling", container="notebook")
    usual = Usual(pull=timedelta(seconds=40))
    quick = told(waiting_pod("ContainerCreating"), pulling, seconds=100, usual=usual)
    slow = told(waiting_pod("ContainerCreating"), pulling, seconds=130, usual=usual)
    assert quick.text == "Fetching the software of the workspace for 2 min, usually 40 s."
    assert slow.text.endswith("usually 40 s; the registry may be slow or not answer.")
    large = told(
        waiting_pod("ContainerCreating"), pulling, seconds=100, usual=replace(usual, size=12 * 2**30)
    )
    assert large.text == "Fetching the software of the workspace (12 GiB) for 2 min, usually 40 s."
    assert not slow.fatal
    assert slow.data["slow"] is True


def test_other_containers_pulls_do_not_count_for_this_one() -> None:
    pulling = make_event("Pulling", container="sidecar")
    assert told(waiting_pod("ContainerCreating"), pulling).reason is WaitReason.STARTING


# Volumes, network, configuration ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1"', WaitReason.VOLUME_ELSEWHERE),
        ("FailedMount", "MountVolume.SetUp failed: rpc error: timed out", WaitReason.VOLUME_FAILED),
        ("FailedCreatePodSandBox", "failed to set up network", WaitReason.NETWORK_FAILED),
    ],
)
def test_set_up_that_may_heal(reason: str, message: str, expected: WaitReason) -> None:
    failed = make_event(reason, message, warning=True)
    wait = told(waiting_pod("ContainerCreating"), failed)
    assert (wait.reason, wait.fatal, wait.warning) == (expected, False, True)
    healed = make_event("SuccessfulAttachVolume", seconds=30)
    assert told(waiting_pod("ContainerCreating"), failed, healed).reason is WaitReason.STARTING


@pytest.mark.parametrize(("seconds", "fatal"), [(10, False), (31, True)])
def test_a_secret_that_stays_missing_ends_the_wait(seconds: int, fatal: bool) -> None:
    mount = make_event("FailedMount", 'MountVolume.SetUp failed: secret "keys" not found', warning=True)
    wait = told(waiting_pod("ContainerCreating"), mount, seconds=seconds)
    assert (wait.reason, wait.fatal) == (WaitReason.CONFIG_MISSING, fatal)
    error = make_event("Failed", 'Error: secret "keys" not found', container="notebook", warning=True)
    pod = waiting_pod("CreateContainerConfigError", 'secret "keys" not found')
    wait = told(pod, error, seconds=seconds)
    assert (wait.reason, wait.fatal) == (WaitReason.CONFIG_MISSING, fatal)
    assert 'does not exist: secret "keys".' in wait.text


def test_a_runtime_that_cannot_start_the_container() -> None:
    assert told(waiting_pod("CreateContainerError", "exec: not found")).fatal
    assert not told(waiting_pod("RunContainerError", "exec: not found")).fatal
    assert told(waiting_pod("RunContainerError", "exec: not found", restartCount=1)).fatal


def ended(code: int, reason: str = "Error", restarts: int = 0) -> dict[str, Any]:
    status = container_status(terminated={"exitCode": code, "reason": reason})
    return make_pod(
        node="n1", phase="Running", status={"containerStatuses": [{**status, "restartCount": restarts}]}
    )


def test_ends_while_starting() -> None:
    once = told(ended(1))
    assert (once.reason, once.fatal) == (WaitReason.CRASHED, False)
    assert "(exit code 1)" in once.text
    assert told(ended(1, restarts=1)).fatal
    killed = told(ended(137, "OOMKilled"))
    assert (killed.reason, killed.fatal, killed.fault) == (WaitReason.OUT_OF_MEMORY, True, Fault.USER)
    assert told(ended(0)).reason is WaitReason.CRASHED, "a server that just ends has not started"


def test_a_loop_keeps_the_reason_of_its_last_end() -> None:
    looping = waiting_pod(
        "CrashLoopBackOff", "back-off 10s", restartCount=2,
        lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    )  # fmt: skip
    assert told(looping).reason is WaitReason.OUT_OF_MEMORY


def test_a_helper_that_has_done_its_work_is_no_crash() -> None:
    helper = container_status("helper", terminated={"exitCode": 0, "reason": "Completed"})
    spec = {"containers": [{"name": "notebook"}, {"name": "helper"}]}
    pod = make_pod(node="n1", spec=spec, status={"containerStatuses": [helper]})
    assert told(pod).reason is WaitReason.STARTING
    assert judge_crash(read_pod(pod).containers[1]) is None


# Texts ------------------------------------------------------------------------------------------------------


def test_every_reason_has_a_sentence() -> None:
    for reason in WaitReason:
        text = sentence(reason)
        assert text.endswith(".")
        assert text[0].isupper()


def test_a_wait_as_json_is_plain() -> None:
    wait = told(waiting_pod("ErrImagePull", "x: not found")).as_dict()
    assert wait["reason"] == "image-not-found"
    assert wait["data"] == {"image": IMAGE}
    assert wait["fatal"] is True
    assert wait["countsTowardTimeout"] is True


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (45, "45 s"),
        (89, "89 s"),
        (90, "2 min"),
        (3600, "60 min"),
        (5399, "90 min"),
        (5400, "1 h 30 min"),
        (7199, "2 h 00 min"),
        (90000, "25 h 00 min"),
    ],
)
def test_times_are_written_roughly(seconds: float, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


def test_the_end_of_a_wait_does_not_promise_another_try() -> None:
    text = timed_out(sentence(WaitReason.VOLUME_ELSEWHERE))
    assert text == (
        "The workspace did not start in time. Your storage is still attached to another node. "
        "This can take some minutes."
    )


def test_digests_are_shortened() -> None:
    assert short_name(IMAGE) == "registry.example.com/ai/torch@abababababab"
    assert short_name(REF) == REF


def test_an_event_without_a_pod_is_none() -> None:
    assert read_event({"metadata": {"uid": "x"}, "involvedObject": {"kind": "Node", "uid": "n"}}, NOW) is None
    event = read_event(make_event("Pulling"), NOW)
    assert isinstance(event, Event)
