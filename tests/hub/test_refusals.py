"""A refusal is one clear sentence everywhere, starts nothing, and does the hub no harm."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.devcluster.kube import KubeCluster
from tests.devcluster.rules import until_admitted, until_in_force
from tests.devcluster.waiting import PATIENCE_SECONDS, until
from tests.hub.harness import IS_5, Hub, checked_on, error_on, notice_on

FAILURE_LIMIT = 3
"""Of the shared hub: it exits at the third failure in a row."""


@contextmanager
def full(cluster: KubeCluster, namespace: str, resource: str) -> Iterator[None]:
    """Let the namespace have nothing of a resource."""
    place = {"name": "nothing", "namespace": namespace}
    spec = {"hard": {resource: "0"}}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": place, "spec": spec})
    cluster.wait_for("resourcequota/nothing", "jsonpath={.status.hard}", namespace=namespace)
    try:
        yield
    finally:
        cluster.kubectl("delete", "resourcequota", "nothing", f"--namespace={namespace}", "--wait")
        until_admitted(cluster, namespace)


@pytest.fixture
def full_namespace(cluster: KubeCluster, hub_namespace: str) -> Iterator[None]:
    """The namespace allows no pod at all."""
    with full(cluster, hub_namespace, "pods"):
        yield


@pytest.fixture
def silent_webhook(cluster: KubeCluster, hub_namespace: str) -> Iterator[Callable[[], None]]:
    """A webhook that must approve each pod and that nobody can reach; call what is given to remove it."""
    name = f"silent-{hub_namespace}"
    cluster.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [
                {
                    "name": "pods.queue.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:9/validate"},
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["pods"],
                        }
                    ],
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": hub_namespace}},
                }
            ],
        }
    )
    until_in_force(cluster, hub_namespace, "pods.queue.example.com")
    remove = ("delete", "validatingwebhookconfiguration", name, "--ignore-not-found", "--wait")
    yield lambda: cluster.kubectl(*remove) and None
    cluster.kubectl(*remove)
    until_admitted(cluster, hub_namespace)


def form_of(options: dict[str, Any]) -> dict[str, str]:
    """Say in a form what `options` say in a request's body."""
    name = options.get("profile", "")
    label = f"{name}@{options['version']}" if "version" in options else str(name)
    rest = {k: v for k, v in options.items() if k not in {"profile", "version"}}
    return {"profile": label} | {f"{label}.{key}": str(value) for key, value in rest.items()}


def link_of(options: dict[str, Any]) -> str:
    return "?" + "&".join(f"{'' if IS_5 else 'opt-'}{key}={value}" for key, value in options.items())


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ({"profile": "nope"}, 403, "No workspace “nope” is offered to you. Offered: cpu."),
        ({"profile": "full"}, 403, "No workspace “full” is offered to you. Offered: cpu."),
        ({"profile": "cpu", "size": "nope"}, 403, "usual, large"),
        ({"profile": "cpu", "image": "torch"}, 403, "nothing to choose by the name “image”"),
        ({"profile": "cpu", "image--unlisted-choice": "evil.example.com/x:1"}, 403, "nothing to choose"),
        ({"profile": "cpu", "version": "9"}, 403, "no such version"),
        ({"profile": "gone"}, 400, "Its nodes are sold."),
        ({"profile": "cpu", "team": "nlp"}, 403, "cannot book"),
    ],
    ids=str,
)
def test_form_link_and_rest_say_the_same(
    hub: Hub, outsider: str, options: dict[str, Any], status: int, words: str
) -> None:
    rest = hub.refused_start(outsider, options)
    with hub.browser(outsider) as browser:
        form = browser.refused_form(form_of(options))
        link = browser.spawn_page(link_of(options))
    assert (rest.status_code, form.status_code, link.status_code) == (status, status, 200)
    text = rest.json()["message"]
    assert words in text
    assert error_on(form.text) == text
    assert notice_on(link.text) == f"This link cannot be followed. {text}"
    assert hub.server(outsider) is None or not hub.server(outsider)["pending"]  # type: ignore[index]
    hub.check()


@pytest.mark.parametrize(
    "body",
    [
        {"profile": ["cpu"]},
        {"profile": 1},
        {"profile": {"name": "cpu"}},
        {"profile": "cpu", "size": ["large"]},
        {"profle": "full"},
        {"image--unlisted-choice": "evil.example.com/x:1"},
    ],
    ids=str,
)
def test_a_malformed_body_is_the_request_s_fault_and_not_kept(hub: Hub, outsider: str, body: Any) -> None:
    answer = hub.refused_start(outsider, body)
    assert answer.status_code == 400
    assert "Traceback" not in answer.text
    record = hub.api("GET", f"users/{outsider}?include_stopped_servers=1").json()["servers"][""]
    assert record["user_options"] == {}


def test_a_refused_choice_does_not_become_the_default(hub: Hub, member: str) -> None:
    hub.start_server(member, {"profile": "cpu", "size": "large"})
    hub.wait_until_ready(member)
    hub.stop_server(member)
    assert hub.refused_start(member, {"profile": "nope"}).status_code == 400
    assert hub.start_server(member).status_code in {201, 202}
    assert hub.wait_until_ready(member)["user_options"]["size"] == "large"


def test_a_refused_form_comes_back_as_it_was_sent(hub: Hub, member: str) -> None:
    fields = {"profile": "full@2", "full@2.image": "old-torch", "full@2.cards": "two"}
    with hub.browser(member) as browser:
        answer = browser.refused_form(fields)
    assert answer.status_code == 400
    assert "PyTorch, CUDA 13.0" in error_on(answer.text)
    assert checked_on(answer.text) == ["full@2"]


