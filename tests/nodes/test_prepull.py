"""The prepuller with real kubelets, and a registry that is slow, refuses, limits, cuts or hangs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.prepuller import app
from services.prepuller.reasons import Reason, State
from tests.devcluster.addons.faults import Fault, Kind
from tests.devcluster.addons.registry import Registry
from tests.devcluster.cluster import Cluster
from tests.nodes.acting import wait_for_event, wait_until_ready, with_image
from tests.nodes.pods import HELPER, build_pod
from tests.prepulling.account import account
from tests.prepulling.service import Running, running

PADDING = 4 << 20
RETRIES = {"firstRetry": "1s", "longestRetry": "2s"}
POOLS = {
    "cpu": {"nodeSelector": {"devcluster.test/pool": "cpu"}},
    "gpu": {
        "nodeSelector": {"devcluster.test/pool": "gpu"},
        "gpu": {"product": "NVIDIA-H200", "sharing": "exclusive"},
    },
}


@pytest.fixture
def registry(cluster: Cluster) -> Iterator[Registry]:
    registry = Registry(cluster)
    yield registry
    registry.faults.clear()


@pytest.fixture
def fresh(registry: Registry) -> str:
    """Reference of an image that was never pulled, with a layer of 4 MiB."""
    return registry.publish_variant(HELPER, mark=secrets.token_hex(4), padding_bytes=PADDING)


Start = Callable[..., AbstractAsyncContextManager[Running]]


@pytest.fixture
def start(
    cluster: Cluster,
    namespace: str,
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Start]:
    """Run a prepuller with a catalog and, as keywords, limits; it has the rights that it declares."""
    monkeypatch.setattr(app, "EVERY", timedelta(seconds=1))
    tool = registry.publish_variant(HELPER, mark="prepull")
    with account(cluster, namespace, tmp_path) as kubeconfig:

        def begin(catalog: dict[str, Any], **limits: Any) -> AbstractAsyncContextManager[Running]:
            given = {"pods": {"namespace": namespace, "tool": tool}, "limits": RETRIES | limits}
            return running(kubeconfig, catalog, tmp_path, **given)

        yield begin


def build_catalog(image: str, *pools: str, pull_secrets: tuple[str, ...] = ()) -> dict[str, Any]:
    """One profile for each pool."""

    def resources(pool: str) -> dict[str, Any]:
        place = {"gpu": {"pool": pool, "count": 1}} if pool == "gpu" else {"pool": pool}
        return {"cpu": "100m", "memory": "64Mi", **place}

    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {"image": {"ref": image, "displayName": "Image", "pullSecrets": list(pull_secrets)}},
        "pools": {pool: POOLS[pool] for pool in pools},
        "profiles": [
            {
                "name": f"p-{pool}",
                "version": 1,
                "displayName": pool,
                "images": ["image"],
                "resources": resources(pool),
            }
            for pool in pools
        ],
    }


def repository(image: str) -> str:
    """The repository of a reference by digest."""
    return image.partition("/")[2].partition("@")[0]


def pulled(found: Running, places: int = 1) -> Any:
    return lambda: found.states() == {State.PULLED: places}


def failed(found: Running, reason: Reason) -> Any:
    def looks() -> bool:
        moment = found.service.moment
        return moment is not None and reason in {one.reason for one in moment.picture.sights.values()}

    return looks


def sizes_are_known(found: Running) -> bool:
    moment = found.service.moment
    return moment is not None and all(one.bytes is not None for one in moment.summary.images)


async def test_images_are_there_before_users_come(
    cluster: Cluster, namespace: str, start: Start, fresh: str
) -> None:
    """Also on a node with a taint that only pods with a GPU tolerate."""
    async with start(build_catalog(fresh, "cpu", "gpu")) as found:
        await found.until(pulled(found, 2), what="warm nodes")
        await found.until(found.all_ended, what="end of the pods")
        await found.until(
            lambda: sizes_are_known(found), what="sizes, which kubelets tell in events of their own"
        )
        moment = found.service.moment
        assert moment is not None
        (one, other) = moment.summary.images
        assert {one.pool, other.pool} == {"cpu", "gpu"}
        assert one.bytes is not None
        assert PADDING < one.bytes < 2 * PADDING
        assert one.usual_seconds is not None
        for pod in cluster.get(f"/api/v1/namespaces/{namespace}/pods")["items"]:
            assert pod["status"]["phase"] == "Succeeded"
            assert "nvidia.com/gpu" not in str(pod["spec"]["containers"])
    workspace = with_image(build_pod("workspace", namespace, node="cpu-1"), fresh)
    cluster.apply(workspace)
    wait_until_ready(cluster, namespace, "workspace")
    wait_for_event(cluster, namespace, "workspace", "Pulled", fresh, "already present on machine")


async def test_warm_is_warm_for_those_who_may(
    cluster: Cluster, namespace: str, start: Start, registry: Registry, fresh: str
) -> None:
    image = registry.with_login(fresh)
    workspaces = f"{namespace}-w"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": workspaces}})
    try:
        # The same login under the same name, as an admin is told to provide it.
        for where in (namespace, workspaces):
            cluster.apply(registry.pull_secret("regcred", where))
        catalog = build_catalog(image, "cpu", pull_secrets=("regcred",))
        async with start(catalog) as found:
            await found.until(pulled(found), what="warm node")
        # From now on the registry answers nobody.
        registry.faults.set(Fault(kind=Kind.MANIFESTS, repository=repository(fresh), status=503))
        insider = with_image(build_pod("insider", workspaces, node="cpu-1"), image)
        insider["spec"]["imagePullSecrets"] = [{"name": "regcred"}]
        cluster.apply(insider)
        wait_until_ready(cluster, workspaces, "insider")
        # Without the secret what is on the node is not warm, and the prepuller does not say so.
        async with start(build_catalog(image, "cpu")) as found:
            await found.until(lambda: bool(found.states()), what="look")
            assert found.states()[State.PULLED] == 0
            registry.faults.clear()
            await found.until(failed(found, Reason.IMAGE_ACCESS), what="refusal")
            assert found.states()[State.PULLED] == 0
    finally:
        cluster.kubectl("delete", "namespace", workspaces, "--wait=false")


async def test_a_secret_that_is_not_there_is_named(start: Start, registry: Registry, fresh: str) -> None:
    catalog = build_catalog(registry.with_login(fresh), "cpu", pull_secrets=("absent",))
    async with start(catalog) as found:
        await found.until(failed(found, Reason.SECRET_MISSING), what="refusal")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"kind": Kind.BLOBS, "status": 503}, Reason.REGISTRY_UNREACHABLE),
        ({"kind": Kind.MANIFESTS, "status": 429}, Reason.REGISTRY_BUSY),
        ({"kind": Kind.MANIFESTS, "status": 401}, Reason.IMAGE_ACCESS),
        ({"kind": Kind.MANIFESTS, "status": 404}, Reason.IMAGE_NOT_FOUND),
    ],
    ids=["blobs-503", "manifests-429", "manifests-401", "manifests-404"],
)
async def test_a_failing_registry_is_a_reason_and_then_heals(
    fault: dict[str, Any],
    reason: Reason,
    start: Start,
    registry: Registry,
    fresh: str,
) -> None:
    registry.faults.set(Fault(repository=repository(fresh), **fault))
    async with start(build_catalog(fresh, "cpu")) as found:
        await found.until(failed(found, reason), what="refusal")
        registry.faults.clear()
        await found.until(pulled(found), what="warm node")


async def test_a_cut_layer_is_no_failure(start: Start, registry: Registry, fresh: str) -> None:
    cut = {"cut_after_bytes": PADDING // 2, "times": 1}
    registry.faults.set(Fault(kind=Kind.BLOBS, repository=repository(fresh), **cut))
    async with start(build_catalog(fresh, "cpu")) as found:
        await found.until(pulled(found), what="warm node")
        assert list(found.service.prepuller.judge.troubles) == []


@pytest.mark.parametrize("fault", [{"hang": True}, {"bytes_per_second": 1000}], ids=["hanging", "slow"])
async def test_what_takes_too_long_is_given_up_and_nothing_is_pulled_beside_it(
    fault: dict[str, Any],
    start: Start,
    registry: Registry,
    fresh: str,
) -> None:
    registry.faults.set(Fault(kind=Kind.BLOBS, repository=repository(fresh), **fault))
    async with start(build_catalog(fresh, "cpu"), timeout="8s") as found:
        await found.until(failed(found, Reason.TIMEOUT), what="end of patience")
        # The node does not let go while its pull lasts: until then there is no second one.
        assert found.requests["POST pods"] == 1
        registry.faults.clear()
        await found.until(pulled(found), what="warm node")
