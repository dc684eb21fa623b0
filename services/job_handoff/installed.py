"""Which kinds of runs the cluster can carry out, from what its API serves.

Kueue and Trainer come in pairs: 0.17 to 0.19 with 2.2, 0.20 with 2.3. A wrong pair admits a TrainJob and
never resumes it. Kueue 0.20 no longer serves `v1beta1`; Trainer 2.2 has `runtimePatches`, and 2.3 lets a
patch say `terminationGracePeriodSeconds`.

Sources: Kueue 0.20.0 changelog (#14504, #14558), Trainer v2.2.1 and v2.3.0 CRDs.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hub_ext.catalog.model import RunKind

_RUNTIME = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs", "template", "spec")
_POD = (*_RUNTIME, "template", "spec")
KUEUE_VERSION = "v1beta2"
"""What this service speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What the cluster serves; None is not known."""

    kueue: frozenset[str] | None
    """Versions of `kueue.x-k8s.io`; empty if it is not there."""
    trainer: bool | None = None
    trainer_patches: bool | None = None
    trainer_grace: bool | None = None
    ray: bool | None = None


def read_trainer(schema: Mapping[str, Any]) -> tuple[bool, bool]:
    """Read from the OpenAPI document of Trainer's API whether there are patches, and of 2.3."""
    for name, one in ((schema.get("components") or {}).get("schemas") or {}).items():
        if not name.endswith(".TrainJob"):
            continue
        patches = _below(one, "spec", "runtimePatches")
        if patches is None:
            return False, False
        pod = _below(patches, *_POD)
        return True, _below(pod or {}, "terminationGracePeriodSeconds") is not None
    return False, False


def _below(schema: Mapping[str, Any], *path: str) -> Mapping[str, Any] | None:
    for step in path:
        schema = schema.get("items") or schema
        found = (schema.get("properties") or {}).get(step)
        if found is None:
            return None
        schema = found
    return schema


def unavailable(installed: Installed) -> dict[RunKind, str]:
    """Name the kinds that cannot run, each with its reason; what is not known is left to the cluster."""
    problems: dict[RunKind, str] = {}
    if installed.kueue is not None and KUEUE_VERSION not in installed.kueue:
        what = "Kueue is not installed." if not installed.kueue else f"Kueue does not serve {KUEUE_VERSION}."
        return dict.fromkeys(RunKind, what)
    if text := _trainer(installed):
        problems[RunKind.TRAIN_JOB] = text
    if installed.ray is False:
        problems[RunKind.RAY_JOB] = "KubeRay is not installed."
    return problems


def _trainer(installed: Installed) -> str:
    if installed.trainer is False:
        return "Kubeflow Trainer is not installed."
    if installed.trainer_patches is False:
        return "Kubeflow Trainer is older than 2.2."
    if installed.kueue is None or installed.trainer_grace is None:
        return ""
    newer = "v1beta1" not in installed.kueue
    if newer is installed.trainer_grace:
        return ""
    kueue, trainer = ("0.20 or newer", "2.2") if newer else ("0.19 or older", "2.3 or newer")
    return f"Kueue {kueue} and Kubeflow Trainer {trainer} do not fit: runs would be admitted and never start."
