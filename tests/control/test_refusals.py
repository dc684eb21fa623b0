"""Every way in which a real API server refuses a pod, read into one shape."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, ApiException, CoreV1Api

from hub_ext.quota.refusals import explain, read_answer
from hub_ext.quota.verdicts import Fault, Reason, Refusal
from tests.control.bare import BareControlPlane, admission_file, bare_control_plane
from tests.devcluster.kube import KubeCluster
from tests.devcluster.pki import Authority
from tests.devcluster.rules import enforce
from tests.devcluster.waiting import PATIENCE_SECONDS

GPU = "nvidia.com/gpu"
LIMITS = {"cpu": "100m", "memory": "64Mi"}


def build_pod(
    name: str = "jupyter-ada", limits: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    container = {
        "name": "notebook",
        "image": "registry.example.com/none:1",
        "resources": {"limits": dict(LIMITS if limits is None else limits)},
    }
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


@pytest.fixture
async def client(cluster: KubeCluster) -> AsyncIterator[ApiClient]:
    async with await config.new_client_from_config(config_file=str(cluster.kubeconfig)) as made:
        yield made


async def refused(client: ApiClient, namespace: str, pod: Mapping[str, Any]) -> Refusal:
    """Create a pod and say what the API server answered, as the spawner reads it.

    A quota that the API server has not taken in yet is waited for, as the spawner does.
    """
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with pytest.raises(ApiException) as caught:
                await CoreV1Api(client).create_namespaced_pod(namespace, pod)
            refusal = explain(read_answer(caught.value.status, caught.value.body))
            if refusal.reason is not Reason.QUOTA_NOT_READY:
                return refusal


def made_in(namespace: str, kind: str, spec: Mapping[str, Any], name: str = "rules") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def with_quota(cluster: KubeCluster, namespace: str, **hard: str) -> None:
    keys = {key.replace("gpus", f"requests.{GPU}").replace("_", "."): value for key, value in hard.items()}
    cluster.apply(made_in(namespace, "ResourceQuota", {"hard": keys}))
    cluster.wait_for("resourcequota/rules", "jsonpath={.status.used}", namespace=namespace)


async def test_exceeded_quota(cluster: KubeCluster, client: ApiClient, namespace: str) -> None:
    with_quota(cluster, namespace, gpus="2", limits_cpu="4")
    big = build_pod(limits={**LIMITS, "cpu": "5", GPU: "3"})
    refusal = await refused(client, namespace, big)
    assert (refusal.reason, refusal.fault, refusal.component) == (Reason.NAMESPACE_QUOTA, Fault.USER, "rules")
    assert [(s.resource, s.asked, s.used, s.limit) for s in refusal.shortages] == [
        ("limits.cpu", 5000, 0, 4000),
        (f"requests.{GPU}", 3, 0, 2),
    ]
    assert refusal.text.startswith("This workspace needs 5 CPU cores, but the namespace may have 4 CPU cores")
    await CoreV1Api(client).create_namespaced_pod(namespace, build_pod("first", {**LIMITS, GPU: "2"}))
    refusal = await refused(client, namespace, build_pod(limits={**LIMITS, GPU: "1"}))
    assert refusal.text.startswith("The namespace has 2 of 2 GPUs in use, and this workspace needs 1 GPU.")


async def test_a_limits_key_for_gpus_is_taken_and_bounds_nothing(
    cluster: KubeCluster, client: ApiClient, namespace: str
) -> None:
    cluster.apply(made_in(namespace, "ResourceQuota", {"hard": {f"limits.{GPU}": "1", "pods": "9"}}))
    cluster.wait_for("resourcequota/rules", "jsonpath={.status.used}", namespace=namespace)
    await CoreV1Api(client).create_namespaced_pod(namespace, build_pod(limits={**LIMITS, GPU: "3"}))


async def test_limits_that_the_quota_requires(
    cluster: KubeCluster, client: ApiClient, namespace: str
) -> None:
    with_quota(cluster, namespace, limits_cpu="4", limits_memory="4Gi", requests_memory="4Gi")
    refusal = await refused(client, namespace, build_pod(limits={"cpu": "1"}))
    assert (refusal.reason, refusal.fault) == (Reason.LIMITS_REQUIRED, Fault.ADMIN)
    assert "states no limit of memory and no request of memory, which" in refusal.text


async def test_sizes_outside_a_limit_range(cluster: KubeCluster, client: ApiClient, namespace: str) -> None:
    limits = [
        {
            "type": "Container",
            "max": {GPU: "1", "cpu": "2"},
            "default": {GPU: "1"},
            "defaultRequest": {GPU: "1"},
        },
        {"type": "Pod", "min": {"memory": "128Mi"}, "maxLimitRequestRatio": {"cpu": "2"}},
    ]
    cluster.apply(made_in(namespace, "LimitRange", {"limits": limits}))
    pod = build_pod(limits={"cpu": "3", "memory": "64Mi", GPU: "2"})
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "500m", "memory": "64Mi"}
    refusal = await refused(client, namespace, pod)
    assert (refusal.reason, refusal.fault) == (Reason.LIMIT_RANGE, Fault.ADMIN)
    for part in (
        "at most 1 GPU per container, and it has 2",
        "at most 2 CPU cores per container, and it has 3",
        "at least 128 MiB of memory, and it has 64 MiB",
        "a limit of CPU cores of at most 2 times the request, and it has 6 times",
    ):
        assert part in refusal.text


async def test_pod_security(cluster: KubeCluster, client: ApiClient, namespace: str) -> None:
    enforce(cluster, namespace)
    refusal = await refused(client, namespace, build_pod())
    assert (refusal.reason, refusal.component) == (Reason.POD_SECURITY, "restricted:latest")
    assert "allowPrivilegeEscalation != false" in refusal.detail


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({"serviceAccountName": "work"}, 'serviceaccount "work"'),
        ({"priorityClassName": "urgent"}, "PriorityClass with name urgent"),
        ({"runtimeClassName": "nvidia"}, 'RuntimeClass "nvidia"'),
    ],
)
async def test_missing_objects(client: ApiClient, namespace: str, spec: dict[str, Any], missing: str) -> None:
    refusal = await refused(client, namespace, build_pod(**spec))
    assert (refusal.reason, refusal.fault, refusal.component) == (
        Reason.MISSING_OBJECT,
        Fault.ADMIN,
        missing,
    )
    assert missing in refusal.text


async def test_a_namespace_that_does_not_exist(client: ApiClient) -> None:
    refusal = await refused(client, "nowhere-at-all", build_pod())
    assert (refusal.reason, refusal.component) == (Reason.MISSING_OBJECT, 'namespaces "nowhere-at-all"')


async def test_a_pod_that_is_not_valid(client: ApiClient, namespace: str) -> None:
    refusal = await refused(client, namespace, build_pod(limits={**LIMITS, GPU: "500m"}))
    assert (refusal.reason, refusal.fault) == (Reason.INVALID_POD, Fault.ADMIN)
    assert "must be an integer" in refusal.detail


async def test_a_name_that_is_taken_or_being_freed(
    client: ApiClient, cluster: KubeCluster, namespace: str
) -> None:
    core = CoreV1Api(client)
    held = build_pod(nodeSelector={"nowhere": "at-all"})
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await core.create_namespaced_pod(namespace, held)
    taken = await refused(client, namespace, build_pod())
    await core.delete_namespaced_pod("jupyter-ada", namespace, grace_period_seconds=0)
    freed = await refused(client, namespace, build_pod())
    release = json.dumps([{"op": "remove", "path": "/metadata/finalizers"}])
    cluster.kubectl("patch", "pod", "jupyter-ada", f"-n={namespace}", "--type=json", f"-p={release}")
    assert {(one.reason, one.retry) for one in (taken, freed)} == {(Reason.NAME_TAKEN, True)}


async def test_a_namespace_that_ends(cluster: KubeCluster, client: ApiClient, namespace: str) -> None:
    core, ending = CoreV1Api(client), f"{namespace[:50]}-ending"
    cluster.kubectl("create", "namespace", ending)
    cluster.kubectl("create", "configmap", "held", f"-n={ending}")
    hold = json.dumps({"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.kubectl("patch", "configmap", "held", f"-n={ending}", "--type=merge", f"-p={hold}")
    await core.delete_namespace(ending)
    refusal = await refused(client, ending, build_pod())
    free = json.dumps({"metadata": {"finalizers": None}})
    cluster.kubectl("patch", "configmap", "held", f"-n={ending}", "--type=merge", f"-p={free}")
    assert (refusal.reason, refusal.component) == (Reason.NAMESPACE_ENDING, ending)


async def test_an_account_that_may_not(cluster: KubeCluster, namespace: str) -> None:
    within = f"--namespace={namespace}"
    cluster.kubectl("create", "serviceaccount", "guest", within)
    settings = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--output=json"))
    settings["users"][0]["user"] = {"token": cluster.kubectl("create", "token", "guest", within).strip()}
    async with await config.new_client_from_config_dict(settings) as guest:
        refusal = await refused(guest, namespace, build_pod())
    assert (refusal.reason, refusal.fault) == (Reason.NOT_PERMITTED, Fault.ADMIN)


# Webhooks and policies --------------------------------------------------------------------------------------


@pytest.fixture
def hook(cluster: KubeCluster, namespace: str) -> Iterator[Callable[[str, str | None], None]]:
    """Register a webhook for the pods of the test's namespace."""
    name = f"test-{namespace}"

    def register(url: str, ca: str | None) -> None:
        where = {"url": url, **({"caBundle": ca} if ca else {})}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        webhook = {
            "name": "guard.example.org",
            "clientConfig": where,
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "timeoutSeconds": 30,
        }
        cluster.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": name},
                "webhooks": [webhook],
            }
        )

    yield register
    cluster.kubectl("delete", "validatingwebhookconfiguration", name, "--ignore-not-found")


