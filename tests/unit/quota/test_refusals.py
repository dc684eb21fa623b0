"""Every shape in which the API server refuses a pod, read into one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.quota.refusals import Answer, explain, read_answer, shortages_of
from hub_ext.quota.verdicts import Fault, Reason, Shortage

FORBIDDEN = 'pods "jupyter-ada" is forbidden: '
GPU = "requests.nvidia.com/gpu"


def say(code: int, message: str) -> Answer:
    return Answer(code=code, message=message)


CASES = [
    (
        say(403, f"{FORBIDDEN}exceeded quota: gpus, requested: {GPU}=1, used: {GPU}=4, limited: {GPU}=4"),
        (Reason.NAMESPACE_QUOTA, Fault.USER, False, "gpus"),
        "The namespace has 4 of 4 GPUs in use, and this workspace needs 1 GPU.",
    ),
    (
        say(
            403,
            f"{FORBIDDEN}failed quota: all: must specify limits.cpu for: web; limits.memory for: web",
        ),
        (Reason.LIMITS_REQUIRED, Fault.ADMIN, False, "all"),
        "This workspace states no limit of CPU cores and no limit of memory, which the cluster requires.",
    ),
    (
        say(403, f"{FORBIDDEN}failed quota: all: must specify limits.cpu,limits.memory"),
        (Reason.LIMITS_REQUIRED, Fault.ADMIN, False, "all"),
        "This workspace states no limit of CPU cores and no limit of memory, which the cluster requires.",
    ),
    (
        say(403, f"{FORBIDDEN}status unknown for quota: gpus, resources: {GPU}"),
        (Reason.QUOTA_NOT_READY, Fault.CLUSTER, True, "gpus"),
        "The cluster has not yet counted what is in use under the quota gpus.",
    ),
    (
        say(403, f"{FORBIDDEN}insufficient quota to consume: {GPU}"),
        (Reason.QUOTA_ABSENT, Fault.ADMIN, False, GPU),
        "No quota of the namespace covers GPUs, so the cluster gives none.",
    ),
    (
        say(403, f"{FORBIDDEN}insufficient quota to match these scopes: [{{PriorityClass In [high]}}]"),
        (Reason.QUOTA_ABSENT, Fault.ADMIN, False, "[{PriorityClass In [high]}]"),
        "No quota of the namespace covers workspaces of this priority, so the cluster gives none.",
    ),
    (
        say(500, "Internal error occurred: resource quota evaluation timed out"),
        (Reason.QUOTA_TIMEOUT, Fault.CLUSTER, True, ""),
        "The cluster took too long to check its quota.",
    ),
    (
        say(
            409,
            'Operation cannot be fulfilled on resourcequotas "gpus": the object has been modified; '
            "please apply your changes to the latest version and try again",
        ),
        (Reason.QUOTA_CONFLICT, Fault.CLUSTER, True, "gpus"),
        "Many workspaces start at this moment.",
    ),
    (
        say(409, 'pods "jupyter-ada" already exists'),
        (Reason.NAME_TAKEN, Fault.CLUSTER, True, ""),
        "The last run of this workspace has not quite ended.",
    ),
    (
        say(409, 'object is being deleted: pods "jupyter-ada" already exists'),
        (Reason.NAME_TAKEN, Fault.CLUSTER, True, ""),
        "The last run of this workspace has not quite ended.",
    ),
    (
        say(403, f"{FORBIDDEN}maximum nvidia.com/gpu usage per Container is 1, but limit is 2"),
        (Reason.LIMIT_RANGE, Fault.ADMIN, False, ""),
        "sizes that the namespace permits: at most 1 GPU per container, and it has 2.",
    ),
    (
        say(
            403,
            f"{FORBIDDEN}[maximum cpu usage per Container is 1, but limit is 2, "
            "minimum memory usage per Pod is 64Mi.  No request is specified, "
            "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000]",
        ),
        (Reason.LIMIT_RANGE, Fault.ADMIN, False, ""),
        (
            "at most 1 CPU core per container, and it has 2; "
            "at least 64 MiB of memory, and it states no request; "
            "a limit of CPU cores of at most 2 times the request per container, and it has 4 times"
        ),
    ),
    (
        say(
            403,
            'persistentvolumeclaims "claim-ada" is forbidden: '
            "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 50Gi",
        ),
        (Reason.LIMIT_RANGE, Fault.ADMIN, False, ""),
        "permits: at most 10 GiB of storage per volume, and it has 50 GiB.",
    ),
    (
        say(
            403,
            f'{FORBIDDEN}violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
            '(container "notebook" must set securityContext.allowPrivilegeEscalation=false)',
        ),
        (Reason.POD_SECURITY, Fault.ADMIN, False, "restricted:latest"),
        "The cluster's security level restricted:latest does not permit this workspace.",
    ),
    (
        say(
            500,
            'Internal error occurred: failed calling webhook "mpod.example.org": failed '
            'to call webhook: Post "https://hook.system.svc:443/mutate?timeout=10s": dial tcp 10.96.1.1:443: '
            "connect: connection refused",
        ),
        (Reason.WEBHOOK_UNREACHABLE, Fault.CLUSTER, True, "mpod.example.org"),
        "A part of the cluster that must approve each start (mpod.example.org) does not answer.",
    ),
    (
        say(403, 'admission webhook "guard.example.org" denied the request: GPUs only with a cost center'),
        (Reason.WEBHOOK_DENIED, Fault.ADMIN, False, "guard.example.org"),
        "A rule of the cluster refuses this workspace: GPUs only with a cost center.",
    ),
    (
        say(400, 'admission webhook "guard.example.org" denied the request without explanation'),
        (Reason.WEBHOOK_DENIED, Fault.ADMIN, False, "guard.example.org"),
        "A rule of the cluster refuses this workspace. Please tell an administrator.",
    ),
    (
        say(
            422,
            "pods \"jupyter-ada\" is forbidden: ValidatingAdmissionPolicy 'gpu-rules' with binding 'all' "
            "denied request: no more than one GPU",
        ),
        (Reason.POLICY_DENIED, Fault.ADMIN, False, "gpu-rules"),
        "A rule of the cluster refuses this workspace: no more than one GPU.",
    ),
    (
        say(403, f"{FORBIDDEN}unable to create new content in namespace nlp because it is being terminated"),
        (Reason.NAMESPACE_ENDING, Fault.ADMIN, False, "nlp"),
        "The namespace of this workspace is being deleted.",
    ),
    (
        say(403, f'{FORBIDDEN}error looking up service account nlp/work: serviceaccount "work" not found'),
        (Reason.MISSING_OBJECT, Fault.ADMIN, False, 'serviceaccount "work"'),
        'Something that this workspace needs does not exist: serviceaccount "work".',
    ),
    (
        say(403, f"{FORBIDDEN}no PriorityClass with name urgent was found"),
        (Reason.MISSING_OBJECT, Fault.ADMIN, False, "PriorityClass with name urgent"),
        "does not exist: PriorityClass with name urgent.",
    ),
    (
        say(403, f'{FORBIDDEN}pod rejected: RuntimeClass "nvidia" not found'),
        (Reason.MISSING_OBJECT, Fault.ADMIN, False, 'RuntimeClass "nvidia"'),
        'does not exist: RuntimeClass "nvidia".',
    ),
    (
        say(404, 'namespaces "nlp" not found'),
        (Reason.MISSING_OBJECT, Fault.ADMIN, False, 'namespaces "nlp"'),
        'does not exist: namespaces "nlp".',
    ),
    (
        say(
            403,
            'pods is forbidden: User "hub" cannot create resource "pods" in API group ""',
        ),
        (Reason.NOT_PERMITTED, Fault.ADMIN, False, ""),
        "The hub may not create this workspace in its namespace.",
    ),
    (
        say(422, 'Pod "jupyter-ada" is invalid: spec.containers[0].image: Required value'),
        (Reason.INVALID_POD, Fault.ADMIN, False, ""),
        "The cluster does not accept the way this workspace is described.",
    ),
    (say(429, "too many requests"), (Reason.API_BUSY, Fault.CLUSTER, True, ""), "too much to do"),
    (say(0, ""), (Reason.API_UNAVAILABLE, Fault.CLUSTER, True, ""), "does not answer at the moment"),
    (say(503, "<html>down</html>"), (Reason.API_UNAVAILABLE, Fault.CLUSTER, True, ""), "does not answer"),
    (say(500, "something new"), (Reason.API_ERROR, Fault.CLUSTER, True, ""), "could not create"),
    (say(418, "teapot"), (Reason.API_ERROR, Fault.ADMIN, False, ""), "could not create"),
]


@pytest.mark.parametrize(("answer", "expected", "text"), CASES)
def test_shapes(answer: Answer, expected: tuple[Reason, Fault, bool, str], text: str) -> None:
    refusal = explain(answer)
    assert (refusal.reason, refusal.fault, refusal.retry, refusal.component) == expected
    assert text in refusal.text
    assert refusal.detail == answer.message


def test_all_numbers_of_an_exceeded_quota_are_read() -> None:
    refusal = explain(
        say(
            403,
            f"{FORBIDDEN}exceeded quota: team, requested: limits.cpu=1500m,{GPU}=2,requests.memory=64Gi, "
            f"used: limits.cpu=63,{GPU}=7,requests.memory=450Gi, "
            f"limited: limits.cpu=64,{GPU}=8,requests.memory=500Gi",
        )
    )
    assert [(s.resource, s.asked, s.used, s.limit) for s in refusal.shortages] == [
        ("limits.cpu", 1500, 63000, 64000),
        (GPU, 2, 7, 8),
        ("requests.memory", 64 * 1024**3, 450 * 1024**3, 500 * 1024**3),
    ]


def test_a_quota_that_could_never_hold_the_workspace_says_so() -> None:
    refusal = explain(
        say(403, f"{FORBIDDEN}exceeded quota: q, requested: {GPU}=4, used: {GPU}=0, limited: {GPU}=2")
    )
    assert "needs 4 GPUs, but the namespace may have 2 GPUs" in refusal.text


def test_numbers_that_cannot_be_read_are_left_out_and_still_give_a_text() -> None:
    assert shortages_of("a=1,b=x", "a=0", "a=1,b=2") == (Shortage(resource="a", asked=1, used=0, limit=1),)
    refusal = explain(say(403, "exceeded quota: q, requested: x, used: y, limited: z"))
    assert refusal.reason is Reason.NAMESPACE_QUOTA
    assert refusal.text


def test_the_body_of_a_status_is_read_and_anything_else_is_a_message() -> None:
    status = {
        "kind": "Status",
        "code": 403,
        "reason": "Forbidden",
        "message": "no",
        "details": {"kind": "pods"},
    }
    assert read_answer(403, json.dumps(status)) == Answer(
        code=403, reason="Forbidden", message="no", kind="pods"
    )
    assert read_answer(403, json.dumps(status).encode()).message == "no"
    assert read_answer(502, b"<html>\xff").message == "<html>\ufffd"
    assert read_answer(502, None).message == ""
    assert read_answer(500, '["not a status"]').message == '["not a status"]'
    assert read_answer(500, '{"kind": "Status"}').message == ""


def test_pages_of_text_from_a_webhook_are_cut() -> None:
    refusal = explain(say(403, f'admission webhook "g" denied the request: {"x" * 5000}'))
    assert len(refusal.text) < 400
    assert len(refusal.detail) == 600


NAMES = ("x", "jupyter-ada", "exceeded-quota", "a.b.c", "failed-quota", "denied")
OF = 'pods "{name}" is forbidden: '
USED = "requested: pods=1, used: pods=4, limited: pods=4"
SIZES = (
    "[minimum cpu usage per Pod is 1, but request is 100m, maximum cpu usage per Pod is 4, but limit is 5]"
)
SAID: list[tuple[Reason, int, str]] = [
    (Reason.NAMESPACE_QUOTA, 403, OF + "exceeded quota: {name}, " + USED),
    (Reason.LIMITS_REQUIRED, 403, OF + "failed quota: {name}: must specify limits.cpu for: {name}"),
    (Reason.QUOTA_NOT_READY, 403, OF + "status unknown for quota: {name}, resources: pods"),
    (Reason.QUOTA_ABSENT, 403, OF + "insufficient quota to consume: requests.{name}/gpu"),
    (Reason.QUOTA_TIMEOUT, 500, "Internal error occurred: resource quota evaluation timed out"),
    (Reason.QUOTA_CONFLICT, 409, 'Operation cannot be fulfilled on resourcequotas "{name}": it was modified'),
    (Reason.LIMIT_RANGE, 403, OF + SIZES),
    (Reason.POD_SECURITY, 403, OF + 'violates PodSecurity "restricted:latest": privileged "{name}"'),
    (Reason.WEBHOOK_UNREACHABLE, 500, 'Internal error occurred: failed calling webhook "{name}.org": {free}'),
    (Reason.WEBHOOK_DENIED, 403, 'admission webhook "{name}.org" denied the request: {free}'),
    (Reason.POLICY_DENIED, 403, OF + "ValidatingAdmissionPolicy '{name}' denied request: {free}"),
    (
        Reason.NAMESPACE_ENDING,
        403,
        OF + "unable to create new content in namespace {name} because it is being terminated",
    ),
    (
        Reason.MISSING_OBJECT,
        403,
        OF + 'error looking up service account {name}/{name}: serviceaccount "{name}" not found',
    ),
    (Reason.MISSING_OBJECT, 403, OF + "no PriorityClass with name {name} was found"),
    (Reason.MISSING_OBJECT, 403, OF + 'pod rejected: RuntimeClass "{name}" not found'),
    (Reason.MISSING_OBJECT, 404, 'namespaces "{name}" not found'),
    (Reason.NAME_TAKEN, 409, 'pods "{name}" already exists'),
    (Reason.INVALID_POD, 422, 'Pod "{name}" is invalid: metadata.labels: Invalid value: "{free}": too long'),
    (Reason.NOT_PERMITTED, 403, 'pods is forbidden: User "{name}" cannot create resource "pods"'),
]
"""What the API server says, and its code; `free` is what a rule says or somebody typed."""


def said(told: str, name: str, free: str) -> str:
    return told.replace("{name}", name).replace("{free}", free)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(SAID),
    st.sampled_from(NAMES),
    st.sampled_from([text for _, _, text in SAID]) | st.text(min_size=1),
)
def test_who_speaks_decides_whatever_is_spoken_of(
    told: tuple[Reason, int, str], name: str, free: str
) -> None:
    """A rule may speak of quotas, and a label be called like an answer: neither is the API server's own."""
    reason, code, text = told
    assert explain(say(code, said(text, name, said(free, name, "x")))).reason is reason


def test_a_size_that_is_none_is_told_without_the_name_of_the_pod() -> None:
    refusal = explain(say(403, f"{FORBIDDEN}maximum cpu usage per Container is 1x, but limit is 2x"))
    assert (refusal.reason, FORBIDDEN in refusal.text) == (Reason.LIMIT_RANGE, False)
    assert "maximum cpu usage per Container is 1x" in refusal.text
