"""Whether a draft gives the pods that the old list gave.

Pure: no clock, no network.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..catalog.compose import Workspace, compose
from ..catalog.gpus import grant
from ..catalog.model import Catalog
from ..errors import Finding, SelectionError
from .codes import Code, Findings
from .draft import SMALL, Combination
from .facts import Facts


def differences(catalog: Catalog, combinations: tuple[Combination, ...]) -> tuple[Finding, ...]:
    """Say for each old combination of choices in what its pod would differ; the place is in the old list."""
    findings = Findings(lambda _: (None, None))
    for combination in combinations:
        picks = ", ".join(f"{key}={pick}" for key, pick in combination.picks.items())
        profile = catalog.by_key[combination.profile, 1]
        try:
            workspace = compose(catalog, profile, combination.picks)
        except SelectionError as error:
            findings.add(Code.POD_DIFFERS, combination.loc, f"{picks} cannot be started: {error.message}")
            continue
        for what in _differences(workspace, combination.facts):
            findings.add(Code.POD_DIFFERS, combination.loc, f"{combination.profile} ({picks}): {what}")
    return tuple(findings.found)


def _differences(workspace: Workspace, facts: Facts) -> Iterator[str]:
    pool = workspace.pool
    gpu = workspace.gpu and pool and pool.gpu and grant(pool.gpu, workspace.gpu)
    written = (
        [t.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True) for t in pool.tolerations]
        if pool
        else []
    )
    pairs: Mapping[str, tuple[Any, Any]] = {
        "image": (str(workspace.reference), facts.image),
        "processors": ((workspace.cpu.request, workspace.cpu.limit), _amounts(facts.cpu, SMALL[0])),
        "memory": ((workspace.memory.request, workspace.memory.limit), _amounts(facts.memory, SMALL[1])),
        "GPU": ((gpu.resource, gpu.count) if gpu else None, facts.gpu),
        "node selector": (dict(pool.node_selector) if pool else {}, dict(facts.place.node_selector)),
        "tolerations": (written, [dict(items) for items in facts.place.tolerations]),
        "variables": (dict(workspace.environment), dict(facts.environment)),
        "shared memory": (workspace.storage.shared_memory is None, "sharedMemory" not in facts.storage),
        "mounts": (set(workspace.storage.mounts), set(facts.storage.get("mounts", {}))),
    }
    for what, (new, old) in pairs.items():
        if new != old:
            yield f"{what} {_said(new)} instead of {_said(old)}"


def _amounts(old: tuple[int | None, int | None], small: int) -> tuple[int | None, int | None]:
    return (small if old[0] is None else old[0], old[1])


def _said(value: Any) -> str:
    return "none" if value in (None, {}, [], set()) else str(value)
