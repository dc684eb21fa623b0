"""The bundle's own wheel, which `images/hub` and `images/services` install.

Shell: runs pip.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build import agent
from tests.devcluster.build.plan import Shell, Step

WHEEL = "wheel:bundle"
ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE", "hub_ext", "services")
"""What it is built from."""


def steps() -> dict[str, Step]:
    """The build step of the wheel."""
    return {WHEEL: Step(name=WHEEL, target=wheel_folder(), make=_make, seconds=10)}


def wheel_folder() -> Path:
    """Where the wheel is when its step is done; the folder above is named by all that decides its content."""
    parts = (part for source in SOURCES for part in agent.content(ROOT / source))
    return cache.entry("wheels", cache.key_of(*parts), "bundle-wheel")


def _make(target: Path, run: Shell) -> None:
    """Build it from a copy of its sources, so that nothing is left in the checkout."""
    source = target.with_name(f"{target.name}.work")
    cache.remove(source)
    source.mkdir(parents=True)
    try:
        for name in SOURCES:
            origin = ROOT / name
            if origin.is_dir():
                shutil.copytree(origin, source / name, ignore=shutil.ignore_patterns(*agent.BUILT))
            else:
                shutil.copy(origin, source / name)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, source)
    finally:
        cache.remove(source)
