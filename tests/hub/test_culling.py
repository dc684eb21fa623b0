"""The idle-culler as a process of a real hub: servers, pods, a Prometheus, reports, and real stops."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from hub_ext.protocol import Answer, Attribution, Document, Kernel, Report, SelfTest, State
from services.idle_culler.rights import RIGHTS
from tests.devcluster.kube import KubeCluster
from tests.devcluster.monitoring import (
    Card,
    Exporter,
    Pod,
    Prometheus,
    Reading,
    Use,
    job_of,
    running_exporter,
    running_prometheus,
    whole_card,
)
from tests.devcluster.ports import free_port
from tests.devcluster.waiting import PATIENCE_SECONDS, until
from tests.hub.harness import Hub
from tests.hub.test_services import Visitor, token_of, xsrf

CATALOG = Path(__file__).parent / "catalog.yaml"
NAME = "idle-culler"

POLICY = {
    "mode": "act",
    "grace": "0s",
    "defaults": {"idleTimeout": "12s", "warnBefore": ["8s", "4s"], "keepFor": "10s", "keeps": 1},
    "thresholds": {"staleAfter": "8s", "activeWithin": "1s"},
    "breaker": {"share": 1},
}


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    with running_exporter(tmp_path_factory.mktemp("exporter")) as exporter:
        yield exporter


@pytest.fixture(scope="module")
def prometheus(exporter: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    with running_prometheus(folder, job_of(exporter), every_seconds=0.5) as prometheus:
        yield prometheus


@pytest.fixture(scope="module")
def culler_kubeconfig(
    cluster: KubeCluster, hub_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The kubeconfig of an account with the rights that the culler declares, and no more."""
    rules = [
        {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
        for rule in RIGHTS.rules
    ]
    rbac, place = "rbac.authorization.k8s.io", {"name": NAME, "namespace": hub_namespace}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": place, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": place,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", **place}],
        },
    )
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--minify", "--output=json"))
    token = cluster.kubectl("create", "token", NAME, f"--namespace={hub_namespace}", "--duration=2h").strip()
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = tmp_path_factory.mktemp("culler-kubeconfig") / "config"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def service(
    culler_kubeconfig: Path,
    hub_namespace: str,
    prometheus: Prometheus,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """The culler, for the hub that runs it."""
    folder = tmp_path_factory.mktemp("culler")
    settings = {
        "policy": POLICY,
        "namespace": hub_namespace,
        "prometheus": {"url": prometheus.url},
        "every": "1s",
        "listHubEvery": "2s",
        "window": "4s",
        "sampleEvery": "1s",
        "state": str(folder / "culler.json"),
        "record": {"folder": str(folder / "recording"), "every": "1s"},
        "authenticateMetrics": False,
    }
    return {
        "name": NAME,
        "url": f"http://127.0.0.1:{free_port()}",
        "settings": settings,
        "environment": {"KUBECONFIG": str(culler_kubeconfig)},
    }


@pytest.fixture(scope="module")
def hub(
    hub_kubeconfig: Path,
    hub_namespace: str,
    homes: None,
    notebook_port: int,
    service: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Hub]:
    """A hub that runs the culler, in place of the one that other tests share."""
    hub = Hub(
        tmp_path_factory.mktemp("culled-hub"),
        kubeconfig=hub_kubeconfig,
        namespace=hub_namespace,
        catalog=CATALOG,
        notebook_port=notebook_port,
        services=[service],
    )
    # Visitors are sent there for its pages, as the proxy would send them.
    hub.culler = hub.greeter = f"{service['url']}/base/services/{NAME}/"
    hub.start()
    try:
        until(lambda: _silence(hub), what="the culler to answer", timeout=PATIENCE_SECONDS)
        yield hub
    finally:
        hub.stop()


def _silence(hub: Hub) -> str | None:
    hub.check()
    try:
        return None if httpx.get(f"{hub.culler}health", timeout=5).is_success else "it answers an error"
    except httpx.TransportError as error:
        return f"{error!r}; the hub says:\n{hub.log[-3000:]}"


class Workspace:
    """A server with one card, whose reports are written by the test."""

    def __init__(self, hub: Hub, cluster: KubeCluster, namespace: str, user: str) -> None:
        self.hub, self.cluster, self.namespace, self.user = hub, cluster, namespace, user
        answer = hub.start_server(user, {"profile": "full"})
        assert answer.status_code in {201, 202}, answer.text
        hub.wait_until_ready(user)
        pods = json.loads(self._kubectl("get", "pods", "--output=json"))["items"]
        (self.manifest,) = [
            pod for pod in pods if pod["metadata"]["annotations"].get("hub.jupyter.org/username") == user
        ]
        self.pod = Pod(namespace=namespace, name=self.manifest["metadata"]["name"])
        env = self.manifest["spec"]["containers"][0]["env"]
        self.env = {one["name"]: one.get("value", "") for one in env}
        self.agent, self.number = secrets.token_hex(4), 0

    def _kubectl(self, *words: str) -> str:
        return self.cluster.kubectl(*words, f"--namespace={self.namespace}")

    def reading(self, **use: float) -> tuple[Reading, ...]:
        return whole_card(Card(uuid=f"GPU-{self.user}"), Use(**use), pod=self.pod)

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """Ask the culler as the server itself, with its own token, where it was told to."""
        return httpx.post(
            f"{self.env['GPU_WORKSPACES_CULLER_URL']}{path}",
            json=body,
            headers={"Authorization": f"token {self.env['JUPYTERHUB_API_TOKEN']}"},
            timeout=PATIENCE_SECONDS,
        )

    def report(self, **fields: Any) -> Answer:
        """Report, by default that nothing runs."""
        answer = self.send(**fields)
        assert answer.status_code == 200, answer.text
        return Answer.model_validate_json(answer.content)

    def send(self, **fields: Any) -> httpx.Response:
        """Send a report, whatever comes of it: the token of a server that is stopped counts no more."""
        self.number += 1
        rest: dict[str, Any] = {
            "agent": self.agent,
            "number": self.number,
            "sent": datetime.now(UTC),
            "window_seconds": 1.0,
            "kernels": (Kernel(id="k", state="idle", state_seconds=9000.0),),
            "self_test": SelfTest(attribution=Attribution.NO_LIBRARY),
        }
        body = Report(**{**rest, **fields}).model_dump(mode="json", by_alias=True)
        return self.post("api/report", body)

    def wait_for(self, found: Callable[[Answer], bool], **fields: Any) -> Answer:
        """Go on reporting until the answer is as wanted."""
        last: list[Answer] = []

        def missing() -> str | None:
            last[:] = [self.report(**fields)]
            return None if found(last[0]) else f"{last[0].state} {last[0].reason} {last[0].seconds_left}"

        until(missing, what="the culler's answer", timeout=PATIENCE_SECONDS)
        return last[0]

    def is_stopped(self) -> str | None:
        self.hub.check()
        if self.hub.server(self.user) is not None:
            return "the hub still has it"
        left = self._kubectl("get", "pod", self.pod.name, "--ignore-not-found", "--output=name")
        return f"{left} is there" if left else None

    def wait_until_stopped(self, **fields: Any) -> None:
        """Go on reporting until hub and cluster have let go of it."""

        def missing() -> str | None:
            left = self.is_stopped()
            if left:
                self.send(**fields)
            return left

        until(missing, what="the server to stop", timeout=PATIENCE_SECONDS)

    def claims(self) -> list[str]:
        volumes = self.manifest["spec"]["volumes"]
        names = [
            one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one
        ]
        return [self._kubectl("get", "pvc", name, "--output=name").strip() for name in names]


@pytest.fixture
def workspace(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str, exporter: Exporter
) -> Iterator[Workspace]:
    found = Workspace(hub, cluster, hub_namespace, member)
    exporter.show(*found.reading(engine=0, util=0))
    yield found
    if hub.server(member):
        hub.stop_server(member)


def test_an_idle_server_is_warned_kept_and_at_last_stopped_with_its_volume_left(
    hub: Hub, workspace: Workspace
) -> None:
    warned = workspace.wait_for(lambda answer: answer.state is State.WARNED)
    assert warned.reason == "gpu-idle"
    assert {one.source: one.value for one in warned.evidence} == {
        "hub": "idle",
        "agent": "idle",
        "pod": "unknown",
        "dcgm": "idle",
    }
    assert [button.act for button in warned.buttons] == ["keep", "stop"]
    kept = workspace.post("api/keep", {"server": ""})
    assert kept.json()["state"] == State.KEPT
    again = workspace.post("api/keep", {"server": ""})
    assert (again.status_code, "as often as you may" in again.text) == (409, True)
    last = workspace.wait_for(lambda answer: answer.stage == 2)
    assert last.lost
    workspace.wait_until_stopped()
    assert workspace.claims()
    assert f"action=stop-ended user='{workspace.user}'" in hub.log
    assert "outcome=stopped" in hub.log
    counted = httpx.get(f"{hub.culler}metrics", timeout=PATIENCE_SECONDS).text
    assert 'gpu_workspaces_culler_stops_total{outcome="stopped",reason="gpu-idle"} 1.0' in counted


def test_a_gpu_at_work_keeps_a_server_that_is_quiet_in_every_other_way(
    workspace: Workspace, exporter: Exporter
) -> None:
    exporter.show(*workspace.reading(engine=0.9, util=97))
    workspace.wait_for(lambda answer: answer.reason == "gpu-active")
    exporter.fail()
    try:
        unknown = workspace.wait_for(lambda answer: answer.state is State.UNKNOWN)
        assert unknown.seconds_left is None
    finally:
        exporter.recover()


def test_documents_are_saved_before_the_stop(hub: Hub, workspace: Workspace) -> None:
    page = {"documents": (Document(path="a.ipynb"),), "input_seconds": 900.0}
    asked = workspace.wait_for(lambda answer: answer.save is not None, **page)
    assert asked.state is State.SAVING
    assert hub.server(workspace.user)
    assert asked.save
    body = {"server": "", "save": asked.save.id, "saved": ["a.ipynb"], "failed": []}
    assert workspace.post("api/saved", body).json()["state"] in {State.STOPPING, State.SAVING}
    workspace.wait_until_stopped()
    assert workspace.claims()


def test_the_page_says_why_and_its_buttons_work(hub: Hub, workspace: Workspace, exporter: Exporter) -> None:
    exporter.show(*workspace.reading(engine=0.9))
    workspace.wait_for(lambda answer: answer.reason == "gpu-active")
    with hub.browser(workspace.user) as browser, hub.browser("root") as admin:
        mine, theirs = Visitor(hub, browser.client), Visitor(hub, admin.client)
        mine.home = theirs.home = hub.culler
        page = mine.get(hub.culler)
        assert "The GPU is in use." in page.text
        assert mine.get(f"{hub.culler}all").status_code == 403
        everything = theirs.get(f"{hub.culler}all")
        assert workspace.user in everything.text
        assert workspace.user not in theirs.get(hub.culler).text
        stop = {"server": "", "save": False}
        assert mine.client.post(f"{hub.culler}api/stop", json=stop).status_code == 403
        headers = {"X-XSRFToken": xsrf(page)}
        answer = mine.client.post(f"{hub.culler}api/stop", json=stop, headers=headers)
        assert answer.json()["state"] == State.STOPPING
    workspace.wait_until_stopped()


def test_a_narrow_token_of_the_user_stops_nothing(hub: Hub, workspace: Workspace) -> None:
    workspace.wait_for(lambda answer: answer.reason != "not-seen")
    narrow = token_of(hub, workspace.user, "read:users!user")
    answer = httpx.post(
        f"{hub.culler}api/stop", json={"server": ""}, headers=narrow, timeout=PATIENCE_SECONDS
    )
    assert answer.status_code == 403
