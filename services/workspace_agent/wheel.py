"""Builds the wheel that notebook images install: ``python -m services.workspace_agent.wheel FOLDER``.

It holds the bundle's own modules, the JupyterLab extension and the ``gpu-workspaces`` command, and depends on
nothing that only a hub needs. Versions, requirements and verbs are those of the bundle's `pyproject.toml`.

It needs Node with npm, and a checkout. Shell: runs npm and pip.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from . import LAB_EXTENSION

ROOT = Path(__file__).resolve().parents[2]
LAB = Path(__file__).resolve().parent / "lab"
NAME: Final = "jupyterhub-gpu-workspaces-agent"
HUB_ONLY: Final = frozenset({"jupyterhub", "jupyterhub-kubespawner", "kubernetes-asyncio"})
"""Requirements of the bundle that a workspace does without."""
COMMAND_NEEDS: Final = frozenset({"httpx", "pathspec"})
"""Requirements of services that the command has in a workspace, too."""
VERBS: Final = frozenset({"doctor", "handoff", "run"})
"""Verbs of services that are of use in a workspace."""
MODULES: Final = ("hub_ext", "services")
SETTINGS: Final = "jupyter-config/gpu-workspaces.json"
"""Tells the Jupyter server to load the agent."""

Run = Callable[..., object]
"""Runs a command; takes `cwd`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m services.workspace_agent.wheel", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the wheel goes")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        lab = Path(work) / "lab"
        copy_lab(lab)
        install_packages(lab, _run)
        build_wheel(build_lab(lab, _run), options.folder.resolve(), Path(work) / "source", _run)
    return 0


def copy_lab(to: Path) -> None:
    """Copy the JupyterLab extension's sources, so that nothing is left in the checkout."""
    shutil.copytree(LAB, to, ignore=shutil.ignore_patterns("node_modules", "lib", "labextension"))


def install_packages(lab: Path, run: Run) -> None:
    """Fetch what the JupyterLab extension is built with, as its lock file has it."""
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=lab)


def build_lab(lab: Path, run: Run) -> Path:
    """Check, test and bundle the JupyterLab extension; returns the folder that it is in."""
    run("npm", "run", "build", cwd=lab)
    built = lab / "labextension"
    for leftover in built.rglob("package.json.orig"):
        leftover.unlink()
    return built


def build_wheel(extension: Path, to: Path, source: Path, run: Run) -> None:
    """Build the wheel around a bundled JupyterLab extension. `source` is made and left behind."""
    for name in MODULES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "lab"))
    shutil.copytree(extension, source / "labextension")
    shutil.copy(ROOT / "LICENSE", source)
    bundle = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (source / "pyproject.toml").write_text(toml(describe(bundle["project"])))
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", to, source)


def describe(bundle: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The wheel's `pyproject.toml`, by table, made of the bundle's ``[project]``."""
    extras = bundle["optional-dependencies"]
    needed = [entry for entry in extras["services"] if requirement_name(entry) in COMMAND_NEEDS]
    common = [entry for entry in bundle["dependencies"] if requirement_name(entry) not in HUB_ONLY]
    verbs = bundle["entry-points"].get("gpu_workspaces.verbs", {})
    kept = {key: bundle[key] for key in ("version", "requires-python", "license", "license-files")}
    shared = "tool.hatch.build.targets.wheel.shared-data"
    return {
        "build-system": {"requires": ["hatchling>=1.27"], "build-backend": "hatchling.build"},
        "project": {
            "name": NAME,
            "description": "What a GPU workspace tells and shows: its session, its GPUs, why it is stopped",
            **kept,
            "dependencies": sorted({*common, *extras["agent"], *needed}),
        },
        "project.scripts": bundle["scripts"],
        'project.entry-points."gpu_workspaces.verbs"': {
            verb: module for verb, module in verbs.items() if verb in VERBS
        },
        "tool.hatch.build.targets.wheel": {"packages": list(MODULES)},
        shared: {
            "labextension": f"share/jupyter/labextensions/{LAB_EXTENSION}",
            f"services/workspace_agent/{SETTINGS}": (
                f"etc/jupyter/jupyter_server_config.d/{Path(SETTINGS).name}"
            ),
        },
    }


def requirement_name(requirement: str) -> str:
    """The name in a requirement such as ``jinja2>=3.1``."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()


def toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables of strings and lists of strings as TOML, which writes them as JSON does."""
    lines: list[str] = []
    for table, values in tables.items():
        lines += [
            f"[{table}]",
            *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items()),
        ]
    return "\n".join([*lines, ""])


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True)  # noqa: S603 - npm and pip


if __name__ == "__main__":
    sys.exit(main())
