"""Runs that were made from workspaces: what they take before their pods are there.

The contract with whoever makes runs: the template of each pod carries the labels and annotations of a
workspace's pod (`names.LABEL_TEAM`, `names.LABEL_POOL`, `names.ANNOTATION_USER`) and `names.LABEL_JOB`. Their
pods then count as all pods do. Between the moment that Kueue admits a run and the moment that its pods exist,
its Workload counts for the pods that are still missing; a run that waits for its turn takes nothing.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..names import LABEL_JOB
from .arithmetic import Resources, total
from .demand import Weights, holding_of
from .usage import Holding, Owner

RunKey = tuple[str, str]
"""Namespace and name of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run takes that was admitted."""

    key: RunKey
    owner: Owner
    taken: Resources


def run_of(pod: Mapping[str, Any]) -> RunKey | None:
    """Say which run a pod belongs to, from its manifest or as the API shows it; None for none."""
    metadata = pod.get("metadata") or {}
    name = (metadata.get("labels") or {}).get(LABEL_JOB)
    return (metadata.get("namespace", ""), name) if name else None


def admitted_run(workload: Mapping[str, Any], weights: Weights) -> Run | None:
    """Read a Workload of ``kueue.x-k8s.io``; None if it is no run's, or is not admitted, or is over.

    Raises
    ------
    QuantityError
        A request is not a quantity; the API never shows such a Workload.
    """
    namespace = workload["metadata"].get("namespace", "")
    holds = {
        one.get("type"): one.get("status") == "True"
        for one in (workload.get("status") or {}).get("conditions") or ()
    }
    if not holds.get("QuotaReserved") or holds.get("Finished"):
        return None
    key, owner, parts = None, Owner(user=""), []
    for pod_set in (workload.get("spec") or {}).get("podSets") or ():
        template = pod_set.get("template") or {}
        pod = {**template, "metadata": {**(template.get("metadata") or {}), "namespace": namespace}}
        holding = holding_of(pod, weights)
        key, owner = key or run_of(pod), owner if owner.user else holding.owner
        parts += [holding.taken] * int(pod_set.get("count") or 1)
    return Run(key=key, owner=owner, taken=total(parts)) if key else None


class Runs:
    """Runs that were admitted and the pods of runs, which may be seen in any order."""

    def __init__(self) -> None:
        self._admitted: dict[str, Run] = {}
        self._pods: dict[RunKey, dict[str, Resources]] = {}

    def put(self, workload: str, run: Run | None) -> Iterable[RunKey]:
        """Take in what a Workload says now, by its uid; gives the runs that this changes."""
        before = self._admitted.pop(workload, None)
        if run is not None:
            self._admitted[workload] = run
        return {one.key for one in (before, run) if one is not None}

    def put_pod(self, key: RunKey, uid: str, taken: Resources | None) -> None:
        """Take in what a pod of a run takes now; None for nothing any more."""
        pods = self._pods.setdefault(key, {})
        if taken is not None:
            pods[uid] = taken
            return
        pods.pop(uid, None)
        if not pods:
            del self._pods[key]

    def missing(self, key: RunKey) -> Holding | None:
        """Say what the pods of a run will take beyond those that are there; None for nothing."""
        run = next((one for one in self._admitted.values() if one.key == key), None)
        if run is None:
            return None
        shown = total(self._pods.get(key, {}).values())
        beyond = run.taken.peak(shown) - shown
        return Holding(key=f"run:{'/'.join(key)}", owner=run.owner, taken=beyond) if beyond else None
