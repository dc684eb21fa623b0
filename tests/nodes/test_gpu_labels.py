"""NVIDIA's feature discovery over the imitated driver: the labels of each set-up, without a cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.devcluster.build import ensure, nvml_header_dir
from tests.devcluster.gpu.config import plugin_config
from tests.devcluster.gpu.driver import Machine, library
from tests.devcluster.gpu.labels import parse_labels
from tests.devcluster.gpu.node import DISCOVERY
from tests.devcluster.gpu.products import PRODUCTS
from tests.devcluster.gpu.setup import GpuSetup, install
from tests.nodes.gpu_setups import SETUPS, Expected

SAME_EVERYWHERE = ("nvidia.com/cuda.", "nvidia.com/gpu.machine")
"""Labels of driver and machine, which say nothing about the set-up."""


def discover(setup: GpuSetup, folder: Path) -> Mapping[str, str]:
    """Run feature discovery on a machine with these cards."""
    machine = Machine(folder)
    machine.install(setup, install(setup, seed="test"))
    config, output = folder / "config.yaml", folder / "labels"
    config.write_text(plugin_config(setup.plugin))
    program = ensure([DISCOVERY])[DISCOVERY]
    flags = [
        f"--config-file={config}",
        f"--output-file={output}",
        f"--machine-type-file={machine.product_name}",
    ]
    subprocess.run(
        machine.command([program, "--oneshot", "--no-timestamp", *flags]),
        env=machine.environment(library(nvml_header_dir()), path=os.environ["PATH"]),
        check=True,
    )
    return parse_labels(output.read_text())


@pytest.mark.parametrize("expected", SETUPS.values(), ids=SETUPS)
def test_each_set_up_has_its_labels(expected: Expected, tmp_path: Path) -> None:
    found = discover(expected.setup, tmp_path)
    assert {
        name: value for name, value in found.items() if not name.startswith(SAME_EVERYWHERE)
    } == expected.labels


def test_driver_and_machine_are_labelled(tmp_path: Path) -> None:
    found = discover(SETUPS["whole"].setup, tmp_path)
    assert found["nvidia.com/cuda.driver-version.full"] == "580.159.04"
    assert found["nvidia.com/cuda.runtime-version.full"] == "13.0"
    assert found["nvidia.com/gpu.machine"] == "Imitated-GPU-server"


CUTTABLE = {
    f"{product.key} {profile.name}": (product.key, profile.name)
    for product in PRODUCTS.values()
    for profile in product.profiles
}


@pytest.mark.parametrize(("product", "profile"), CUTTABLE.values(), ids=CUTTABLE)
def test_nvidia_s_library_names_each_profile_as_we_do(product: str, profile: str, tmp_path: Path) -> None:
    setup = GpuSetup.model_validate(
        {"product": product, "cards": [{"mig": [profile]}], "plugin": {"flags": {"migStrategy": "mixed"}}}
    )
    found = discover(setup, tmp_path)
    resource = f"nvidia.com/mig-{profile.replace('+', '.')}"
    assert found[f"{resource}.count"] == "1"
    assert found["nvidia.com/gpu.product"] == PRODUCTS[product].label
