"""The client and its imitation agree: every test here runs on both."""

from __future__ import annotations

import asyncio

import pytest

import services.kube
from services.kube import (
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    Kube,
    KubeError,
    NotFoundError,
    UnavailableError,
    api_path,
)
from services.kube_errors import error_of
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.fakes.kube import FakeKube

PODS = api_path("v1", "pods", namespace="team")
JOBS = api_path("batch/v1", "jobs", namespace="team")


def pod(name="a", **labels):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "labels": labels},
        "spec": {"nodeName": "gpu-1"},
    }


@pytest.fixture(params=["real", "imitated"])
def api(request, kube, fake_kube):
    return kube if request.param == "real" else fake_kube


@pytest.mark.parametrize(
    ("path", "arguments", "named"),
    [
        ("/api/v1/nodes", ("v1", "nodes"), {}),
        ("/apis/batch/v1/namespaces/team/jobs/train", ("batch/v1", "jobs", "train"), {"namespace": "team"}),
        ("/api/v1/namespaces/team/pods/a/log", ("v1", "pods", "a", "log"), {"namespace": "team"}),
        ("/api/v1/namespaces/..%2Fkube-system/pods", ("v1", "pods"), {"namespace": "../kube-system"}),
    ],
)
def test_paths_are_escaped(path, arguments, named):
    assert api_path(*arguments, **named) == path


@pytest.mark.parametrize("part", ["", ".", ".."])
def test_paths_lead_nowhere_else(part):
    with pytest.raises(ValueError, match="no path"):
        api_path("v1", "pods", part, namespace="team")


async def test_what_is_created_can_be_read_and_is_there_once(api):
    made = await api.create(PODS, pod())
    assert made["metadata"]["uid"]
    assert (await api.get(f"{PODS}/a"))["spec"] == {"nodeName": "gpu-1"}
    with pytest.raises(ConflictError) as caught:
        await api.create(PODS, pod())
    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")


async def test_a_dry_run_creates_nothing(api):
    await api.create(PODS, pod(), dry_run=True)
    assert await api.find(f"{PODS}/a") is None


async def test_what_is_not_there_is_an_error_or_none(api):
    with pytest.raises(NotFoundError) as caught:
        await api.get(f"{JOBS}/train")
    assert (caught.value.kind, caught.value.namespace, caught.value.name) == ("jobs", "team", "train")
    assert await api.find(f"{JOBS}/train") is None
    assert await api.delete(f"{JOBS}/train") is False


async def test_lists_are_selected(api):
    for name in ("a", "b", "c"):
        await api.create(PODS, pod(name, tier="gpu" if name != "b" else "cpu"))
    found = await api.list(PODS, labelSelector="tier=gpu")
    assert [one["metadata"]["name"] for one in found] == ["a", "c"]
    assert len(await api.list("/api/v1/pods", fieldSelector="spec.nodeName!=gpu-1")) == 0


async def test_lists_are_read_page_by_page(kube, fake_kube, seen, monkeypatch):
    monkeypatch.setattr(services.kube, "PAGE", 2)
    for number in range(5):
        fake_kube.put_for_test(pod(f"p{number}"))
    assert len(await kube.list(PODS)) == 5
    assert [query.get("continue") for _, _, query, _ in seen] == [None, "2", "4"]


async def test_only_the_object_that_is_meant_is_deleted(api):
    made = await api.create(PODS, pod())
    with pytest.raises(ConflictError):
        await api.delete(f"{PODS}/a", uid="another")
    assert await api.delete(f"{PODS}/a", uid=made["metadata"]["uid"]) is True


async def test_a_patch_changes_parts(api):
    await api.create(PODS, pod(team="nlp"))
    await api.patch(f"{PODS}/a", {"metadata": {"labels": {"tier": "gpu"}}})
    assert (await api.get(f"{PODS}/a"))["metadata"]["labels"] == {"team": "nlp", "tier": "gpu"}


async def test_a_watch_tells_what_happened_since(api):
    version = (await api.list(PODS)).version
    await api.create(PODS, pod())
    told = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for change, item in api.watch(PODS, version if isinstance(api, FakeKube) else "0"):
            told.append((change, item["metadata"]["name"]))
            if change == "DELETED":
                break
            await api.delete(f"{PODS}/a")
    assert told == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_version_that_is_forgotten_has_to_be_listed_again(api, fake_kube):
    fake_kube.put_for_test(pod())
    fake_kube.forget_for_test()
    with pytest.raises(GoneError):
        async for _ in api.watch(PODS, "0"):
            pass


async def test_rights_are_those_of_the_rules():
    rights = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    api = FakeKube(pod(), rights=rights)
    assert len(await api.list(PODS)) == 1
    for call in (api.get(f"{PODS}/a"), api.delete(f"{PODS}/a"), api.list(JOBS)):
        with pytest.raises(ForbiddenError):
            await call


async def test_the_client_says_who_it_is_and_who_manages(kube, seen):
    await kube.create(PODS, pod())
    _, _, query, headers = seen[-1]
    assert headers["Authorization"] == "Bearer of-the-service"
    assert query == {"fieldManager": "gpu-workspaces"}


async def test_questions_are_asked_again_and_changes_are_not(kube, fake_kube, seen, monkeypatch):
    monkeypatch.setattr("services.retries.FIRST_DELAY", 0.0)
    fake_kube.put_for_test(pod())
    fake_kube.fail_for_test(UnavailableError("busy", kind="pods", status=503))
    assert await kube.find(f"{PODS}/a")
    fake_kube.fail_for_test(UnavailableError("busy", kind="pods", status=503))
    with pytest.raises(UnavailableError):
        await kube.delete(f"{PODS}/a")
    assert [method for method, *_ in seen] == ["GET", "GET", "DELETE"]


async def test_no_answer_is_an_error_of_ours(kube, monkeypatch):
    monkeypatch.setattr("services.retries.FIRST_DELAY", 0.0)
    kube.api.configuration.host = "http://127.0.0.1:9"
    with pytest.raises(UnavailableError, match="no answer"):
        await kube.get("/api/v1/nodes/a")


async def test_without_an_account_it_says_what_to_do():
    with pytest.raises(KubeError, match="KUBECONFIG"):
        await Kube.connect({})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidError),
        (422, InvalidError),
        (401, ForbiddenError),
        (500, UnavailableError),
        (418, KubeError),
    ],
)
def test_statuses_have_an_error_each_also_without_a_reason(status, kind):
    error = error_of(PODS, status, "<html>not of the API server</html>")
    assert type(error) is kind
    assert error.status == status
