"""The enterprise set, installed with the real chart by the guide's own commands, and used.

`Z2JH_CHART` names the chart. Hub, proxy and services run in pods with the chart's own configuration, at the
level `restricted`, behind policies that are enforced; people sign in at Keycloak, and the hub remembers in
PostgreSQL. Stood in for are the chart's images (see `tests/devcluster/build/sources`) and what lies below
NVIDIA's device plugin.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.devcluster.addons.object_store import store_of
from tests.devcluster.addons.prometheus import Monitoring
from tests.devcluster.addons.volumes import STORAGE_CLASS
from tests.devcluster.client import running
from tests.devcluster.cluster import Cluster
from tests.devcluster.keycloak import running_keycloak
from tests.nodes.acting import run_in, wait_while
from tests.nodes.enterprise import around, files
from tests.nodes.enterprise.admin import Admin
from tests.nodes.enterprise.person import signed_in

pytestmark = [pytest.mark.given("Z2JH_CHART"), pytest.mark.timeout(1800)]
"""The first test has images built, and installs."""

VARIABLE = "Z2JH_CHART"
CLUSTER = Path(__file__).parent / "enterprise" / "cluster.yaml"
NODE_PORT = 30080
HUB, TEAM, RUNS = "jupyterhub", "ws-nlp", "gpu-workspaces-runs"
SERVICES = ("idle-culler", "job-handoff", "prepuller")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An installation that has come up."""

    cluster: Cluster
    admin: Admin
    url: str
    """How people reach the hub, without a slash at its end."""
    prometheus: str


