"""The shared watch on a real API server: what it sees, what it may not see, and what it survives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, CoreV1Api

from hub_ext.cluster import sources as cluster_sources
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.sources import Source, sources
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.waiting import explain
from hub_ext.cluster.waits import Around, Stage, WaitReason
from hub_ext.cluster.watch import ClusterWatch, Health, utc_now
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import Weights
from hub_ext.quota.usage import Owner
from tests.control.bare import BareControlPlane, Wire, bare_control_plane
from tests.devcluster.kube import KubeCluster
from tests.devcluster.waiting import PATIENCE_SECONDS

GPU = "nvidia.com/gpu"
DEADLINE = PATIENCE_SECONDS
NO_WEIGHTS = Weights(by_pool={}, by_resource={})


def build_pod(name: str = "jupyter-ada", *, gpus: int = 1, **annotations: str) -> dict[str, Any]:
    limits = {"cpu": "100m", "memory": "64Mi", **({GPU: str(gpus)} if gpus else {})}
    container = {"name": "notebook", "image": "registry.example.com/none:1", "resources": {"limits": limits}}
    return {
        "metadata": {
            "name": name,
            "labels": {"component": "singleuser-server"},
            "annotations": {"hub.jupyter.org/username": name.removeprefix("jupyter-"), **annotations},
        },
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"key": GPU, "operator": "Exists"}],
        },
    }


@asynccontextmanager
async def watching(api: ApiClient, *namespaces: str, kueue: bool = True) -> AsyncIterator[ClusterWatch]:
    watch = ClusterWatch(ClusterState(NO_WEIGHTS), sources(api, namespaces, kueue=kueue))
    await watch.start()
    try:
        async with asyncio.timeout(DEADLINE):
            await watch.loaded()
        yield watch
    finally:
        await watch.stop()


async def until(
    watch: ClusterWatch, namespace: str, condition: Callable[[], Any], name: str = "jupyter-ada"
) -> Any:
    """Wait until a condition holds, woken by the watch itself."""
    async with asyncio.timeout(DEADLINE), watch.following(namespace, name) as changed:
        while not (found := condition()):
            await changed.wait()
            changed.clear()
        return found


async def until_health(watch: ClusterWatch, wanted: Health, kind: str) -> None:
    """Health is polled: nobody but administrators looks at it."""
    async with asyncio.timeout(DEADLINE):
        while watch.health()[kind] is not wanted:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.05)


@pytest.fixture
async def client(cluster: KubeCluster) -> AsyncIterator[ApiClient]:
    async with await config.new_client_from_config(config_file=str(cluster.kubeconfig)) as made:
        yield made


@pytest.mark.usefixtures("machines")
async def test_a_start_from_request_to_end(client: ApiClient, namespace: str) -> None:
    core = CoreV1Api(client)
    asked = Resources({GPU: 1})
    async with watching(client, namespace) as watch:
        before = watch.snapshot().availability(asked, None)
        assert before.exact
        created = await core.create_namespaced_pod(
            namespace, build_pod(**{"devcluster.test/pull-delay": "1s"})
        )

        def running() -> Any:
            pod = watch.pod(namespace, "jupyter-ada")
            return pod if pod and pod.holds("Ready") else None

        pod = await until(watch, namespace, running)
        assert pod.uid == created.metadata.uid
        snapshot = watch.snapshot()
        assert snapshot.node_of(pod) is not None
        assert snapshot.used[pod.node][GPU] >= 1
        assert watch.state.observed.usage(Owner(user="ada")).user[GPU] == 1
        reasons = await until(
            watch,
            namespace,
            lambda: (
                (found := [event.reason for event in watch.events(pod.uid)])
                and "Scheduled" in found
                and found
            ),
        )
        assert "Pulling" in reasons
        assert explain(pod, watch.events(pod.uid), Around(now=utc_now())).stage is Stage.RUNNING
        assert "JUPYTERHUB" not in json.dumps(watch.state.raw_pods)

        await core.delete_namespaced_pod("jupyter-ada", namespace)
        await until(watch, namespace, lambda: watch.pod(namespace, "jupyter-ada") is None)
        assert watch.state.observed.usage(Owner(user="ada")).user[GPU] == 0


@pytest.mark.usefixtures("machines")
async def test_a_start_that_no_node_takes_is_explained(client: ApiClient, namespace: str) -> None:
    async with watching(client, namespace) as watch:
        await CoreV1Api(client).create_namespaced_pod(namespace, build_pod(gpus=900))

        def told() -> Any:
            pod = watch.pod(namespace, "jupyter-ada")
            if pod is None:
                return None
            place = watch.snapshot().place(pod.requests, None)
            wait = explain(pod, watch.events(pod.uid), Around(now=utc_now(), place=place))
            return wait if wait.reason is not WaitReason.SCHEDULING else None

        wait = await until(watch, namespace, told)
        assert (wait.reason, wait.fatal) == (WaitReason.TOO_LARGE, True)
        assert GPU in wait.detail


async def test_quotas_and_limit_ranges_are_seen(
    cluster: KubeCluster, client: ApiClient, namespace: str
) -> None:
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {f"requests.{GPU}": "1"}}}
    limits = {
        "metadata": {"name": "sizes"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
    }
    core = CoreV1Api(client)
    await core.create_namespaced_resource_quota(namespace, quota)
    await core.create_namespaced_limit_range(namespace, limits)
    cluster.wait_for("resourcequota/gpus", "jsonpath={.status.used}", namespace=namespace)
    async with watching(client, namespace) as watch:
        (found,) = watch.snapshot().quotas_of(namespace) or ()
        assert (found.name, found.hard[f"requests.{GPU}"]) == ("gpus", 1)
        assert watch.snapshot().limit_ranges_of(namespace)[0]["spec"]["limits"][0]["default"] == {"cpu": "1"}
        assert watch.health()[f"workloads in {namespace}"] in {Health.LIVE, Health.DENIED}


async def test_without_rights_parts_are_unknown_until_they_are_granted(
    cluster: KubeCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub_ext.cluster.watch.DENIED_DELAY", 0.2)
    within, role = f"--namespace={namespace}", f"nodes-{namespace}"
    cluster.kubectl("create", "serviceaccount", "hub", within)
    cluster.kubectl("create", "role", "hub", "--verb=list,watch", "--resource=pods,events", within)
    cluster.kubectl("create", "rolebinding", "hub", "--role=hub", f"--serviceaccount={namespace}:hub", within)
    settings = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--output=json"))
    settings["users"][0]["user"] = {"token": cluster.kubectl("create", "token", "hub", within).strip()}
    try:
        async with (
            await config.new_client_from_config_dict(settings) as hub,
            watching(hub, namespace) as watch,
        ):
            await until_health(watch, Health.LIVE, f"pods in {namespace}")
            assert watch.health()["nodes"] is Health.DENIED
            found = watch.snapshot().availability(Resources({GPU: 1}), None)
            assert (found.supply.value, found.free) == ("unknown", None)
            assert watch.snapshot().quotas_of(namespace) is None
            cluster.kubectl("create", "clusterrole", role, "--verb=list,watch", "--resource=nodes")
            cluster.kubectl(
                "create",
                "clusterrolebinding",
                role,
                f"--clusterrole={role}",
                f"--serviceaccount={namespace}:hub",
            )
            await until_health(watch, Health.LIVE, "nodes")
            snapshot = watch.snapshot()
            assert snapshot.nodes
            assert not snapshot.availability(Resources({GPU: 1}), None).exact
    finally:
        for kind in ("clusterrolebinding", "clusterrole"):
            cluster.kubectl("delete", kind, role, "--ignore-not-found")


# Faults -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareControlPlane]:
    with bare_control_plane(tmp_path_factory.mktemp("bare") / "plane") as made:
        yield made


@asynccontextmanager
async def wired(
    bare: BareControlPlane, namespace: str
) -> AsyncIterator[tuple[ClusterWatch, Wire, list[str]]]:
    """Watch through a wire that can be cut; the list has an entry for each page of pods asked for."""
    wire, lists = Wire(bare.plane.port), []
    await wire.mend()
    kubeconfig = bare.kubeconfig(f"https://127.0.0.1:{wire.port}")

    async def counting(*args: Any, **query: Any) -> Any:
        if not query.get("watch"):
            lists.append(query.get("_continue", ""))
        return await core.list_namespaced_pod(*args, **query)

    async with await config.new_client_from_config(config_file=str(kubeconfig)) as api:
        core = CoreV1Api(api)
        source = Source(
            kind=Kind.PODS, namespace=namespace, call=counting, arguments={"namespace": namespace}
        )
        watch = ClusterWatch(ClusterState(NO_WEIGHTS), [source])
        await watch.start()
        try:
            async with asyncio.timeout(DEADLINE):
                await watch.loaded()
            yield watch, wire, lists
        finally:
            await watch.stop()
    await wire.cut()


def create(bare: BareControlPlane, namespace: str, name: str) -> None:
    bare.api.request("POST", f"/api/v1/namespaces/{namespace}/pods", build_pod(name, gpus=0))


def delete(bare: BareControlPlane, namespace: str, name: str) -> None:
    bare.api.request(
        "DELETE",
        f"/api/v1/namespaces/{namespace}/pods/{name}",
        {"gracePeriodSeconds": 0, "kind": "DeleteOptions"},
    )


async def test_a_cut_connection_is_taken_up_where_it_was(bare: BareControlPlane) -> None:
    bare.namespace("cut")
    create(bare, "cut", "jupyter-old")
    async with wired(bare, "cut") as (watch, wire, lists):
        await wire.cut()
        create(bare, "cut", "jupyter-ada")
        delete(bare, "cut", "jupyter-old")
        await until_health(watch, Health.STALE, "pods in cut")
        assert watch.pod("cut", "jupyter-old") is not None, "what was known stays while nothing is heard"
        await wire.mend()
        await until(watch, "cut", lambda: watch.pod("cut", "jupyter-old") is None, "jupyter-old")
        await until(watch, "cut", lambda: watch.pod("cut", "jupyter-ada"))
        assert watch.health()["pods in cut"] is Health.LIVE
        assert len(lists) == 1, "no second list was needed"


async def test_an_api_server_that_restarts_is_waited_for(bare: BareControlPlane) -> None:
    bare.namespace("restart")
    create(bare, "restart", "jupyter-old")
    async with wired(bare, "restart") as (watch, _, lists):
        await asyncio.to_thread(bare.restart_server)
        create(bare, "restart", "jupyter-ada")
        await until(watch, "restart", lambda: watch.pod("restart", "jupyter-ada"))
        assert watch.pod("restart", "jupyter-old") is not None
        assert len(lists) <= 2


async def test_a_resource_version_that_the_server_has_forgotten_means_one_more_list(
    bare: BareControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nothing is heard pods come and go, and the server that comes back remembers none of it."""
    monkeypatch.setattr(cluster_sources, "PAGE", 2)
    bare.namespace("old")
    for name in ("jupyter-gone", "jupyter-stays"):
        create(bare, "old", name)
    async with wired(bare, "old") as (watch, wire, lists):
        await wire.cut()
        delete(bare, "old", "jupyter-gone")
        for number in range(4):
            create(bare, "old", f"jupyter-new-{number}")
        await asyncio.to_thread(bare.restart_server)
        create(bare, "old", "jupyter-ada")
        await wire.mend()
        await until(watch, "old", lambda: watch.pod("old", "jupyter-ada"))
        await until(watch, "old", lambda: watch.pod("old", "jupyter-gone") is None, "jupyter-gone")
        assert len(watch.snapshot().pods) == 6
        assert lists.count("") == 2
        assert len(lists) == 1 + 3, "the second list came in three pages"
