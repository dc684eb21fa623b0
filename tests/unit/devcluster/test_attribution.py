"""Who holds a card, from a kubelet's own files, and what the exporter then says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.devcluster.monitoring.attribution import (
    Device,
    Kubelet,
    SliceDevice,
    attributed,
    read_holders,
    together,
)
from tests.devcluster.monitoring.dcgm import Card, Field, Pod, Use

ADA, VERA = (Pod(namespace="hub", name=f"jupyter-{name}") for name in ("ada", "vera"))
FOLDERS = ["hub_jupyter-ada_uid-ada", "hub_jupyter-vera_uid-vera", "lost+found"]
WHOLE, SHARED = Device(card=Card(uuid="GPU-a")), Device(card=Card(uuid="GPU-s"), shared=True)
CUT = Device(
    card=Card(uuid="GPU-m"),
    slices=(
        SliceDevice(uuid="MIG-1", profile="1g.18gb", instance=7),
        SliceDevice(uuid="MIG-2", profile="1g.18gb", instance=8),
    ),
)


def entry(user: str, *devices: str, resource: str = "nvidia.com/gpu") -> dict[str, Any]:
    return {
        "PodUID": f"uid-{user}",
        "ContainerName": "notebook",
        "ResourceName": resource,
        "DeviceIDs": {"-1": list(devices)},
    }


def checkpoint(*entries: dict[str, Any]) -> str:
    return json.dumps({"Data": {"PodDeviceEntries": entries or None}, "Checksum": 1})


def test_holders_are_named() -> None:
    text = checkpoint(entry("ada", "GPU-a"), entry("vera", "MIG-1", resource="nvidia.com/mig-1g.18gb"))
    assert read_holders(text, FOLDERS) == {"GPU-a": [ADA], "MIG-1": [VERA]}


def test_shares_stand_in_their_order() -> None:
    text = checkpoint(entry("vera", "GPU-s::1"), entry("ada", "GPU-s::0"))
    assert read_holders(text, FOLDERS) == {"GPU-s": [ADA, VERA]}


def test_who_is_gone_and_what_the_exporter_does_not_know_is_left_out() -> None:
    text = checkpoint(
        entry("gone", "GPU-a"),
        entry("ada", "GPU-s::0", resource="nvidia.com/gpu.shared"),
        entry("vera", "disk-1", resource="example.com/disk"),
    )
    assert read_holders(text, FOLDERS) == {}
    assert read_holders(checkpoint(), FOLDERS) == {}


def test_a_kubelet_that_gave_out_nothing_yet_has_no_file(tmp_path: Path) -> None:
    kubelet = Kubelet(checkpoint=tmp_path / "checkpoint", logs=tmp_path / "logs")
    assert kubelet.holders() == {}
    kubelet.checkpoint.write_text(checkpoint(entry("ada", "GPU-a")))
    assert kubelet.holders() == {}
    (kubelet.logs / FOLDERS[0]).mkdir(parents=True)
    assert kubelet.holders() == {"GPU-a": [ADA]}


def test_all_is_at_rest_until_told_otherwise() -> None:
    readings = attributed([WHOLE, CUT, SHARED], {"GPU-a": [ADA], "MIG-2": [VERA]}, {})
    assert [(reading.pod, reading.values[Field.ENGINE]) for reading in readings] == [
        (ADA, 0),
        (None, 0),
        (VERA, 0),
        (None, 0),
    ]


def test_uses_go_to_the_devices_of_their_pods() -> None:
    uses = {"hub/jupyter-ada": Use(engine=0.5, util=40), "hub/nobody": Use(engine=1)}
    holders = {"GPU-a": [ADA], "MIG-1": [ADA], "GPU-s": [ADA, VERA]}
    readings = attributed([WHOLE, CUT, SHARED], holders, uses)
    engines = [(r.card.uuid, r.values.get(Field.ENGINE)) for r in readings]
    assert engines == [
        ("GPU-a", 0.5),
        ("GPU-m", 0.5),
        ("GPU-m", 0),
        ("GPU-s", None),
        ("GPU-s", 0.5),
        ("GPU-s", 0.5),
    ]
    assert [r.values[Field.UTIL] for r in readings if r.card.uuid == "GPU-s"] == [40, 40, 0]


def test_a_card_does_no_more_than_it_can() -> None:
    both = together([Use(engine=0.7, util=90, memory_mib=10), Use(engine=0.7, util=90, memory_mib=5)])
    assert (both.engine, both.util, both.memory_mib) == (1, 100, 15)
    assert together([]).engine == 0
