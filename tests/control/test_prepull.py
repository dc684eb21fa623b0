"""The prepuller at an API server with 200 played machines, with no more rights than it declares."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.kube import Kube
from services.prepuller import app
from services.prepuller import prepuller as acting
from services.prepuller.manifest import build_pull_pod
from services.prepuller.reasons import Reason
from services.prepuller.rights import RIGHTS
from tests.devcluster.kube import KubeCluster
from tests.prepulling.account import account
from tests.prepulling.fleet import POOL, fleet
from tests.prepulling.recorder import Recorder, recording
from tests.prepulling.service import Running, running

pytestmark = pytest.mark.usefixtures("machines")
NODES = 100
GOOD, SLOW, BAD = "good", "slow", "bad"
OTHER = "other.example.org"
LIMITS = {
    "total": 60,
    "perPool": 40,
    "perRegistry": 50,
    "registries": {OTHER: 25},
    "firstRetry": "2s",
    "longestRetry": "4s",
}


def ref(name: str, letter: str, host: str = "registry.example.org") -> str:
    return f"{host}/{name}@sha256:" + letter * 64


_METHODS = {"list": "GET", "watch": "GET", "create": "POST", "delete": "DELETE"}
DECLARED = {
    f"{_METHODS[verb]} {resource}"
    for rule in RIGHTS.rules
    for resource in rule.resources
    for verb in rule.verbs
}
IMAGES = {
    GOOD: ref(GOOD, "a"),
    SLOW: ref(SLOW, "b", OTHER),
    BAD: ref(BAD, "c"),
}


def build_catalog(*names: str, pools: tuple[str, ...] = ("pull-a", "pull-b")) -> dict[str, Any]:
    """Each image in each pool; the slow one in the last only."""
    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {name: {"ref": IMAGES[name], "displayName": name} for name in names},
        "pools": {pool: {"nodeSelector": {POOL: pool}} for pool in pools},
        "profiles": [
            {
                "name": f"{name}-{pool}",
                "version": 1,
                "displayName": name,
                "images": [name],
                "resources": {"cpu": "1", "memory": "1Gi", "pool": pool},
            }
            for name in names
            for pool in (pools[-1:] if name == SLOW else pools)
        ],
    }


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the machines pull as the names of the images say, and let containers end."""

    def build(want: Any, node: str, **more: Any) -> dict[str, Any]:
        pod = build_pull_pod(want, node, **more)
        notes = pod["metadata"]["annotations"]
        notes["devcluster.test/complete-after"] = "1s"
        if SLOW in want.image:
            notes["devcluster.test/pull-delay"] = "2s"
        if BAD in want.image:
            notes["devcluster.test/pull-error"] = f"rpc error: code = NotFound desc = {want.image}: not found"
        return pod

    monkeypatch.setattr(acting, "build_pull_pod", build)


@pytest.fixture
def kubeconfig(cluster: KubeCluster, namespace: str, tmp_path: Path) -> Iterator[Path]:
    with account(cluster, namespace, tmp_path) as file:
        yield file


@asynccontextmanager
async def recorded(cluster: KubeCluster, namespace: str) -> AsyncIterator[Recorder]:
    async with (
        await Kube.connect({"KUBECONFIG": str(cluster.kubeconfig)}) as kube,
        recording(kube, namespace, Recorder()) as recorder,
    ):
        yield recorder


def warm(found: Running, places: int) -> Any:
    return lambda: found.states()["pulled"] == places