@pytest.fixture(scope="module")
def enterprise() -> Iterator[Cluster]:
    with running(CLUSTER, like="test-chart") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def installed(enterprise: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    cluster, folder = enterprise, tmp_path_factory.mktemp("admin")
    url = f"http://{cluster.node('cpu-1').address}:{NODE_PORT}"
    secrets = around.Secrets(store=around.make_bucket(cluster))
    with running_keycloak(folder / "provider", host=cluster.host_address) as keycloak:
        images, notebook = around.publish_images(cluster)
        facts = files.Facts(
            images=images,
            notebook=notebook,
            host=cluster.host_address,
            api_port=cluster.port("kube-apiserver"),
            hub=url,
            node_port=NODE_PORT,
            store=store_of(cluster).url,
            prometheus=Monitoring(cluster).prometheus.url,
            realm=around.add_people(keycloak, hub=url, client_secret=secrets.client),
            database=around.start_database(cluster, password=secrets.database),
            storage_class=STORAGE_CLASS,
        )
        files.write(folder / "my-hub", facts)
        variables = {"S": files.SET, "R": images, **secrets.variables()}
        admin = Admin(cluster, folder / "my-hub", chart=os.environ[VARIABLE], variables=variables)
        admin.render()
        admin.prepare()
        admin.install()
        yield Installed(cluster=cluster, admin=admin, url=url, prometheus=facts.prometheus)


def pods_of(cluster: Cluster, namespace: str) -> dict[str, dict[str, Any]]:
    """Pods that have not ended, by name."""
    items = cluster.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return {
        one["metadata"]["name"]: one
        for one in items
        if one["status"]["phase"] not in {"Succeeded", "Failed"}
        and "deletionTimestamp" not in one["metadata"]
    }


def test_hub_proxy_and_services_are_pods_that_may_do_no_harm(installed: Installed) -> None:
    found = pods_of(installed.cluster, HUB)
    started = {one["metadata"]["generateName"].rsplit("-", 2)[0] for one in found.values()}
    assert started == {"hub", "proxy", *(f"gpu-workspaces-{name}" for name in SERVICES)}
    namespace = installed.cluster.get(f"/api/v1/namespaces/{HUB}")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for one in found.values():
        (status,) = one["status"]["containerStatuses"]
        assert status["ready"], one["metadata"]["name"]


def test_people_are_offered_what_their_team_may_start(installed: Installed) -> None:
    with signed_in(installed.url, around.ADA) as ada, signed_in(installed.url, around.VERA) as vera:
        assert ada.offered() == {"notebook": True, "gpu-slice": True, "full-gpu": True}
        assert vera.offered() == {"notebook": True, "gpu-slice": True, "full-gpu": False}
        assert ada.ask("GET", "user")["groups"] == ["/nlp"]
        assert not ada.ask("GET", "user")["admin"]


def test_a_slice_of_a_card_starts_in_the_team_s_namespace(installed: Installed) -> None:
    cluster = installed.cluster
    with signed_in(installed.url, around.VERA) as vera:
        vera.start("gpu-slice@1", check=cluster.check)
        lab = vera.open("/user/vera/lab")
        assert "JupyterLab" in lab.raise_for_status().text
        ((name, pod),) = pods_of(cluster, "ws-vision").items()
        assert pod["spec"]["nodeName"] == "h200-mig-1"
        assert pod["metadata"]["labels"]["gpu-workspaces.jupyter.org/team"] == "vision"
        given = run_in(cluster, "ws-vision", name, "echo $NVIDIA_VISIBLE_DEVICES")
        assert given.startswith("MIG-"), given
        vera.stop(check=cluster.check)


def test_pages_of_the_services_answer_by_way_of_the_hub(installed: Installed) -> None:
    with signed_in(installed.url, around.ADA) as ada, signed_in(installed.url, around.ROOT) as root:
        for name in ("idle-culler", "job-handoff"):
            assert ada.open(f"/services/{name}/").status_code == 200, name
        assert ada.open("/services/prepuller/").status_code == 403
        assert root.open("/services/prepuller/").status_code == 200


SCRIPT = "import pathlib; pathlib.Path('outputs/answer.txt').write_text(str(6 * 7))"
HAND_OFF = f"""
mkdir -p ~/work && cd ~/work && echo "{SCRIPT}" > answer.py
gpu-workspaces run answer.py --profile notebook --watch
gpu-workspaces handoff fetch --finished
cat ~/runs/*/answer.txt
"""


def test_a_workspace_hands_a_script_off_and_gets_its_result(installed: Installed) -> None:
    cluster = installed.cluster
    with signed_in(installed.url, around.ADA) as ada:
        ada.start("notebook@1", check=cluster.check)
        ((name, _),) = pods_of(cluster, TEAM).items()
        told = run_in(cluster, TEAM, name, HAND_OFF)
        assert told.splitlines()[-1] == "42", told
        ada.stop(check=cluster.check)
    (job,) = cluster.get(f"/apis/batch/v1/namespaces/{RUNS}/jobs")["items"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "nlp"


IMITATED = {"exporter", "exporter-fields"}
"""The exporter is a stand-in: a process of the host and no DaemonSet, with few of the real one's fields."""


def test_preflight_finds_nothing_but_what_is_so_here(installed: Installed) -> None:
    with signed_in(installed.url, around.ROOT) as root:
        assert root.ask("GET", "user")["admin"]

        def missing() -> str | None:
            loops = {name: root.open(f"/services/{name}/health").json()["loops"] for name in SERVICES}
            failed = [name for name, found in loops.items() if not all(one["ok"] for one in found.values())]
            return f"the last pass failed of {failed}" if failed else None

        wait_while(installed.cluster, missing, what="services to have had a pass since the hub is there")
        told = installed.admin.look(
            prometheus=installed.prometheus, hub=installed.url, token=root.token(), more="--json"
        )
    result = json.loads(told)
    wrong = {one["code"] for one in result["findings"] if one["severity"] != "note"}
    assert wrong == IMITATED, json.dumps(result["findings"], indent=1)
    unseen = {one["check"] for one in result["result"]["checks"] if one["outcome"] == "not-checked"}
    assert unseen == {"exporter-pods"}, "no pod holds a card now, and everything else was looked at"


def test_an_upgrade_that_changes_nothing_begins_nothing_anew(installed: Installed) -> None:
    installed.admin.install()  # the first one begins hub and proxy anew, as the guide says
    before = {name: one["metadata"]["uid"] for name, one in pods_of(installed.cluster, HUB).items()}
    installed.admin.install()
    assert {n: one["metadata"]["uid"] for n, one in pods_of(installed.cluster, HUB).items()} == before
    with signed_in(installed.url, around.ADA) as ada:
        assert ada.open("/hub/home").is_success
