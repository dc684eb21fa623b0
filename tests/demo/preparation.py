"""What the demo needs before it starts, and having it built.

Shell: builds and installs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.demo.hub import IMAGE
from tests.demo.proxy import ensure_proxy
from tests.demo.services import TOOL
from tests.devcluster import build, cache
from tests.devcluster.addon import load_addons
from tests.devcluster.bringup import NODE_TOOLS, wanted_programs
from tests.devcluster.build.plan import Step, steps_missing
from tests.devcluster.errors import HostError
from tests.devcluster.host import check_host
from tests.devcluster.spec import ClusterSpec

CLUSTER = Path(__file__).parent / "demo.yaml"
IMAGE_TOOLS = ("mmdebstrap", "buildah")
BUILD_BYTES = 20 * 2**30
"""Free space that building everything takes for a while."""


def missing_steps(spec: ClusterSpec) -> list[Step]:
    """What is not built yet."""
    return steps_missing(_wanted(spec), build.all_steps())


def prepare(spec: ClusterSpec, *also: str) -> None:
    """Have everything built and installed that the demo needs, showing how far that is.

    `also` names further things of `tests.devcluster.build`.

    Raises `HostError` or `BuildError`.
    """
    check_host(spec, cache.cache_root())
    missing = missing_steps(spec)
    if missing:
        _check_space(cache.cache_root())
    tools = {*NODE_TOOLS, *(tool for addon in load_addons(spec.addons) for tool in addon.tools)}
    build.ensure_tools([*sorted(tools), *(IMAGE_TOOLS if missing else ())])
    ensure_proxy()
    build.ensure([*_wanted(spec), *also])
    if missing:
        print("Dropping what only the building needed", flush=True)
        build.prune()


def _wanted(spec: ClusterSpec) -> list[str]:
    return [*wanted_programs(spec, load_addons(spec.addons)).values(), f"image:{IMAGE}", f"image:{TOOL}"]


def _check_space(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < BUILD_BYTES:
        raise HostError(
            f"building takes up to {BUILD_BYTES // 2**30} GB, and {folder} has {free // 2**30} GB free",
            f"free some space, or set {cache.ROOT_VARIABLE} to a folder on a larger disk",
        )