@pytest.mark.usefixtures("played")
async def test_200_nodes_with_slow_and_failing_pulls_and_a_restart(
    cluster: KubeCluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    catalog = build_catalog(GOOD, SLOW, BAD)
    given = {"pods": {"namespace": namespace}, "limits": LIMITS}
    with fleet(cluster, {"pull-a": NODES, "pull-b": NODES}):
        begun = time.monotonic()
        async with recorded(cluster, namespace) as recorder:
            async with running(kubeconfig, catalog, tmp_path, **given) as first:
                await first.until(lambda: first.states()["pulled"] >= NODES, what="a first half")
            async with running(kubeconfig, catalog, tmp_path, **given) as second:
                await second.until(warm(second, 3 * NODES), what="end of all good pulls")
                moment = second.service.moment
                assert moment is not None
                reasons = {problem.trouble.reason for problem in moment.summary.problems}
                assert reasons == {Reason.IMAGE_NOT_FOUND}
                assert second.requests["POST pods"] < 3 * NODES, "the first one's pods count"
        most = recorder.most
        assert most["node"] == 1
        assert most["total"] <= LIMITS["total"]
        assert max(most["pool/pull-a"], most["pool/pull-b"]) <= LIMITS["perPool"]
        assert most["registry/registry.example.org"] <= LIMITS["perRegistry"]
        assert 6 < most[f"registry/{OTHER}"] <= LIMITS["registries"][OTHER]  # type: ignore[index]
        assert most["total"] > 20, "the limits were put to the test"
        doubles = {key: n for key, n in recorder.created.items() if n > 1 and key[0] != IMAGES[BAD]}
        assert doubles == {}
        # One tries at a time, seconds apart.
        tries = sum(n for (image, _), n in recorder.created.items() if image == IMAGES[BAD])
        assert 1 <= tries <= 3 + time.monotonic() - begun


@pytest.mark.usefixtures("played")
async def test_when_all_is_warm_nothing_is_asked_until_something_changes(
    cluster: KubeCluster,
    namespace: str,
    kubeconfig: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "EVERY", timedelta(seconds=0.2))
    catalog = build_catalog(GOOD, pools=("quiet",))
    given = {"pods": {"namespace": namespace}, "limits": {"canary": False}}
    with fleet(cluster, {"quiet": 20}):
        async with running(kubeconfig, catalog, tmp_path, **given) as found:
            await found.until(warm(found, 20), what="warm fleet")
            await found.until(found.all_ended, what="end of all containers")
            found.requests.clear()
            looks = found.looks()
            await found.until(lambda: found.looks() > looks + 20, what="further looks")
            assert found.requests == {}
            with fleet(cluster, {"late": 1}):
                cluster.kubectl("label", "node", "late-0", f"{POOL}=quiet", "--overwrite")
                await found.until(warm(found, 21), what="warm newcomer")
                assert found.requests == {"POST pods": 1}
                cluster.kubectl("label", "node", "late-0", f"{POOL}=late", "--overwrite")


@pytest.mark.usefixtures("played")
async def test_the_catalogs_file_is_followed_and_old_images_are_let_go(
    cluster: KubeCluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    given = {"pods": {"namespace": namespace}, "release": {"after": "1s", "keepPrevious": 0}}
    with fleet(cluster, {"follow": 2}):
        async with running(kubeconfig, build_catalog(GOOD, pools=("follow",)), tmp_path, **given) as found:
            await found.until(warm(found, 2), what="warm fleet")
            file = tmp_path / "catalog.yaml"
            file.write_text("apiVersion: [broken\n")
            found.service.loop.soon()
            await found.until(lambda: bool(found.service.catalog.problem), what="look at the broken file")
            assert found.states() == {"pulled": 2}, "the last good one stays in force"
            file.write_text(yaml.safe_dump(build_catalog(SLOW, pools=("follow",))))
            found.service.loop.soon()

            def only_new() -> bool:
                moment = found.service.moment
                images = {pod.image for pod in moment.picture.pods} if moment else set()
                return found.states() == {"pulled": 2} and images == {IMAGES[SLOW]}

            await found.until(only_new, what="new image in place of the old")
            assert set(found.requests) == DECLARED, "no right is missing, and none is there for nothing"


@pytest.mark.usefixtures("played")
async def test_two_services_at_once_make_no_double_pulls(
    cluster: KubeCluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    """As while a Deployment is rolled over: neither knows of the other, and both keep to the limits."""
    catalog = build_catalog(SLOW, pools=("twice",))
    limits = {"canary": False, "registries": {OTHER: 5}}
    given = {"pods": {"namespace": namespace}, "limits": limits}
    with fleet(cluster, {"twice": 12}):
        async with (
            recorded(cluster, namespace) as recorder,
            running(kubeconfig, catalog, tmp_path, **given) as first,
            running(kubeconfig, catalog, tmp_path, **given) as second,
        ):
            await first.until(warm(first, 12), what="warm fleet")
            await second.until(warm(second, 12), what="the same in the other's eyes")
    assert set(recorder.created.values()) == {1}
    assert 1 < recorder.most[f"registry/{OTHER}"] <= 5


@pytest.mark.usefixtures("played")
async def test_a_full_quota_of_the_namespace_is_named_and_pulls_go_on_without_it(
    cluster: KubeCluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": namespace},
        "spec": {"hard": {"count/pods": "2"}},
    }
    cluster.apply(quota)
    given = {"pods": {"namespace": namespace}, "limits": {"canary": False, "firstRetry": "1s"}}
    with fleet(cluster, {"quota": 4}):
        async with running(kubeconfig, build_catalog(GOOD, pools=("quota",)), tmp_path, **given) as found:

            def named() -> bool:
                moment = found.service.moment
                problems = moment.summary.problems if moment else ()
                return {one.trouble.reason for one in problems} == {Reason.QUOTA_FULL}

            await found.until(named, what="the quota's name")
            cluster.kubectl("delete", "resourcequota", "few", f"--namespace={namespace}")
            await found.until(warm(found, 4), what="warm fleet")
