"""Starts of a hub on a real API server: promises against what is really created, over restarts of the hub."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, ApiException, CoreV1Api

from hub_ext.catalog.compose import Workspace, compose
from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.cluster.hub import HubCluster, Start
from hub_ext.cluster.offer import Rules
from hub_ext.cluster.sources import sources
from hub_ext.cluster.starts import Outcome
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.waits import Stage
from hub_ext.cluster.watch import ClusterWatch
from hub_ext.quota.demand import weights_of
from hub_ext.quota.refusals import explain, read_answer
from hub_ext.quota.usage import Owner
from hub_ext.quota.verdicts import Reason, Refusal
from tests.devcluster.kube import KubeCluster
from tests.devcluster.waiting import PATIENCE_SECONDS

GPU = "nvidia.com/gpu"
DEADLINE = PATIENCE_SECONDS
LIMIT = 5


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(
        {
            "apiVersion": "gpu-workspaces/v1",
            "kind": "Catalog",
            "images": {"base": {"ref": "registry.example.com/b@sha256:" + "a" * 64, "displayName": "Base"}},
            "pools": {"gpu": {"gpu": {"product": "NVIDIA-H200", "sharing": "exclusive"}}},
            "teams": {"nlp": {"groups": ["nlp"], "quota": {GPU: LIMIT}, "perUser": {GPU: 2}}},
            "profiles": [
                {
                    "name": "one-gpu",
                    "version": 1,
                    "displayName": "One GPU",
                    "images": ["base"],
                    "resources": {"cpu": "100m", "memory": "64Mi", "gpu": {"pool": "gpu"}},
                }
            ],
        }
    )


@pytest.fixture
def workspace(catalog: Catalog) -> Workspace:
    return compose(catalog, catalog.profiles[0], {})


@pytest.fixture
async def client(cluster: KubeCluster) -> AsyncIterator[ApiClient]:
    async with await config.new_client_from_config(config_file=str(cluster.kubeconfig)) as made:
        yield made


@asynccontextmanager
async def a_hub(client: ApiClient, catalog: Catalog, namespace: str) -> AsyncIterator[HubCluster]:
    rules = Rules(catalog=catalog, weights=weights_of(catalog))
    watch = ClusterWatch(ClusterState(rules.weights), sources(client, [namespace]))
    hub = HubCluster(watch, rules)
    async with asyncio.timeout(DEADLINE):
        await hub.ready()
    try:
        yield hub
    finally:
        await watch.stop()


def manifest(namespace: str, user: str, server: str = "") -> dict[str, Any]:
    limits = {"cpu": "100m", "memory": "64Mi", GPU: "1"}
    return {
        "metadata": {
            "name": f"jupyter-{user}" + (f"--{server}" if server else ""),
            "namespace": namespace,
            "labels": {
                "component": "singleuser-server",
                "gpu-workspaces.jupyter.org/team": "nlp",
                "gpu-workspaces.jupyter.org/pool": "gpu",
            },
            "annotations": {"hub.jupyter.org/username": user, "hub.jupyter.org/servername": server},
        },
        "spec": {
            "tolerations": [{"key": GPU, "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "notebook",
                    "image": "registry.example.com/none:1",
                    "resources": {"limits": limits},
                }
            ],
        },
    }


async def start(
    hub: HubCluster, client: ApiClient, pod: dict[str, Any], workspace: Workspace
) -> Start | Refusal:
    """Start as a spawner does, up to the pod's creation."""
    metadata = pod["metadata"]
    begun = hub.begin(
        workspace,
        Owner(user=metadata["annotations"]["hub.jupyter.org/username"], team="nlp"),
        namespace=metadata["namespace"],
        name=metadata["name"],
        server=metadata["annotations"]["hub.jupyter.org/servername"],
    )
    if isinstance(begun, Refusal):
        return begun
    if refusal := begun.take(pod):
        begun.refused(refusal.reason.value)
        return refusal
    try:
        await CoreV1Api(client).create_namespaced_pod(metadata["namespace"], pod)
    except ApiException as error:
        refusal = explain(read_answer(error.status, error.body))
        begun.refused(refusal.reason.value)
        return refusal
    return begun


