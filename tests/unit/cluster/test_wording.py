"""What nodes, schedulers, queues and autoscalers say, whatever things are called that they speak of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.cluster.autoscaler import in_words
from hub_ext.cluster.events import read_event
from hub_ext.cluster.kueue_says import Cause, read_saying
from hub_ext.cluster.pods import read_pod
from hub_ext.cluster.scheduling import Kind, obstacles
from hub_ext.cluster.waiting import explain
from hub_ext.cluster.waits import Around, Wait, WaitReason
from tests.unit.cluster.legal_names import dotted, labels, resources
from tests.unit.cluster.objects import NOW, condition, make_event, make_pod

FEW = settings(max_examples=40, deadline=None)


def ended(reason: str, message: str) -> Wait:
    pod = make_pod(node="n1", phase="Failed", status={"reason": reason, "message": message})
    return explain(read_pod(pod), (), Around(now=NOW))


def going(kind: str, reason: str, message: str) -> Wait:
    pod = make_pod(
        node="n1",
        metadata={"deletionTimestamp": "2026-11-30T12:00:30Z"},
        status={"conditions": [condition(kind, reason=reason, message=message)]},
    )
    return explain(read_pod(pod), (), Around(now=NOW))


def waits(reason: str, message: str, *, node: str = "n1") -> Wait:
    event = read_event(make_event(reason, message, warning=True), NOW)
    assert event is not None
    return explain(read_pod(make_pod(node=node)), [event], Around(now=NOW))


# Nodes ------------------------------------------------------------------------------------------------------

PLUGIN = "rpc error: code = Unknown desc = "
ONE = "maximum request size for shared resources is 1"
ALLOCATED = {
    WaitReason.SHARE_REFUSED: [
        f'{PLUGIN}invalid allocation request for "{{resource}}": invalid request: {ONE}; found 2',
        f"{PLUGIN}request for '{{resource}}: 2' too large: {ONE}",
    ],
    WaitReason.DEVICE_UNHEALTHY: [
        "no healthy devices present; cannot allocate unhealthy devices {resource}",
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}",
    ],
    WaitReason.DEVICE_TAKEN: [
        "requested number of devices unavailable for {resource}. Requested: 5, Available: 4",
    ],
    WaitReason.NODE_REFUSED: [
        f"{PLUGIN}{{resource}} is busy; no healthy devices present; try again",
        "containers failed: requested number of devices unavailable for {resource}",
    ],
}


@FEW
@given(st.sampled_from([(why, said) for why, texts in ALLOCATED.items() for said in texts]), resources)
def test_devices_that_are_not_given(told: tuple[WaitReason, str], resource: str) -> None:
    said = told[1].replace("{resource}", resource)
    message = f"Pod was rejected: Allocate failed due to {said}, which is unexpected"
    assert ended("UnexpectedAdmissionError", message).reason is told[0]


@FEW
@given(labels, st.sampled_from(["memory", "ephemeral-storage", "inodes", "pids"]))
def test_what_the_node_ran_short_of(container: str, resource: str) -> None:
    short = f"The node was low on resource: {resource}. Threshold quantity: 100Mi, available: 28Ki. "
    more = f"Container {container} was using 64Mi, request is 0, has larger consumption of {resource}. "
    own = f'Usage of EmptyDir volume "{container}" exceeds the limit "5Gi". '
    limit = f'Container {container} exceeded its local ephemeral storage limit "1Gi". '
    assert "the node ran short of" in ended("Evicted", short + more).text
    assert "the workspace used more disk space than it may" in ended("Evicted", own).text
    assert "the workspace used more disk space than it may" in ended("Evicted", limit).text


@FEW
@given(labels, dotted)
def test_only_who_preempts_says_so(container: str, queue: str) -> None:
    short = "The node was low on resource: memory. "
    using = f"{short}Container {container} was using 64Mi, request is 0, has larger consumption of memory. "
    assert going("DisruptionTarget", "TerminationByKubelet", using).reason is WaitReason.EVICTED
    critical = "Pod was preempted by Kubelet to accommodate a critical pod."
    assert going("DisruptionTarget", "TerminationByKubelet", critical).reason is WaitReason.PREEMPTED
    higher = f"{queue}: preempting to accommodate a higher priority pod"
    assert going("DisruptionTarget", "PreemptionByScheduler", higher).reason is WaitReason.PREEMPTED
    made_room = (
        f"Preempted to accommodate a workload (UID: u) due to prioritization; preemptor path: /{queue}"
    )
    assert going("TerminationTarget", "WorkloadEvicted", made_room).reason is WaitReason.PREEMPTED
    checks = f"Evicted due to admission check {queue} being in retry"
    assert going("TerminationTarget", "WorkloadEvicted", checks).reason is WaitReason.DELETED


@FEW
@given(dotted)
def test_set_up_of_volumes(name: str) -> None:
    elsewhere = f'Multi-Attach error for volume "{name}" Volume is already used by pod(s) {name}'
    assert waits("FailedAttachVolume", elsewhere).reason is WaitReason.VOLUME_ELSEWHERE
    failed = (
        f'AttachVolume.Attach failed for volume "{name}" : rpc error: code = Internal desc = no Multi-Attach'
    )
    assert waits("FailedAttachVolume", failed).reason is WaitReason.VOLUME_FAILED
    missing = f'MountVolume.SetUp failed for volume "{name}" : secret "{name}" not found'
    assert waits("FailedMount", missing).text.startswith(
        "Something that this workspace refers to does not exist"
    )
    several = (
        f'MountVolume.SetUp failed for volume "{name}" : [configmap "a" not found, secret "{name}" not found]'
    )
    assert waits("FailedMount", several).reason is WaitReason.CONFIG_MISSING


# The scheduler ----------------------------------------------------------------------------------------------


@FEW
@given(labels, labels, resources)
def test_taints_and_resources_are_no_obstacles_of_another_kind(key: str, value: str, resource: str) -> None:
    message = (
        f"0/9 nodes are available: 1 node(s) had untolerated taint {{{key}/{key}: {value}}}, "
        f"1 node(s) had taint {{{key}: {value}}}, that the pod didn't tolerate, 2 Insufficient {resource}, "
        f'2 node(s) had new trouble with storageclass "{key}-taint", 3 node(s) were unschedulable. '
        "preemption: 0/9 nodes are available: 9 Preemption is not helpful for scheduling."
    )
    kinds = [Kind.TAINT, Kind.TAINT, Kind.INSUFFICIENT, Kind.OTHER, Kind.CORDONED]
    assert [one.kind for one in obstacles(message)] == kinds


def test_a_claim_is_beyond_the_quota_only_where_the_api_server_says_so() -> None:
    place = "PodResourceClaim gpu: create ResourceClaim : "
    quota = 'resourceclaims.resource.k8s.io "ada-gpu-" is forbidden: exceeded quota: q, requested: a=1'
    beyond = waits("FailedResourceClaimCreation", f"{place}{quota}", node="")
    assert (beyond.reason, beyond.fatal) == (WaitReason.CLAIM_REFUSED, False)
    denied = f'{place}admission webhook "w.org" denied the request: exceeded quota: of GPUs'
    by_rule = waits("FailedResourceClaimCreation", denied, node="")
    assert (by_rule.reason, by_rule.fatal) == (WaitReason.CLAIM_REFUSED, True)
    assert "quota" not in by_rule.text


# Queues -----------------------------------------------------------------------------------------------------

SMALL = (
    "insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests (0) + "
    "current podset request (8) > maximum capacity (4)"
)
FULL = "insufficient unused quota for {resource} in flavor {other}, 1 more needed"
TAINTED = (
    "untolerated taint &Taint{Key:{flavor},Value:x,Effect:NoSchedule,TimeAdded:<nil>,} in flavor {flavor}"
)
FAR = (
    'topology "{flavor}" doesn\'t allow to fit any of 2 pod(s). Total nodes: 3; excluded: taint "{flavor}": 3'
)
SET = "couldn't assign flavors to pod set {set}: "
KUEUE = [
    (Cause.FULL, SET + FULL),
    (Cause.FULL, FULL),
    (Cause.FULL, SET + SMALL + ", " + FULL),
    (Cause.FULL, SET + TAINTED + ", " + FULL + ". Preempting 2 workload(s) failed, will retry."),
    (Cause.TOO_SMALL, SET + SMALL),
    (Cause.TOO_SMALL, SET + SMALL + ", " + FULL.replace("{other}", "{flavor}")),
    (Cause.TOO_SMALL, SET + FULL + "; couldn't assign flavors to pod set b: " + SMALL),
    (Cause.NO_FLAVOR, SET + TAINTED),
    (Cause.NO_FLAVOR, SET + "flavor {flavor} doesn't match node affinity"),
    (Cause.NO_FLAVOR, SET + 'Flavor "{flavor}" does not support TopologyAwareScheduling'),
    (Cause.TOPOLOGY, SET + FAR),
    (Cause.UNCOUNTED, SET + "resource {resource} unavailable in ClusterQueue"),
    (Cause.PREEMPTING, SET + FULL + ". Pending the preemption of 2 workload(s)"),
    (Cause.STOPPED, "LocalQueue {flavor} is stopped"),
    (Cause.STOPPED, "ClusterQueue {flavor} is inactive"),
    (Cause.MISSING, "ClusterQueue {flavor} doesn't exist"),
    (Cause.MISSING, "LocalQueue {flavor} is terminating or missing"),
    (None, SET + "flavor {flavor} has something new"),
    (None, "Failed to admit workload: {flavor}: LocalQueue {flavor} is stopped"),
    (None, ""),
]  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(KUEUE), dotted, labels, resources)
def test_kueue(told: tuple[Cause | None, str], flavor: str, name: str, resource: str) -> None:
    names = {"{flavor}": flavor, "{other}": f"{flavor}.b", "{set}": name, "{resource}": resource}
    message = told[1]
    for place, word in names.items():
        message = message.replace(place, word)
    assert read_saying(message).cause is told[0]


def test_a_flavor_that_is_only_full_is_waited_for_though_another_is_too_small() -> None:
    names = {"{flavor}": "a100", "{other}": "h200", "{set}": "main", "{resource}": "nvidia.com/gpu"}
    message = SET + SMALL + ", " + FULL
    for place, word in names.items():
        message = message.replace(place, word)
    lacks = read_saying(message).lacks
    assert [(one.resource, one.flavor, one.more) for one in lacks] == [("nvidia.com/gpu", "h200", "1")]


# Autoscalers ------------------------------------------------------------------------------------------------


@FEW
@given(labels, resources)
def test_autoscalers(name: str, resource: str) -> None:
    listed = (
        f"pod didn't trigger scale-up: 1 node(s) had untolerated taint {{{name}: {name}}}, "
        f"2 max cluster cpu, memory limit reached, 1 Insufficient {resource}, "
        "1 in backoff after failed scale-up"
    )
    assert in_words(listed).startswith("the cluster is as large as it may be; the last try failed; too few ")
    assert in_words(f"pod didn't trigger scale-up: 3 node(s) had untolerated taint {{{name}: {name}}}") == ""
    failed = f"Failed adding 1 nodes to group {name} due to "
    why = "source errors: Instance 'n' creation failed: "
    assert in_words(f"{failed}OutOfResource.QUOTA_EXCEEDED; {why}Quota 'GPUS' exceeded") == (
        "the cloud's own limit is reached"
    )
    assert in_words(f"{failed}OutOfResource.GCE_STOCKOUT; {why}x") == "the cloud has no such machine left"
    assert in_words(f"{failed}Other.PERMISSIONS_ERROR; {why}no") == ""


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("GCE out of resources", "the cloud has no such machine left"),
        ("GCE quota exceeded", "the cloud's own limit is reached"),
        ("IP space exhausted", ""),
    ],
)
def test_gke_says_it_to_the_pod(why: str, words: str) -> None:
    place = "Node scale up in zones europe-west4-a associated with this pod failed: "
    assert in_words(f"{place}{why}. Pod is at risk of not being scheduled.") == words
