"""The wheel that `images/agent` installs: npm's packages, the JupyterLab extension, and the wheel around it.

Each of the three is kept for itself, for they change ever more often.

Shell: runs npm and pip.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from services.workspace_agent import wheel
from tests.devcluster import cache
from tests.devcluster.build.errors import MissingToolsError
from tests.devcluster.build.plan import Pool, Shell, Step

PACKAGES, EXTENSION, WHEEL = "lab:packages", "lab:extension", "wheel:agent"
RECIPE = "1"
"""Raise it when code here changes what is made of the same inputs."""
LISTS = ("package.json", "package-lock.json")
WHEEL_SOURCES = ("pyproject.toml", "LICENSE", *wheel.MODULES)


def steps() -> dict[str, Step]:
    """Build steps of the wheel and of what it is made of."""
    # Found once, for the sources may change while others build.
    extension_target = cache.entry("node", _key(wheel.LAB), "extension")
    packages_target = cache.entry("node", _key(*(wheel.LAB / name for name in LISTS)), "lab")
    packages = Step(
        name=PACKAGES,
        target=packages_target,
        make=_packages,
        pool=Pool.DOWNLOAD,
        seconds=50,
    )
    extension = Step(
        name=EXTENSION,
        target=extension_target,
        make=partial(_extension, packages_target),
        needs=(PACKAGES,),
        seconds=12,
    )
    make = partial(_make_wheel, extension_target)
    made = Step(name=WHEEL, target=wheel_folder(), make=make, needs=(EXTENSION,), seconds=8)
    return {step.name: step for step in (packages, extension, made)}


def wheel_key() -> str:
    """Hash of all that decides the wheel's content."""
    return _key(*(wheel.ROOT / name for name in WHEEL_SOURCES))


def wheel_folder() -> Path:
    """Where the wheel is when its step is done."""
    return cache.entry("node", wheel_key(), "agent-wheel")


def content(path: Path) -> Iterator[bytes]:
    """Names and bytes of a file or of all files below a folder, in a fixed order; nothing that is built."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        if not BUILT.intersection(file.relative_to(path.parent).parts):
            yield str(file.relative_to(path.parent)).encode()
            yield file.read_bytes()


BUILT = frozenset({"__pycache__", "node_modules", "lib", "labextension"})


def _key(*paths: Path) -> str:
    return cache.key_of(RECIPE, *(part for path in paths for part in content(path)))


def _packages(target: Path, run: Shell) -> None:
    if shutil.which("npm") is None:
        because = "install Node 20 or newer with npm from https://nodejs.org or your distribution"
        raise MissingToolsError(["npm"], [], because=because)
    target.mkdir()
    for name in LISTS:
        shutil.copy(wheel.LAB / name, target)
    wheel.install_packages(target, run)


def _extension(packages: Path, target: Path, run: Shell) -> None:
    lab = target.with_name(f"{target.name}.work")
    cache.remove(lab)
    try:
        wheel.copy_lab(lab)
        (lab / "node_modules").symlink_to(packages / "node_modules")
        shutil.copytree(wheel.build_lab(lab, run), target)
    finally:
        cache.remove(lab)


def _make_wheel(extension: Path, target: Path, run: Shell) -> None:
    work = target.with_name(f"{target.name}.work")
    cache.remove(work)
    try:
        wheel.build_wheel(extension, target, work, run)
    finally:
        cache.remove(work)