def test_a_refused_form_of_a_named_server_comes_back_for_it(hub: Hub, member: str) -> None:
    fields = {"profile": "full@2", "full@2.image": "old-torch", "full@2.cards": "two"}
    with hub.browser(member) as browser:
        browser.spawn_page()
        answer = browser.refused_form(fields, server="lab", user=member)
        later = browser.spawn_page()
    assert answer.status_code == 400
    assert checked_on(answer.text) == ["full@2"]
    assert checked_on(later.text) == ["cpu@1"]


def test_access_that_was_withdrawn_counts_at_once(hub: Hub, member: str) -> None:
    hub.start_server(member, {"profile": "full"})
    hub.wait_until_ready(member)
    hub.stop_server(member)
    hub.put_in_groups(member)
    answer = hub.refused_start(member)
    assert answer.status_code == 403
    assert "withdrawn" in answer.json()["message"]
    with hub.browser(member) as browser:
        page = browser.spawn_page().text
    assert checked_on(page) == ["cpu@1"]
    assert answer.json()["message"] in notice_on(page)
    assert "full@2" not in page


def test_who_starts_for_somebody_else_does_so_with_their_rights(hub: Hub, outsider: str) -> None:
    assert hub.refused_start(outsider, {"profile": "full"}).status_code == 403


def test_refusals_in_a_row_leave_the_hub_up(hub: Hub, outsider: str) -> None:
    for _ in range(2 * FAILURE_LIMIT):
        assert hub.refused_start(outsider, {"profile": "full"}).status_code == 403
    assert "consecutive spawns failed" not in hub.log
    assert "Aborting due to" not in hub.log
    hub.check()


def test_what_a_quota_leaves_that_the_hub_may_not_see_is_named_instead(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    with full(cluster, hub_namespace, "requests.nvidia.com/gpu"):
        answer = hub.refused_start(member, {"profile": "full"})
    assert answer.json()["message"] == (
        "This workspace needs 1 GPU, but the namespace may have no GPUs at the same time. "
        "What would fit now: Notebook."
    )


@pytest.mark.usefixtures("full_namespace")
def test_the_cluster_s_quota_is_explained_and_not_counted_against_the_hub(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    texts, before = set(), len(hub.log)
    with hub.browser(member) as browser:
        for _ in range(FAILURE_LIMIT + 1):
            rest = hub.refused_start(member, {"profile": "cpu"})
            form = browser.refused_form({"profile": "cpu@1"})
            assert (rest.status_code, form.status_code) == (403, 403)
            texts |= {rest.json()["message"], error_on(form.text)}
            assert checked_on(form.text) == ["cpu@1"]
    (text,) = texts
    claim = ("get", "persistentvolumeclaims", f"claim-{member}", "--ignore-not-found", "--output=name")
    assert cluster.kubectl(*claim, f"--namespace={hub_namespace}") == "", "a refusal leaves nothing behind"
    assert "1 pod" in text
    assert "no pods" in text
    hub.check()
    assert "JUPYTERHUB_API_TOKEN" not in hub.log
    for noise in ("api_version", "Traceback"):
        assert noise not in hub.log[before:]


def test_a_component_that_does_not_answer_is_named_in_the_end(
    hub: Hub, silent_webhook: Callable[[], None], member: str
) -> None:
    hub.start_server(member, {"profile": "hasty"})
    record = until_not_pending(hub, member)
    assert record is None or not record["ready"]
    with hub.browser(member) as browser:
        page = browser.client.get(f"{hub.base}/spawn-pending/{member}")
    assert page.status_code == 503
    assert "pods.queue.example.com" in page.text
    progress = hub.api("GET", f"users/{member}/server/progress").text
    failed = json.loads(re.findall(r"^data: (.*)$", progress, re.MULTILINE)[-1])
    text = failed["message"].removeprefix("Spawn failed: ")
    assert "pods.queue.example.com" in text
    assert text in html.unescape(page.text)
    hub.check()


def test_a_component_that_comes_back_in_time_lets_the_start_go_on(
    hub: Hub, silent_webhook: Callable[[], None], member: str
) -> None:
    before = len(hub.log)
    hub.start_server(member, {"profile": "cpu"})
    until(
        lambda: None if "reason=webhook-unreachable" in hub.log[before:] else hub.log[-2000:],
        what="the first attempt to fail",
        timeout=PATIENCE_SECONDS,
    )
    silent_webhook()
    hub.wait_until_ready(member)


def test_nobody_gets_the_home_of_somebody_else(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": f"claim-{member}",
                "namespace": hub_namespace,
                "annotations": {"hub.jupyter.org/username": "somebody-else"},
            },
            "spec": {
                "storageClassName": "hub-tests",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )
    answer = hub.refused_start(member, {"profile": "cpu"})
    assert answer.status_code == 403
    assert "belongs to somebody else" in answer.json()["message"]
    pods = json.loads(cluster.kubectl("get", "pods", f"--namespace={hub_namespace}", "--output=json"))
    assert not [p for p in pods["items"] if p["metadata"]["name"] == f"jupyter-{member}"]


def until_not_pending(hub: Hub, user: str) -> dict[str, Any] | None:
    """Wait until a start has come to an end, one way or the other."""

    def missing() -> str | None:
        hub.check()
        record = hub.server(user)
        return f"it is pending: {record}" if record and record["pending"] else None

    until(missing, what=f"the start of {user}'s server to end", timeout=PATIENCE_SECONDS)
    return hub.server(user)
