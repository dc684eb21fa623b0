"""The demo's catalog, cluster and people fit together, and it says what it is about to do."""

from __future__ import annotations

import re
import socket
from collections import Counter
from pathlib import Path

import pytest

from hub_ext.catalog.load import examine, examine_text, load_catalog
from hub_ext.catalog.model import Catalog, MigGpu, Pool, TimeSlicedGpu
from hub_ext.errors import Severity
from hub_ext.managed import declared
from services.idle_culler.settings import CullerSettings
from services.job_handoff.settings import HandoffSettings
from tests.demo import preparation
from tests.demo.__main__ import announcement, choose_port, parser
from tests.demo.hub import FOLDER
from tests.demo.services import SERVICES, culler_settings, handoff_settings
from tests.demo.users import USERS
from tests.devcluster import build
from tests.devcluster.errors import HostError
from tests.devcluster.gpu.setup import GpuSetup
from tests.devcluster.spec import ClusterSpec, NodeSpec, load


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(FOLDER / "catalog.yaml")


@pytest.fixture(scope="module")
def spec() -> ClusterSpec:
    return load(preparation.CLUSTER)[1]


def nodes_of(pool: Pool, spec: ClusterSpec) -> list[NodeSpec]:
    return [node for node in spec.nodes if pool.node_selector.items() <= node.labels.items()]


def test_every_pool_has_its_node(catalog: Catalog, spec: ClusterSpec) -> None:
    assert {name: len(nodes_of(pool, spec)) for name, pool in catalog.pools.items()} == {
        name: pool.nodes for name, pool in catalog.pools.items()
    }


def test_workspaces_tolerate_the_taints_of_their_nodes(catalog: Catalog, spec: ClusterSpec) -> None:
    for pool in catalog.pools.values():
        tolerated = {toleration.key for toleration in pool.tolerations}
        assert {taint.key for node in nodes_of(pool, spec) for taint in node.taints} <= tolerated


def test_pools_say_what_the_device_plugin_offers(catalog: Catalog, spec: ClusterSpec) -> None:
    for pool in catalog.pools.values():
        for node in nodes_of(pool, spec):
            setup = GpuSetup.model_validate(node.gpus) if node.gpus else None
            assert (setup is None) == (pool.gpu is None)
            if isinstance(pool.gpu, MigGpu) and setup:
                assert [Counter(card.mig) for card in setup.cards] == [pool.gpu.geometry]
            if isinstance(pool.gpu, TimeSlicedGpu) and setup:
                sharing = setup.plugin["sharing"]["timeSlicing"]
                assert sharing["resources"] == [{"name": "nvidia.com/gpu", "replicas": pool.gpu.replicas}]
                assert sharing["renameByDefault"] == pool.gpu.rename_by_default


def test_there_is_nothing_to_warn_of_in_the_catalogs_that_people_read_first() -> None:
    readme = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(# yaml-language-server.*?)```", readme, re.DOTALL)
    short = examine_text(example.replace("sha256:…", f"sha256:{'0' * 64}"))
    for examination in (short, examine(FOLDER / "catalog.yaml")):
        assert examination.catalog is not None
        assert {finding.severity for finding in examination.findings} <= {Severity.NOTE}


def test_every_team_has_somebody(catalog: Catalog) -> None:
    assert {group for team in catalog.teams.values() for group in team.groups} == {u.group for u in USERS}


def test_says_how_much_there_is_to_build_and_how_long_it_takes(spec: ClusterSpec) -> None:
    step = build.all_steps()["kubelet"]
    assert "build 1 part into" in announcement(spec, [step])
    assert "about 20 s" in announcement(spec, [step])
    assert "nothing to build" in announcement(spec, [])


def test_refuses_to_start_building_on_a_full_disk(
    spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_WORKSPACES_CACHE", str(tmp_path))
    monkeypatch.setattr(preparation, "check_host", lambda spec, cache: None)
    monkeypatch.setattr(preparation, "BUILD_BYTES", 2**60)
    with pytest.raises(HostError, match="GPU_WORKSPACES_CACHE"):
        preparation.prepare(spec)


def test_a_taken_port_is_refused_at_once_and_otherwise_passed_over() -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostError, match=f"port {port} is in use"):
            choose_port("127.0.0.1", port)
        assert choose_port("127.0.0.1", None) >= 8000


@pytest.mark.parametrize("address", ["192.0.2.1", "no address"])  # the first is for documentation only
def test_an_address_that_is_not_this_machine_s_is_refused_at_once(address: str) -> None:
    with pytest.raises(HostError, match=f"{address}' is no address to listen at"):
        choose_port(address, None)


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http"])
def test_a_port_that_cannot_be_is_a_wrong_argument(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--port", port])
    assert f"'{port}' is no number from 1 to 65535" in capsys.readouterr().err


class Played:
    """What the services of the demo ask of a cluster."""

    host_address = "10.0.0.1"

    def port(self, name: str) -> int:
        return 20000 + len(name)


def test_services_take_the_settings_of_the_demo(tmp_path: Path) -> None:
    cluster = Played()
    culler = CullerSettings.model_validate(culler_settings(tmp_path), by_alias=True, by_name=False)
    assert culler.policy.mode.value == "act"
    handoff = {"catalog": "catalog.yaml", **handoff_settings(cluster, tmp_path)}  # type: ignore[arg-type]
    runner = HandoffSettings.model_validate(handoff, by_alias=True, by_name=False).runner
    assert runner.url == "http://10.0.0.1:20011/services/job-handoff/"


def test_every_service_of_the_demo_is_one_of_the_bundle() -> None:
    for name in SERVICES:
        assert declared(name)[1].name == name
