"""Pods that the API server is asked about: which, what it says to them, and that none is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hub_ext.errors import Severity
from hub_ext.quota.refusals import Answer
from services.kube import ForbiddenError, UnavailableError
from services.preflight.attempts import attempts, chart_pod
from services.preflight.checks.trials import CHECKS
from services.preflight.problems import Outcome, judge
from services.preflight.scene import Trial
from services.preflight.trials import MOST, may_not_try, try_pods
from tests.fakes.kube import FakeKube
from tests.unit.preflight.scenes import VALUES, scene

(CHECK,) = CHECKS
TEAMS = {
    "nlp": {"displayName": "Language", "groups": ["nlp"], "namespace": "ws-nlp"},
    "vision": {"displayName": "Vision", "groups": ["vision"], "namespace": "ws-vision"},
    "ops": {"displayName": "Operations", "groups": ["ops"]},
}


def pod_of(**singleuser: Any) -> dict[str, Any]:
    return chart_pod(scene(values={**VALUES, "singleuser": {**VALUES["singleuser"], **singleuser}}))


def test_each_profile_is_tried_once_where_there_are_no_teams() -> None:
    tried = list(attempts(scene()))
    assert [(one.profile, one.namespace) for one in tried] == [
        ("full@1", "jupyterhub"),
        ("slice@1", "jupyterhub"),
        ("share@1", "jupyterhub"),
    ]
    full = tried[0].pod
    assert full["metadata"]["namespace"] == "jupyterhub"
    assert full["spec"]["priorityClassName"] == "interactive"
    assert full["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"


def test_each_profile_is_tried_where_its_teams_start_it() -> None:
    from tests.unit.preflight.scenes import CATALOG

    profiles = [{**one, "access": {"teams": ["nlp"]}} for one in CATALOG["profiles"][:1]]
    tried = list(attempts(scene(catalog={"teams": TEAMS, "profiles": [*profiles, CATALOG["profiles"][1]]})))
    assert [(one.profile, one.namespace) for one in tried] == [
        ("full@1", "ws-nlp"),
        ("slice@1", "ws-nlp"),
        ("slice@1", "ws-vision"),
        ("slice@1", "jupyterhub"),
    ]


def test_the_pod_is_the_one_that_the_values_give() -> None:
    pod = pod_of(
        uid=2000, serviceAccountName="own", nodeSelector={"a": "b"}, extraPodConfig={"hostIPC": True}
    )
    assert pod["spec"]["containers"][0]["securityContext"]["runAsUser"] == 2000
    assert pod["spec"]["serviceAccountName"] == "own"
    assert pod["spec"]["automountServiceAccountToken"] is True
    assert pod["spec"]["nodeSelector"] == {"a": "b"}
    assert pod["spec"]["hostIPC"] is True
    assert pod["spec"]["initContainers"] == []
    (blocks,) = pod_of(cloudMetadata={})["spec"]["initContainers"]
    assert blocks["securityContext"]["privileged"] is True


@pytest.mark.parametrize("odd", [None, 3, "x", [], [3], {"a": 1}])
def test_values_of_any_shape_give_a_pod(odd: Any) -> None:
    keys = ("extraTolerations", "initContainers", "extraContainers", "nodeSelector", "extraPodConfig")
    assert pod_of(**dict.fromkeys(keys, odd))["kind"] == "Pod"


async def test_nothing_is_made_and_what_is_refused_is_told() -> None:
    kube = FakeKube()
    said = 'pods "jupyter-preflight" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes'

    def judged(path: str, item: dict[str, Any]) -> tuple[int, str, str] | None:
        full = item["metadata"]["labels"]["gpu-workspaces.jupyter.org/profile"] == "full"
        return (403, "Forbidden", said) if full else None

    kube.admission_for_test(judged)
    trials, why_not = await try_pods(kube, list(attempts(scene())))
    assert kube.all_for_test("pods") == []
    assert why_not == ""
    assert [one.profile for one in trials if one.refusal] == ["full@1"]
    (found,) = judge(CHECK, replace(scene(), trials=trials)).observations
    assert found.severity is Severity.ERROR
    assert found.message == "full@1: the API server refuses such a pod in jupyterhub (pod-security)"
    assert "hostPath volumes" in found.evidence


async def test_who_may_make_no_pods_learns_that_it_was_not_tried() -> None:
    kube = FakeKube(rights=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
    trials, why_not = await try_pods(kube, list(attempts(scene())))
    assert trials == ()
    assert 'cannot create resource "pods"' in why_not
    result = judge(CHECK, replace(scene(), trials=None))
    assert (result.outcome, result.missing) == (Outcome.NOT_CHECKED, ("trials",))


def test_what_a_rule_says_of_rights_is_about_the_pod() -> None:
    said = 'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group ""'
    assert may_not_try(ForbiddenError(said, kind="pods", status=403))
    rule = f'admission webhook "w.example.org" denied the request: {said}'
    assert not may_not_try(ForbiddenError(rule, kind="pods", status=403))


async def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    kube = FakeKube()
    kube.fail_for_test(*[UnavailableError("no answer", kind="pods")] * 3)
    with pytest.raises(UnavailableError):
        await try_pods(kube, list(attempts(scene())))


async def test_a_webhook_that_does_not_answer_is_told() -> None:
    kube, said = FakeKube(), 'failed calling webhook "policy.example.com": no endpoints available'
    kube.admission_for_test(lambda path, item: (500, "InternalError", f"Internal error occurred: {said}"))
    trials, _ = await try_pods(kube, list(attempts(scene())))
    (found,) = judge(CHECK, replace(scene(), trials=trials)).observations
    assert "full@1, share@1, slice@1: " in found.message
    assert "webhook-unreachable" in found.message
    assert found.severity is Severity.ERROR


async def test_what_is_too_much_is_said_to_be_left_out() -> None:
    one = next(iter(attempts(scene())))
    many = [replace(one, profile=f"p{number}@1") for number in range(MOST + 5)]
    trials, why_not = await try_pods(FakeKube(), many)
    assert len(trials) == MOST
    assert f"{MOST + 5} pods are too many" in why_not


QUOTA = (
    'pods "x" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, '
    "used: requests.nvidia.com/gpu={used}, limited: requests.nvidia.com/gpu={limit}"
)


@pytest.mark.parametrize(
    ("used", "limit", "severity"), [(0, 1, Severity.ERROR), (3, 4, Severity.NOTE)], ids=["never", "now"]
)
def test_a_quota_that_is_in_use_is_no_fault(used: int, limit: int, severity: Severity) -> None:
    answer = Answer(code=403, reason="Forbidden", message=QUOTA.format(used=used, limit=limit))
    trial = Trial(profile="full@1", namespace="jupyterhub", refusal=answer)
    (found,) = judge(CHECK, replace(scene(), trials=(trial,))).observations
    assert found.severity is severity
    assert "quota of namespace jupyterhub" in found.message