async def eventually(client: ApiClient, namespace: str, reason: Reason) -> Refusal:
    """Create pods until one is refused for a reason: the API server takes new rules in with a delay."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await CoreV1Api(client).create_namespaced_pod(namespace, build_pod())
            except ApiException as error:
                refusal = explain(read_answer(error.status, error.body))
                if refusal.reason is reason:
                    return refusal
            with suppress(ApiException):
                await CoreV1Api(client).delete_namespaced_pod(
                    "jupyter-ada", namespace, grace_period_seconds=0
                )


async def test_a_webhook_that_does_not_answer(
    client: ApiClient, namespace: str, hook: Callable[[str, str | None], None]
) -> None:
    hook("https://127.0.0.1:1/", None)
    refusal = await eventually(client, namespace, Reason.WEBHOOK_UNREACHABLE)
    assert (refusal.reason, refusal.fault, refusal.retry, refusal.component) == (
        Reason.WEBHOOK_UNREACHABLE,
        Fault.CLUSTER,
        True,
        "guard.example.org",
    )
    assert "connection refused" in refusal.detail


async def _refuse(request: web.Request) -> web.Response:
    """Refuse as a webhook does, with the explanation that the path asks for."""
    review = await request.json()
    explained = {"status": {"message": "GPUs only with a cost center"}}
    extra = explained if request.match_info["how"] == "explained" else {}
    response = {"uid": review["request"]["uid"], "allowed": False, **extra}
    return web.json_response(
        {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    )


@pytest.fixture
async def guard(tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """A webhook server: its address and the authority that signed it, as a webhook configuration has it."""
    authority = Authority(tmp_path, "guard")
    pair = authority.issue("guard", "guard", hosts=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    app = web.Application()
    app.router.add_post("/{how}", _refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    (_, port), *_ = runner.addresses
    yield f"https://127.0.0.1:{port}", base64.b64encode(authority.certificate.read_bytes()).decode()
    await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/explained", "A rule of the cluster refuses this workspace: GPUs only with a cost center."),
        ("/silent", "A rule of the cluster refuses this workspace. Please tell an administrator."),
    ],
)
async def test_a_webhook_that_refuses(
    client: ApiClient,
    namespace: str,
    hook: Callable[[str, str | None], None],
    guard: tuple[str, str],
    path: str,
    text: str,
) -> None:
    address, ca = guard
    hook(f"{address}{path}", ca)
    refusal = await eventually(client, namespace, Reason.WEBHOOK_DENIED)
    assert (refusal.reason, refusal.retry, refusal.component) == (
        Reason.WEBHOOK_DENIED,
        False,
        "guard.example.org",
    )
    assert refusal.text.startswith(text)


async def test_a_policy_that_refuses(cluster: KubeCluster, client: ApiClient, namespace: str) -> None:
    name = f"test-{namespace}"
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    group = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "no pods today"}],
        },
    }
    binding = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": selector},
    }
    try:
        cluster.apply(policy, binding)
        refusal = await eventually(client, namespace, Reason.POLICY_DENIED)
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            cluster.kubectl("delete", kind, name, "--ignore-not-found")
    assert (refusal.reason, refusal.component) == (Reason.POLICY_DENIED, name)
    assert "A rule of the cluster refuses this workspace: no pods today." in refusal.text


# What only a bare control plane shows -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareControlPlane]:
    """No quota controller, and GPUs that are given out only where a quota covers them."""
    folder = tmp_path_factory.mktemp("bare")
    limited = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "ResourceQuotaConfiguration",
        "limitedResources": [{"resource": "pods", "matchContains": ["nvidia.com/"]}],
    }
    file = admission_file(folder / "config", {"ResourceQuota": limited})
    with bare_control_plane(folder / "plane", f"--admission-control-config-file={file}") as made:
        yield made


@pytest.fixture
async def bare_client(bare: BareControlPlane) -> AsyncIterator[ApiClient]:
    kubeconfig = bare.kubeconfig(bare.plane.server)
    async with await config.new_client_from_config(config_file=str(kubeconfig)) as made:
        yield made


async def test_gpus_that_no_quota_covers(bare: BareControlPlane, bare_client: ApiClient) -> None:
    bare.namespace("uncovered")
    refusal = await refused(bare_client, "uncovered", build_pod(limits={**LIMITS, GPU: "1"}))
    assert (refusal.reason, refusal.component) == (Reason.QUOTA_ABSENT, f"requests.{GPU}")


async def test_a_quota_that_is_not_counted_yet(bare: BareControlPlane, bare_client: ApiClient) -> None:
    bare.namespace("uncounted")
    quota = {"metadata": {"name": "fresh"}, "spec": {"hard": {"pods": "4"}}}
    core = CoreV1Api(bare_client)
    await core.create_namespaced_resource_quota("uncounted", quota)
    await core.patch_namespaced_resource_quota_status(
        "fresh",
        "uncounted",
        {"status": {"hard": {"pods": "4"}}},
        _content_type="application/merge-patch+json",
    )
    refusal = await eventually(bare_client, "uncounted", Reason.QUOTA_NOT_READY)
    assert (refusal.reason, refusal.retry, refusal.component) == (Reason.QUOTA_NOT_READY, True, "fresh")


async def test_a_quota_that_others_change_at_the_same_time(
    bare: BareControlPlane, bare_client: ApiClient
) -> None:
    """The 409 is about the quota, not about a pod of the same name: nothing may be killed because of it."""
    bare.namespace("contended")
    core = CoreV1Api(bare_client)
    await core.create_namespaced_resource_quota(
        "contended", {"metadata": {"name": "busy"}, "spec": {"hard": {"pods": "5000"}}}
    )
    stop = asyncio.Event()

    async def disturb(index: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            status = {
                "metadata": {"annotations": {f"n{index}": str(number)}},
                "status": {"hard": {"pods": "5000"}, "used": {"pods": str(number % 100)}},
            }
            with suppress(ApiException):  # one of many that did not get through makes no difference
                await core.patch_namespaced_resource_quota_status(
                    "busy", "contended", status, _content_type="application/merge-patch+json"
                )

    async def create(index: int) -> Refusal | None:
        try:
            await core.create_namespaced_pod("contended", build_pod(f"pod-{index}"))
        except ApiException as error:
            return explain(read_answer(error.status, error.body))
        return None

    disturbers = [asyncio.create_task(disturb(index)) for index in range(16)]
    try:
        refusal = None
        async with asyncio.timeout(PATIENCE_SECONDS):
            index = 0
            while refusal is None or refusal.reason is not Reason.QUOTA_CONFLICT:
                found = await asyncio.gather(*(create(index + one) for one in range(16)))
                index += 16
                found.sort(key=lambda one: one is not None and one.reason is Reason.QUOTA_CONFLICT)
                refusal = found[-1]
    finally:
        stop.set()
        await asyncio.gather(*disturbers)
    assert (refusal.reason, refusal.retry, refusal.component) == (Reason.QUOTA_CONFLICT, True, "busy")
