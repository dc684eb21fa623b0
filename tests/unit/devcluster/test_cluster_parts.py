"""The parts of a cluster that need no cluster: addresses, keys, cgroups, limits, claims, files."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import tomllib
from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path

import pytest

from tests.devcluster import cgroups, claims
from tests.devcluster.addresses import SLOTS, Addresses, free_slots
from tests.devcluster.bringup import wanted_programs
from tests.devcluster.errors import (
    HostError,
    SpecError,
    StateError,
)
from tests.devcluster.limits import SETTINGS, Limits
from tests.devcluster.node_files import NodeFiles
from tests.devcluster.objects import build_kwok_nodes, build_node
from tests.devcluster.pki import Authority
from tests.devcluster.record import PORTS_PER_SLOT, Record
from tests.devcluster.spec import FOLDER, ClusterSpec, KwokPool, NodeSpec, Size, default_name, load, parse

CONTROL = ClusterSpec(size=Size.CONTROL)


class TestAddresses:
    def test_slots_and_the_parts_of_a_slot_do_not_overlap(self) -> None:
        networks = [Addresses(slot).network for slot in range(SLOTS)]
        assert not any(one.overlaps(other) for one, other in combinations(networks, 2))
        for addresses in (Addresses(0), Addresses(SLOTS - 1)):
            parts = [addresses.nodes, addresses.pods, addresses.services]
            assert all(part.subnet_of(addresses.network) for part in parts)
            assert not any(one.overlaps(other) for one, other in combinations(parts, 2))

    def test_each_of_many_nodes_has_its_own_addresses(self) -> None:
        addresses = Addresses(3)
        indexes = range(32)
        pods = [addresses.node_pods(index) for index in indexes]
        assert not any(one.overlaps(other) for one, other in combinations(pods, 2))
        assert all(network.subnet_of(addresses.pods) for network in pods)
        assert len({addresses.host, *(addresses.node(index) for index in indexes)}) == 33

    def test_slots_that_the_host_has_routes_into_are_left_out(self) -> None:
        taken = [IPv4Network("0.0.0.0/0"), IPv4Network("10.200.7.0/24"), IPv4Network("10.202.0.0/15")]
        assert [a.slot for a in free_slots(taken)][:2] == [1, 4]
        assert free_slots([IPv4Network("10.0.0.0/8")]) == []


class TestClusterFile:
    def test_every_shipped_file_is_right(self) -> None:
        names = sorted(path.stem for path in FOLDER.glob("*.yaml"))
        assert {"control", "control-1.34", "nodes"} <= set(names)
        for name in names:
            assert load(name)[0] == default_name(FOLDER / f"{name}.yaml")

    @pytest.mark.parametrize(
        ("document", "problem"),
        [
            (
                {"size": "nodes", "nodes": [{"name": "a"}, {"name": "a"}]},
                "names used twice: a",
            ),
            ({"size": "control", "nodes": [{"name": "a"}]}, "size `control` has no machines"),
            (
                {"size": "nodes", "kubernetes": "1.34", "nodes": [{"name": "a"}]},
                "kubelets are built for 1.36",
            ),
            ({"size": "control", "kubernetes": "1.33"}, "kubernetes: Input should be '1.36' or '1.34'"),
            (
                {"size": "control", "kwok": [{"name": "a", "count": 0}]},
                "kwok[0].count: Input should be greater",
            ),
        ],
    )
    def test_what_does_not_fit_together_is_refused(self, document: object, problem: str) -> None:
        with pytest.raises(SpecError) as refused:
            parse(document, source="x.yaml")
        assert str(refused.value).startswith("x.yaml:\n")
        assert problem in str(refused.value)

    def test_the_name_is_the_files_as_far_as_it_can_be_one(self) -> None:
        assert default_name(Path("x/My Cluster.yaml")) == "my-cluster"
        assert default_name(Path("control-1.34.yaml")) == "control-1.34"
        assert default_name(Path("---.yaml")) == "cluster"

    def test_programs_of_the_control_plane_are_of_the_asked_version(self) -> None:
        newest = wanted_programs(CONTROL, [])
        oldest = wanted_programs(CONTROL.model_copy(update={"kubernetes": "1.34"}), [])
        assert newest["kube-apiserver"] == "kube-apiserver"
        assert oldest["kube-apiserver"] == "kube-apiserver@1.34"
        assert oldest["etcd"] == "etcd"
        assert "kubelet" not in newest
        assert "kubelet" in wanted_programs(ClusterSpec(size=Size.NODES, nodes=(NodeSpec(name="a"),)), [])


class TestObjects:
    def test_a_node_has_its_taints_and_labels_from_the_start(self) -> None:
        spec = NodeSpec(name="gpu-1", labels={"node-role.kubernetes.io/gpu": ""}, taints=[{"key": "k"}])
        node = build_node(spec, Addresses(1), 2)
        assert node["metadata"]["labels"] == {
            "kubernetes.io/hostname": "gpu-1",
            "node-role.kubernetes.io/gpu": "",
        }
        assert node["spec"]["taints"] == [{"key": "k", "value": "", "effect": "NoSchedule"}]
        assert node["spec"]["podCIDR"] == "10.201.66.0/24"

    def test_the_machines_of_a_pool_share_nothing(self) -> None:
        first, second = build_kwok_nodes(KwokPool(name="p", count=2, labels={"a": "b"}))
        assert (first["metadata"]["name"], second["metadata"]["name"]) == ("p-0", "p-1")
        first["metadata"]["labels"]["a"] = "changed"
        assert second["metadata"]["labels"]["a"] == "b"


class TestAuthority:
    def test_its_certificates_are_accepted_by_the_strictest_client(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path / "pki", "test")
        serving = authority.issue("server", "server", hosts=["127.0.0.1", "name.example"])
        asking = authority.issue("client", "jo", groups=["team"])
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
        server.load_cert_chain(serving.certificate, serving.key)
        server.verify_mode = ssl.CERT_REQUIRED
        client = ssl.create_default_context(cafile=str(authority.certificate))
        client.verify_flags |= ssl.VERIFY_X509_STRICT
        client.load_cert_chain(asking.certificate, asking.key)
        seen: list[object] = []
        ours, theirs = socket.socketpair()

        def serve() -> None:
            with server.wrap_socket(theirs, server_side=True) as connection:
                seen.append(connection.getpeercert())
                connection.sendall(b"x")

        thread = threading.Thread(target=serve)
        thread.start()
        with client.wrap_socket(ours, server_hostname="name.example") as connection:
            assert connection.recv(1) == b"x"
        thread.join()
        assert seen[0]["subject"] == ((("organizationName", "team"),), (("commonName", "jo"),))  # type: ignore[index]

    def test_keys_are_for_their_owner_only(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path / "pki", "test")
        pair = authority.issue("a", "a")
        file = authority.kubeconfig(tmp_path / "config", server="https://x", cluster="c", user="a", pair=pair)
        for path in (authority.pair.key, pair.key, file):
            assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(file.read_text())["clusters"][0]["cluster"]["server"] == "https://x"


def hierarchy(root: Path, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in {"cgroup_procs": "", **files}.items():
        (root / name.replace("_", ".", 1)).write_text(content)
    return root


class TestCgroups:
    def test_version_1_gets_a_group_in_each_hierarchy_and_cpusets_are_filled(self, tmp_path: Path) -> None:
        for name in ("cpu", "memory", "pids", "systemd"):
            hierarchy(tmp_path / name)
        hierarchy(tmp_path / "cpuset", cpuset_cpus="0-3\n", cpuset_mems="0\n")
        for group in ("c", "c/n"):
            hierarchy(tmp_path / "cpuset" / group, cpuset_cpus="\n", cpuset_mems="\n")
        cgroups.create("c/n", tmp_path)
        assert (tmp_path / "systemd/c/n").is_dir()
        assert (tmp_path / "cpuset/c/n/cpuset.cpus").read_text() == "0-3\n"

    def test_version_1_without_a_controller_says_which(self, tmp_path: Path) -> None:
        hierarchy(tmp_path / "cpu")
        with pytest.raises(HostError, match="not mounted: cpuset, memory, pids"):
            cgroups.create("c/n", tmp_path)

    def test_version_2_hands_controllers_down(self, tmp_path: Path) -> None:
        offered = "cpuset cpu io memory pids misc"
        for group in ("", "c", "c/n"):
            hierarchy(tmp_path / group, cgroup_controllers=offered, cgroup_subtree_control="memory\n")
        cgroups.create("c/n", tmp_path)
        for group in ("", "c", "c/n"):
            given = (tmp_path / group / "cgroup.subtree_control").read_text()
            assert given == "+cpu +cpuset +io +pids"

    def test_version_2_without_a_controller_says_which(self, tmp_path: Path) -> None:
        hierarchy(tmp_path, cgroup_controllers="cpu memory", cgroup_subtree_control="")
        with pytest.raises(HostError, match="not available: cpuset, pids"):
            cgroups.create("c/n", tmp_path)

    def test_groups_are_removed_from_the_leaves_up(self, tmp_path: Path) -> None:
        hierarchy(tmp_path / "cpu")
        (tmp_path / "cpu/c/n/pod/container").mkdir(parents=True)
        (tmp_path / "cpu/other").mkdir()
        cgroups.remove("c", tmp_path)
        assert sorted(p.name for p in (tmp_path / "cpu").iterdir()) == ["cgroup.procs", "other"]


class TestLimits:
    @pytest.fixture
    def limits(self, tmp_path: Path) -> Limits:
        for setting in SETTINGS:
            file = tmp_path / "sys" / setting
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("128\n")
        return Limits(tmp_path / "note.json", tmp_path / "sys")

    def read(self, limits: Limits) -> set[int]:
        return {int((limits.root / setting).read_text()) for setting in SETTINGS}

    def test_the_last_cluster_puts_back_what_the_first_one_found(self, limits: Limits) -> None:
        limits.hold("one")
        limits.hold("two")
        assert self.read(limits) == set(SETTINGS.values())
        limits.release("one", is_up=lambda name: name == "two")
        assert self.read(limits) == set(SETTINGS.values())
        limits.release("two", is_up=lambda _: False)
        assert self.read(limits) == {128}

    def test_a_killed_cluster_holds_nothing(self, limits: Limits) -> None:
        limits.hold("killed")
        limits.hold("one")
        limits.release("one", is_up=lambda _: False)
        assert self.read(limits) == {128}

    def test_what_was_high_enough_or_changed_meanwhile_is_left(self, limits: Limits) -> None:
        first, second = SETTINGS
        (limits.root / first).write_text("999999")
        limits.hold("one")
        (limits.root / second).write_text("777777")
        limits.release("one", is_up=lambda _: False)
        assert self.read(limits) == {999999, 777777}


class TestClaims:
    def test_a_name_is_held_once_and_free_again_afterwards(self) -> None:
        held = claims.claim_name("a")
        assert claims.is_claimed("a")
        with pytest.raises(StateError, match="cluster 'a' is up already"):
            claims.claim_name("a")
        other, second = claims.claim_free_name("a")
        assert other == "a-2"
        for descriptor in (held, second):
            os.close(descriptor)
        assert not claims.is_claimed("a")

    @pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "a" * 33])
    def test_what_could_be_a_path_is_no_name(self, name: str) -> None:
        with pytest.raises(StateError, match="has no valid name"):
            claims.claim_name(name)

    def test_two_clusters_have_two_slots(self) -> None:
        (one, first), (two, second) = claims.claim_slot(Size.CONTROL), claims.claim_slot(Size.CONTROL)
        assert one != two
        for descriptor in (first, second):
            os.close(descriptor)


class TestRecord:
    @pytest.fixture
    def record(self, tmp_path: Path) -> Record:
        return Record(name="a", spec=CONTROL, state_dir=tmp_path, slot=39, programs={})

    def test_a_port_is_free_and_stays_the_same(self, record: Record) -> None:
        port = record.port("one")
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))
            server.listen()
            assert record.port("one") == port
            assert record.port("two") != port

    def test_a_port_that_somebody_listens_on_is_not_given(self, record: Record) -> None:
        with socket.socket() as server:
            first = record.port("probe")
            server.bind(("127.0.0.1", first + 1))
            server.listen()
            assert record.port("other") not in {first, first + 1}
            assert first // PORTS_PER_SLOT == record.port("other") // PORTS_PER_SLOT

    def test_it_is_read_as_it_was_written(self, record: Record) -> None:
        record.save()
        assert Record.load(record.state_dir) == record

    def test_a_folder_without_one_is_no_cluster(self, tmp_path: Path) -> None:
        with pytest.raises(StateError, match="is not known"):
            Record.load(tmp_path / "none")


def test_node_files_are_what_their_readers_parse(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki", "test")
    files = NodeFiles(
        folder=tmp_path / 'a "quoted" folder',
        index=1,
        addresses=Addresses(2),
        cgroup="c/n",
        sandbox_image="devcluster.test/pause:1",
        snapshotter="overlayfs",
        runc=Path("/usr/sbin/runc"),
        cni_folder=Path("/usr/lib/cni"),
        ca=authority.certificate,
        serving=authority.issue("n", "n"),
    )
    files.write()
    containerd = tomllib.loads((files.folder / "containerd.toml").read_text())
    assert containerd["root"] == str(files.folder / "containerd")
    runtime = containerd["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["cni"]["bin_dirs"] == ["/usr/lib/cni"]
    kubelet = json.loads((files.folder / "kubelet.json").read_text())
    assert (kubelet["cgroupRoot"], kubelet["clusterDNS"]) == ("/c/n", ["10.202.128.10"])
    network = json.loads((files.folder / "cni/10-pods.conflist").read_text())
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.202.65.0/24"}]]
