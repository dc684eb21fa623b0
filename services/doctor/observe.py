"""Look at the GPU from inside a workspace.

Shell: reads files, starts probes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .facts import Facts, facts_from
from .framework_probe import NAMES

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
    driver = _probe([sys.executable, str(HERE / "driver_probe.py")], environment)
    fields: dict[str, Any] = driver if isinstance(driver, dict) else {"cuda": {"error": str(driver)}}
    return facts_from(
        {
            **fields,
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
        told = _probe([python, str(HERE / "framework_probe.py"), name], environment)
        if isinstance(told, OSError):
            return None
        if isinstance(told, dict):
            found.append(told)
        elif told is not None:
            found.append({"name": name, "error": str(told)})
    return found


def _probe(command: list[str], environment: Mapping[str, str]) -> Any:
    """Run a probe; gives what it printed, or the exception that says how it ended."""
    try:
        done = subprocess.run(  # noqa: S603 - an interpreter and files of this package
            command, capture_output=True, text=True, timeout=SECONDS, env=dict(environment), check=True
        )
        return json.loads(done.stdout.splitlines()[-1])
    except OSError as error:
        return error
    except subprocess.TimeoutExpired:
        return TimeoutError(f"no answer within {SECONDS} seconds")
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:] or [f"it ended with {error.returncode}"]
        return RuntimeError(last[0][:300])
    except (ValueError, IndexError) as error:
        return RuntimeError(f"an answer that is none: {error}")
