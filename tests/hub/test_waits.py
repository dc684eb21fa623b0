"""A wait says what it waits for, and one that cannot end well ends at once with the reason."""

from __future__ import annotations

import html
import json
import re
import time
from datetime import UTC, datetime

from tests.devcluster.kube import KubeCluster
from tests.devcluster.waiting import until
from tests.hub.harness import SPAWN_SECONDS, Hub

OWN_SECONDS = 15
"""`startTimeout` of the profile `patient`."""

IMAGE = "registry.example.com/base@sha256:" + "1" * 64


def messages(hub: Hub, user: str) -> list[str]:
    """Give what the progress of the last start says; ends when the start does."""
    text = hub.api("GET", f"users/{user}/server/progress").text
    return [json.loads(line)["message"] for line in re.findall(r"^data: (.*)$", text, re.MULTILINE)]


def pending(hub: Hub, user: str, what: str) -> str | None:
    """Say that a server is still on its way up (`spawn`) or down (`stop`)."""
    record = hub.server(user)
    return f"it is pending: {record}" if record and record["pending"] == what else None


def pod_of(cluster: KubeCluster, namespace: str, user: str) -> dict[str, str]:
    """Wait until the pod of a user is there, and say how an event refers to it."""
    found: list[dict[str, str]] = []

    def missing() -> str | None:
        pods = [pod["metadata"] for pod in cluster.get(f"/api/v1/namespaces/{namespace}/pods")["items"]]
        found[:] = [
            {"kind": "Pod", "namespace": namespace, "name": pod["name"], "uid": pod["uid"]}
            for pod in pods
            if pod["annotations"].get("hub.jupyter.org/username") == user
        ]
        return None if found else "there is none"

    until(missing, what=f"the pod of {user}", timeout=SPAWN_SECONDS)
    return found[0]


def test_an_image_that_does_not_exist_ends_the_start_at_once(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    assert hub.start_server(member, {"profile": "stuck"}).status_code in {201, 202}
    pod = pod_of(cluster, hub_namespace, member)["name"]
    # What a scheduler and a kubelet would write: nothing else touches a pod on a machine that is not there.
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"name": "not-there"},
    }
    path = f"/api/v1/namespaces/{hub_namespace}/pods/{pod}/binding"
    cluster.kubectl("create", "--raw", path, "--filename=-", input=json.dumps(binding))
    waiting = {"reason": "ErrImagePull", "message": f"rpc error: code = NotFound desc = {IMAGE}: not found"}
    status = {"name": "notebook", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0}
    patch = {"status": {"containerStatuses": [{**status, "state": {"waiting": waiting}}]}}
    cluster.kubectl(
        "patch",
        "pod",
        pod,
        f"--namespace={hub_namespace}",
        "--subresource=status",
        f"--patch={json.dumps(patch)}",
    )
    until(lambda: pending(hub, member, "spawn"), what="the start to be given up", timeout=SPAWN_SECONDS)
    # Nor does anything but this take it off that machine.
    force = ("--force", "--grace-period=0", "--ignore-not-found")
    cluster.kubectl("delete", "pod", pod, f"--namespace={hub_namespace}", *force)
    until(lambda: pending(hub, member, "stop"), what="the start to end", timeout=SPAWN_SECONDS)
    last = messages(hub, member)[-1].removeprefix("Spawn failed: ")
    assert "does not exist" in last
    assert "did not start in time" not in last
    assert "rpc error" not in last
    with hub.browser(member) as browser:
        page = browser.client.get(f"{hub.base}/spawn-pending/{member}")
    assert page.status_code < 500
    assert last in html.unescape(page.text)
    assert "The workspace did not start" in page.text
    assert f'href="/base/hub/spawn/{member}' in page.text
    assert "reason=image-not-found" in hub.log
    hub.check()


def test_when_the_time_is_over_the_last_wait_is_told(hub: Hub, member: str) -> None:
    before = len(hub.log)
    with hub.browser(member) as browser:
        assert hub.start_server(member, {"profile": "stuck-briefly"}).status_code in {201, 202}
        page = html.unescape(browser.client.get(f"{hub.base}/spawn-pending/{member}").text)
        assert "Starting Has no node, and little time" in page
        assert 'http-equiv="refresh"' in page, "without script it looks again by itself"
    *told, last = messages(hub, member)
    assert told[0] == "Server requested"
    assert len(told) > 1
    assert "The workspace did not start in time." in last
    assert not [text for text in told if "0/" in text or "FailedScheduling" in text]
    assert "Traceback" not in hub.log[before:]
    hub.check()


def test_time_for_a_node_that_is_added_is_not_the_start_s_own(
    hub: Hub, cluster: KubeCluster, hub_namespace: str, member: str
) -> None:
    begun = time.monotonic()
    assert hub.start_server(member, {"profile": "patient"}).status_code in {201, 202}
    about = pod_of(cluster, hub_namespace, member)
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    # What an autoscaler would write. It has to be there before the start's own time is over.
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name']}.grows", "namespace": hub_namespace},
        "involvedObject": about,
        "reason": "TriggeredScaleUp",
        "message": "pod triggered scale-up: [{group 0->1 (max: 4)}]",
        "type": "Normal",
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": "cluster-autoscaler"},
    }
    path = f"/api/v1/namespaces/{hub_namespace}/events"
    cluster.kubectl("create", "--raw", path, "--filename=-", input=json.dumps(event))

    def still_waiting() -> str | None:
        assert pending(hub, member, "spawn"), hub.log[-3000:]
        return None if time.monotonic() - begun > OWN_SECONDS * 1.3 else "its own time is not over"

    until(still_waiting, what="more than the start's own time", timeout=SPAWN_SECONDS)
    node = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"][0]["metadata"]["name"]
    cluster.kubectl("label", "node", node, "gpu-workspaces.test/there=in-a-while")
    try:
        hub.wait_until_ready(member)
    finally:
        cluster.kubectl("label", "node", node, "gpu-workspaces.test/there-")
    hub.stop_server(member)


def test_a_start_that_succeeds_is_told_and_recorded(hub: Hub, member: str) -> None:
    before = len(hub.log)
    hub.start_server(member, {"profile": "cpu"})
    hub.wait_until_ready(member)
    until(
        lambda: None if f"start ended: user={member} profile=cpu" in hub.log[before:] else hub.log[-2000:],
        what="the record of the start",
        timeout=SPAWN_SECONDS,
    )
    assert "outcome=started" in hub.log[before:]
    metrics = hub.metrics()
    assert re.search(r'gpu_workspaces_starts_total\{.*outcome="started".*profile="cpu"', metrics)
    hub.stop_server(member)
