"""The two ends of the supported version range, each as a virtual environment in the cache.

``python -m tests.matrix oldest`` creates what is missing and prints the interpreter's path.

Shell: runs pip.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.errors import BuildError

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class End:
    """One end of the range: the hub's own packages, pinned to a minor version."""

    name: str
    jupyterhub: str
    kubespawner: str

    @property
    def title(self) -> str:
        return f"JupyterHub {self.jupyterhub}, KubeSpawner {self.kubespawner}"

    @property
    def requirements(self) -> tuple[str, ...]:
        return f"jupyterhub=={self.jupyterhub}.*", f"jupyterhub-kubespawner=={self.kubespawner}.*"


OLDEST = End(name="oldest", jupyterhub="5.5", kubespawner="7.0")
NEWEST = End(name="newest", jupyterhub="6.1", kubespawner="7.1")
ENDS = (OLDEST, NEWEST)


def python(end: End) -> Path:
    """Return an interpreter with this end of the range and the project's own test requirements.

    The running interpreter serves if it has the versions already; another environment is made once, from
    the package index, and kept in the cache.

    Raises
    ------
    BuildError
        pip could not install it; the message is pip's own.
    """
    if _installed(end):
        return Path(sys.executable)
    folder = cache.entry("venvs", _key(end), end.name)
    interpreter = folder / "bin" / "python"
    with cache.locked(f"venv-{folder.parent.name}"):
        ready = folder / ".ready"
        if not ready.exists():
            print(f"Installing {end.title} into {folder}", file=sys.stderr, flush=True)
            _create(folder, end)
            ready.touch()
        cache.mark_used(folder)
    return interpreter


def _installed(end: End) -> bool:
    """Whether the running interpreter already is this end of the range."""
    wanted = {"jupyterhub": end.jupyterhub, "jupyterhub-kubespawner": end.kubespawner}
    return all(metadata.version(name).split(".")[:2] == minor.split(".") for name, minor in wanted.items())


def _key(end: End) -> str:
    """Everything that decides the content: the checkout is installed in place, so its path counts too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    parts = [str(project[table]) for table in ("dependencies", "optional-dependencies", "entry-points")]
    return cache.key_of(str(ROOT), sys.version, *end.requirements, *parts)


def _create(folder: Path, end: End) -> None:
    """Make the environment; a half-made one is made again, since scripts in it name its final path."""
    venv.create(folder, clear=True, with_pip=True)
    command = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    result = subprocess.run(
        [*command, "--editable", f"{ROOT}[test]", *end.requirements],
        check=False,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise BuildError(f"cannot install {end.title} into {folder}:\n{result.stderr or result.stdout}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("end", choices=[end.name for end in ENDS])
    chosen = parser.parse_args().end
    print(python(next(end for end in ENDS if end.name == chosen)))


if __name__ == "__main__":
    main()