async def until_running(begun: Start) -> list[Stage]:
    """Follow a start to its end; gives the stages that were told."""
    stages = []
    async with asyncio.timeout(DEADLINE):
        async for wait in begun.waits():
            stages.append(wait.stage)
            assert not wait.fatal, wait
            if wait.stage is Stage.RUNNING:
                begun.succeeded()
    return stages


@pytest.mark.usefixtures("machines")
async def test_two_named_servers_in_the_same_instant_with_room_for_one(
    client: ApiClient, catalog: Catalog, workspace: Workspace, namespace: str
) -> None:
    async with a_hub(client, catalog, namespace) as hub:
        first = await start(hub, client, manifest(namespace, "ada"), workspace)
        assert isinstance(first, Start)
        found = await asyncio.gather(
            *(start(hub, client, manifest(namespace, "ada", name), workspace) for name in ("a", "b"))
        )
        assert sorted(type(one).__name__ for one in found) == ["Refusal", "Start"]
        (refusal,) = (one for one in found if isinstance(one, Refusal))
        assert refusal.reason is Reason.USER_LIMIT
        stages = await until_running(first)
        assert stages[-1] is Stage.RUNNING
        (record,) = hub.starts.records
        assert (record.outcome, record.pool) == (Outcome.STARTED, "gpu")
        assert sum(record.phases.values()) == pytest.approx(record.seconds, abs=0.01)


@pytest.mark.usefixtures("machines")
async def test_many_starts_at_once_and_hubs_that_restart_between_never_overshoot(
    client: ApiClient, catalog: Catalog, workspace: Workspace, namespace: str
) -> None:
    core = CoreV1Api(client)
    users = [f"user-{number}" for number in range(12)]
    for _ in range(3):
        async with a_hub(client, catalog, namespace) as hub:
            found = await asyncio.gather(
                *(start(hub, client, manifest(namespace, user), workspace) for user in users)
            )
            pods = (await core.list_namespaced_pod(namespace)).items
            assert len(pods) <= LIMIT
            reasons = Counter(one.reason for one in found if isinstance(one, Refusal))
            assert reasons[Reason.TEAM_LIMIT] + len(pods) >= len(users)
            usage = hub.bookings.usage(Owner(user="user-0", team="nlp"))
            assert usage.team[GPU] == LIMIT
        # The next hub finds one workspace gone and the starts of this one half done.
        await core.delete_namespaced_pod(pods[0].metadata.name, namespace)
    assert len((await core.list_namespaced_pod(namespace)).items) >= LIMIT - 1


async def test_a_quota_of_the_namespace_has_the_last_word_and_gives_the_promise_back(
    cluster: KubeCluster, client: ApiClient, catalog: Catalog, workspace: Workspace, namespace: str
) -> None:
    core = CoreV1Api(client)
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {f"requests.{GPU}": "0"}}}
    await core.create_namespaced_resource_quota(namespace, quota)
    cluster.wait_for("resourcequota/gpus", "jsonpath={.status.used}", namespace=namespace)
    async with a_hub(client, catalog, namespace) as hub:
        offer = hub.offer(workspace, Owner(user="ada", team="nlp"), namespace=namespace)
        assert offer.refusal is not None
        assert offer.refusal.reason is Reason.NAMESPACE_QUOTA, "the page knows it before"
        refusal = await start(hub, client, manifest(namespace, "ada"), workspace)
        assert isinstance(refusal, Refusal)
        assert refusal.text == offer.refusal.text, "one text everywhere"
        assert hub.bookings.promised() == ()
        assert not hub.bookings.usage(Owner(user="ada", team="nlp")).team
