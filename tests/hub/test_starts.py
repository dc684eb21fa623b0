"""What was chosen is what runs, whatever way it was chosen, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.devcluster.kube import KubeCluster
from tests.hub.harness import IS_5, Hub, checked_on, notice_on

GPU = "nvidia.com/gpu"


class Space:
    """The objects in the hub's namespace."""

    def __init__(self, cluster: KubeCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def all(self, kind: str, user: str) -> list[dict[str, Any]]:
        text = self._cluster.kubectl("get", kind, f"--namespace={self._namespace}", "--output=json")
        items = json.loads(text)["items"]
        return [i for i in items if i["metadata"]["annotations"].get("hub.jupyter.org/username") == user]

    def pod(self, user: str) -> dict[str, Any]:
        (pod,) = self.all("pods", user)
        return pod


@pytest.fixture
def space(cluster: KubeCluster, hub_namespace: str) -> Space:
    return Space(cluster, hub_namespace)


def notebook(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = [c for c in pod["spec"]["containers"] if c["name"] == "notebook"]
    return container


def environment(pod: dict[str, Any]) -> dict[str, str]:
    return {e["name"]: e.get("value", "") for e in notebook(pod)["env"]}


def test_the_form_starts_what_was_chosen_in_it(hub: Hub, space: Space, member: str) -> None:
    with hub.browser(member) as browser:
        answer = browser.post_form(
            {"profile": "full@2", "full@2.image": "torch", "full@2.cards": "two", "cpu@1.size": "large"}
        )
    assert answer.status_code == 302
    hub.wait_until_ready(member)
    pod = space.pod(member)
    assert notebook(pod)["image"].endswith("2222")
    assert notebook(pod)["resources"]["limits"][GPU] == "2"
    assert pod["spec"]["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H200"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["spec"][
        "tolerations"
    ]
    assert environment(pod)["TRICKY"] == "{username} $$(HOME) %s"
    assert "NVIDIA_VISIBLE_DEVICES" not in environment(pod)
    labels = pod["metadata"]["labels"]
    assert labels["gpu-workspaces.jupyter.org/profile"] == "full"
    assert labels["gpu-workspaces.jupyter.org/profile-version"] == "2"
    assert labels["gpu-workspaces.jupyter.org/team"] == "nlp"
    assert pod["metadata"]["annotations"]["gpu-workspaces.jupyter.org/user"] == member


def test_rest_without_options_starts_the_default_and_then_the_last_choice(
    hub: Hub, space: Space, member: str
) -> None:
    assert hub.start_server(member).status_code in {201, 202}
    hub.wait_until_ready(member)
    assert environment(space.pod(member))["NVIDIA_VISIBLE_DEVICES"] == "void"
    hub.stop_server(member)
    hub.start_server(member, {"profile": "full", "image": "old-torch"})
    hub.wait_until_ready(member)
    hub.stop_server(member)
    assert hub.start_server(member).status_code in {201, 202}
    record = hub.wait_until_ready(member)
    assert notebook(space.pod(member))["image"].endswith("3333")
    assert record["user_options"] == {"profile": "full", "version": 2, "image": "old-torch", "cards": "one"}
    assert record["state"]["workspace"] == record["user_options"]


def test_nothing_of_one_attempt_is_left_in_the_next(hub: Hub, space: Space, member: str) -> None:
    hub.start_server(member, {"profile": "cpu"})
    hub.wait_until_ready(member)
    before = space.pod(member)
    hub.stop_server(member)
    hub.start_server(member, {"profile": "full", "cards": "two"})
    hub.wait_until_ready(member)
    hub.stop_server(member)
    hub.start_server(member, {"profile": "cpu"})
    hub.wait_until_ready(member)
    after = space.pod(member)
    assert GPU not in json.dumps(after["spec"])
    for part in ("nodeSelector", "tolerations", "volumes", "securityContext"):
        assert after["spec"].get(part) == before["spec"].get(part)
    assert notebook(after)["resources"] == notebook(before)["resources"]
    assert set(environment(after)) == set(environment(before))


def test_a_saved_old_version_starts_its_successor(hub: Hub, space: Space, member: str) -> None:
    hub.start_server(member, {"profile": "full", "version": 1, "image": "old-torch"})
    record = hub.wait_until_ready(member)
    assert record["user_options"]["version"] == 2
    assert space.pod(member)["metadata"]["labels"]["gpu-workspaces.jupyter.org/profile-version"] == "2"


def test_all_servers_of_a_user_share_one_home_that_outlives_them(hub: Hub, space: Space, member: str) -> None:
    hub.start_server(member, {"profile": "cpu"}, server="lab")
    hub.wait_until_ready(member, "lab")
    hub.start_server(member, {"profile": "cpu"})
    hub.wait_until_ready(member)
    (claim,) = space.all("persistentvolumeclaims", member)
    assert claim["spec"]["storageClassName"] == "hub-tests"
    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    for pod in space.all("pods", member):
        (mount,) = [m for m in notebook(pod)["volumeMounts"] if m["mountPath"] == "/home/jovyan"]
        (volume,) = [v for v in pod["spec"]["volumes"] if v["name"] == mount["name"]]
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    hub.stop_server(member, "lab", remove=True)
    hub.stop_server(member)
    (kept,) = space.all("persistentvolumeclaims", member)
    assert kept["metadata"]["uid"] == claim["metadata"]["uid"]
    assert "deletionTimestamp" not in kept["metadata"]


def test_the_choice_of_each_server_survives_a_restart_of_the_hub(hub: Hub, member: str) -> None:
    hub.start_server(member, {"profile": "full", "image": "old-torch"})
    hub.start_server(member, {"profile": "cpu", "size": "large"}, server="lab")
    running = hub.wait_until_ready(member)
    hub.wait_until_ready(member, "lab")
    hub.stop_server(member, "lab")
    hub.stop()
    hub.start()
    assert hub.wait_until_ready(member)["state"]["workspace"] == running["state"]["workspace"]
    hub.stop_server(member)
    with hub.browser(member) as browser:
        assert checked_on(browser.spawn_page().text) == ["full@2"]
        page = browser.spawn_page(server="lab", user=member).text
    assert checked_on(page) == ["cpu@1"]
    assert '<option value="large" selected>' in page


@pytest.mark.parametrize("query", ["?profile=full", "?opt-profile=full", "?opt-profile=full&opt-cards=two"])
def test_a_link_fills_in_the_page_and_starts_nothing(hub: Hub, space: Space, member: str, query: str) -> None:
    before = len(hub.log)
    with hub.browser(member) as browser:
        page = browser.spawn_page(query)
    assert page.status_code == 200
    assert checked_on(page.text) == ["full@2"]
    assert notice_on(page.text) == ""
    assert hub.server(member) is None or not hub.server(member)["pending"]  # type: ignore[index]
    assert not space.all("pods", member)
    assert "Failed to spawn" not in hub.log[before:]


def test_the_address_of_a_refused_form_can_be_opened_again(hub: Hub, space: Space, member: str) -> None:
    with hub.browser(member) as browser:
        page = browser.spawn_page("?_xsrf=abc")
    assert (page.status_code, checked_on(page.text)) == (200, ["cpu@1"])
    assert not space.all("pods", member)


def test_a_choice_leaves_no_warning_in_the_log(hub: Hub, member: str) -> None:
    before = len(hub.log)
    hub.start_server(member, {"profile": "cpu", "size": "large"})
    hub.wait_until_ready(member)
    assert "unhandled user_options" not in hub.log[before:]
    assert "Traceback" not in hub.log[before:]


def test_options_that_were_patched_in_are_judged_at_the_start(hub: Hub, outsider: str) -> None:
    hub.start_server(outsider, {"profile": "cpu"})
    hub.wait_until_ready(outsider)
    hub.stop_server(outsider)
    patched = hub.api("PATCH", f"users/{outsider}/server", {"user_options": {"profile": "full"}})
    if IS_5:  # has no way to change the options of a stopped server
        assert patched.status_code == 405
    else:
        assert patched.status_code == 200
        assert hub.refused_start(outsider).status_code == 403
    assert hub.start_server(outsider).status_code in {201, 202}
    assert hub.wait_until_ready(outsider)["user_options"]["profile"] == "cpu"
