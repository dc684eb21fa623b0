"""What the tiers need on this machine, had before any of them runs: building belongs to no test's time.

Shell: builds and installs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests import matrix
from tests.demo import preparation as demo
from tests.demo.proxy import ensure_proxy
from tests.devcluster import build
from tests.devcluster.addon import load_addons
from tests.devcluster.bringup import NODE_TOOLS, wanted_programs
from tests.devcluster.build.keycloak import NAME as KEYCLOAK
from tests.devcluster.build.plan import steps_missing
from tests.devcluster.pytest_plugin import KUBECONFIG_VARIABLE
from tests.devcluster.spec import FOLDER, ClusterSpec, load

CONTROL_FILES = ("control", "control-1.34")
EXTRA = {
    "hub": ("prometheus", "promtool", KEYCLOAK),
    "control": (
        *("kube-apiserver", "kubectl", "etcd", "prometheus", "promtool", "versitygw"),
        "manifest:snapshots",
    ),
    "nodes": ("image:helper", "image:base", "image:notebook", "image:ray", "versitygw", KEYCLOAK),
    "browser": ("image:notebook-plain", "image:notebook", "image:hub"),
}
"""Names of the build that a tier's tests ask for beside what their clusters are made of."""
RUN_BY = {KEYCLOAK: "java"}
"""Tools without which something that was built is of no use."""


def cluster_files(tier: str) -> list[str]:
    """The cluster files that a tier starts."""
    match tier:
        case "hub" | "control":
            return list(CONTROL_FILES)
        case "nodes":
            return sorted(path.stem for path in FOLDER.glob("nodes*.yaml"))
        case "browser":
            return [str(demo.CLUSTER)]
        case _:
            return []


def prepare(tiers: Iterable[str], ends: Iterable[matrix.End] = ()) -> None:
    """Have everything built and installed that the tiers need, showing how far that is.

    `ends` are the ends of the version matrix that they run with.

    Raises `BuildError`.
    """
    with ThreadPoolExecutor() as beside:  # packages are mostly waited for
        environments = [beside.submit(matrix.python, end) for end in ends]
        _build(tiers)
        for environment in environments:
            environment.result()


def _build(tiers: Iterable[str]) -> None:
    wanted_tiers = [tier for tier in tiers if tier in EXTRA]
    if KUBECONFIG_VARIABLE in os.environ:
        wanted_tiers = [tier for tier in wanted_tiers if tier not in {"hub", "control"}]
    specs = [load(file)[1] for tier in wanted_tiers for file in cluster_files(tier)]
    names = dict.fromkeys(
        [name for spec in specs for name in _programs(spec)]
        + [name for tier in wanted_tiers for name in EXTRA[tier]]
    )
    missing = steps_missing(names, build.all_steps())
    tools = {tool for spec in specs for tool in _tools(spec)}
    tools |= {tool for name, tool in RUN_BY.items() if name in names}
    if "browser" in wanted_tiers:
        tools |= {"chromium", *(demo.IMAGE_TOOLS if missing else ())}
        ensure_proxy()
    build.ensure_tools(sorted(tools))
    build.ensure(names)
    if missing:
        print("Dropping what only the building needed", flush=True)
        build.prune()


def _programs(spec: ClusterSpec) -> list[str]:
    return list(wanted_programs(spec, load_addons(spec.addons)).values())


def _tools(spec: ClusterSpec) -> set[str]:
    addons = {tool for addon in load_addons(spec.addons) for tool in addon.tools}
    return addons | set(NODE_TOOLS if spec.nodes else ())
