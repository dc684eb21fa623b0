"""Look at the GPU from inside a workspace.

Shell: reads files, starts probes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .facts import End, Facts, facts_from
from .framework_probe import NAMES
from .probe import ask

HERE: Final = Path(__file__).resolve().parent
KERNELS: Final = "/opt/workspace/bin/python"
"""Interpreter of kernels in the images of this bundle."""
SECONDS: Final = 60
"""A probe that takes longer hangs, which is an answer too; large frameworks load slowly from a cold disk."""
VARIABLES: Final = (
    "CUDA_VERSION",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MPS_PIPE_DIRECTORY",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_REQUIRE_CUDA",
    "NVIDIA_VISIBLE_DEVICES",
)
_VERSION: Final = re.compile(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s")


def observe(
    *, python: str = "", root: Path = Path("/"), environment: Mapping[str, str] = os.environ
) -> Facts:
    """Gather everything; whatever cannot be looked at is left unknown.

    Parameters
    ----------
    python
        Interpreter whose frameworks are asked; by default that of kernels, or this one.
    root
        Where `dev` and `proc` are.
    """
    python = python or (KERNELS if Path(KERNELS).exists() else sys.executable)
    devices = _devices(root)  # first: for root, the driver's libraries make those that are missing
    driver = ask([sys.executable, str(HERE / "driver_probe.py")], environment, SECONDS)
    told: dict[str, Any] = driver.said if isinstance(driver.said, dict) else {}
    return facts_from(
        {
            "cuda": told.get("cuda"),
            "nvml": told.get("nvml"),
            "probe": {"end": driver.end, "step": told.get("step", ""), "error": driver.error},
            "device_files": devices,
            "kernel_driver": _kernel_driver(root),
            "frameworks": _frameworks(python, environment),
            "python": python,
            "environment": {name: environment[name] for name in VARIABLES if name in environment},
            "image_cuda": environment.get("CUDA_VERSION", ""),
        }
    )


def _devices(root: Path) -> list[dict[str, Any]]:
    found = sorted([*root.glob("dev/nvidia*"), *root.glob("dev/nvidia-caps/*"), *root.glob("dev/dxg")])
    return [
        {"path": f"/{path.relative_to(root)}", "usable": os.access(path, os.R_OK | os.W_OK)}
        for path in found
        if path.name != "nvidia-caps"
    ]


def _kernel_driver(root: Path) -> str | None:
    try:
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = _VERSION.search(text)
    return match[1] if match else None


def _frameworks(python: str, environment: Mapping[str, str]) -> list[dict[str, Any]] | None:
    found = []
    for name in NAMES:
        answer = ask([python, str(HERE / "framework_probe.py"), name], environment, SECONDS)
        if answer.end is End.NOT_STARTED:
            return None
        if answer.end is not End.ANSWERED:
            found.append({"name": name, "end": answer.end, "error": answer.error})
        elif answer.said is not None:
            found.append(answer.said)
    return found
