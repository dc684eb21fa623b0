"""What a namespace's ResourceQuota and LimitRange will say about a pod, before it is created.

A hint, not the last word: the counts of a quota lag behind, and only the API server decides. What is certain
beforehand is what a pod lacks (`missing_limits`) and what a quota does not do (`findings`).

Sources: Kubernetes `pkg/quota/v1/evaluator/core/pods.go` (which keys count, scopes), `plugin/pkg/admission/
limitranger` (defaults).

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..errors import Finding, Severity
from ..gpu.resources import is_accelerator
from . import ranges, texts, words
from .arithmetic import Resources, container_request, pod_request, read_amount
from .policy import short_of
from .verdicts import Fault, Reason, Refusal, Scope

_COMPUTE: Final = ("cpu", "memory")
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota:
    """One quota of a namespace; amounts by the keys that it uses itself (``requests.nvidia.com/gpu``)."""

    namespace: str
    name: str
    hard: Resources
    bounded: tuple[str, ...]
    """Keys of `hard`, those that bound to zero included."""
    used: Resources
    scopes: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Scope, operator and values, all of which a pod must match."""


def read_quota(quota: Mapping[str, Any]) -> ResourceQuota:
    """Read a ResourceQuota in API spelling."""
    metadata, spec, status = quota["metadata"], quota.get("spec") or {}, quota.get("status") or {}
    hard = status.get("hard") or spec.get("hard") or {}
    plain = [(scope, "Exists", ()) for scope in spec.get("scopes") or ()]
    selected = [
        (one["scopeName"], one["operator"], tuple(one.get("values") or ()))
        for one in (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    ]
    return ResourceQuota(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        hard=Resources.read(hard),
        bounded=tuple(hard),
        used=Resources.read(status.get("used")),
        scopes=(*plain, *selected),
    )


def is_effective(key: str) -> bool:
    """Say whether a key of a quota bounds pods: extended resources count only as ``requests.<name>``."""
    return not ("/" in key.removeprefix(_LIMITS) and not key.startswith((_REQUESTS, "count/")))


def effective_hard(quota: ResourceQuota) -> dict[str, int]:
    """Give what a quota really bounds."""
    return {key: int(quota.hard[key]) for key in quota.bounded if is_effective(key)}


def charge(spec: Mapping[str, Any]) -> Resources:
    """Say what a pod adds to quotas, under all the keys that they may use."""
    requests = pod_request(spec).requests
    limits = pod_request(_with_limits_only(spec)).requests
    charged = {"pods": 1, "count/pods": 1}
    for name, asked in requests.items():
        charged[_REQUESTS + name] = int(asked)
        if "/" not in name:
            charged[name] = int(asked)
    for name, most in limits.items():
        if "/" not in name:
            charged[_LIMITS + name] = int(most)
    return Resources(charged)


def _with_limits_only(spec: Mapping[str, Any]) -> dict[str, Any]:
    def limited(container: Mapping[str, Any]) -> dict[str, Any]:
        return {**container, "resources": {"requests": (container.get("resources") or {}).get("limits")}}

    containers = {key: [limited(c) for c in spec.get(key) or ()] for key in ("containers", "initContainers")}
    pod_level = {"resources": limited(spec)["resources"]} if spec.get("resources") else {}
    return {**spec, **containers, **pod_level}


def applies(quota: ResourceQuota, spec: Mapping[str, Any]) -> bool:
    """Say whether a quota's scopes cover a pod."""
    return all(_in_scope(scope, operator, values, spec) for scope, operator, values in quota.scopes)


def _in_scope(scope: str, operator: str, values: Sequence[str], spec: Mapping[str, Any]) -> bool:
    priority = spec.get("priorityClassName") or ""
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort" | "NotBestEffort":
            asks = any(name in charge(spec) for name in (*_COMPUTE, "limits.cpu", "limits.memory"))
            return asks is (scope == "NotBestEffort")
        case "PriorityClass":
            matched = {"Exists": bool(priority), "DoesNotExist": not priority}
            inside = priority in values if operator == "In" else priority not in values
            return matched.get(operator, inside)
        case _:
            return False


def with_defaults(spec: Mapping[str, Any], limit_ranges: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Give the pod as LimitRanges of the namespace complete it; the input is not changed."""
    limits: dict[str, Any] = {}
    requests: dict[str, Any] = {}
    for item in (i for r in limit_ranges for i in (r.get("spec") or {}).get("limits") or ()):
        if item.get("type") == "Container":
            limits = {**(item.get("default") or item.get("max") or {}), **limits}
            requests = {**(item.get("defaultRequest") or {}), **requests}

    def completed(container: Mapping[str, Any]) -> dict[str, Any]:
        own = container.get("resources") or {}
        filled = {**limits, **(own.get("limits") or {})}
        asked = {**filled, **requests, **(own.get("limits") or {}), **(own.get("requests") or {})}
        return {**container, "resources": {**own, "limits": filled, "requests": asked}}

    changed = {key: [completed(c) for c in spec.get(key) or ()] for key in ("containers", "initContainers")}
    return {**spec, **changed}


def missing_limits(spec: Mapping[str, Any], quota: ResourceQuota) -> tuple[str, ...]:
    """List what every container must say because the quota counts it, and some container does not."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    missing = []
    for key in quota.bounded:
        prefix, name = (_LIMITS, key[len(_LIMITS) :]) if key.startswith(_LIMITS) else (_REQUESTS, key)
        name = name.removeprefix(_REQUESTS)
        if name not in _COMPUTE or _says(spec, prefix, name):
            continue
        if not all(_says(container, prefix, name) for container in containers or [{}]):
            missing.append(key)
    return tuple(missing)


def _says(container: Mapping[str, Any], prefix: str, name: str) -> bool:
    """Say whether a container, or the pod as a whole, states a resource."""
    if prefix == _LIMITS:
        limits = (container.get("resources") or {}).get("limits") or {}
        return name in limits and read_amount(name, limits[name]) > 0
    return name in container_request(container)


def expect(
    spec: Mapping[str, Any], quotas: Iterable[ResourceQuota], limit_ranges: Iterable[Mapping[str, Any]] = ()
) -> Refusal | None:
    """Say what the API server would answer to a pod, judged by what is known; None if it would create it."""
    known = tuple(limit_ranges)
    completed = with_defaults(spec, known)
    if outside := ranges.foreseen(completed, known):
        return Refusal(
            reason=Reason.LIMIT_RANGE,
            text=texts.refused(Reason.LIMIT_RANGE, outside),
            fault=Fault.ADMIN,
        )
    for quota in quotas:
        if not applies(quota, completed):
            continue
        if missing := missing_limits(completed, quota):
            return Refusal(
                reason=Reason.LIMITS_REQUIRED,
                text=texts.refused(Reason.LIMITS_REQUIRED, words.unstated(missing)),
                fault=Fault.ADMIN,
                component=quota.name,
                detail=f"set {', '.join(missing)} in the profile, or a LimitRange default in the namespace",
            )
        if shortages := short_of(charge(completed), quota.used, effective_hard(quota)):
            return Refusal(
                reason=Reason.NAMESPACE_QUOTA,
                text=texts.over_limit(Scope.NAMESPACE, shortages),
                fault=Fault.USER,
                shortages=shortages,
                component=quota.name,
            )
    return None


def findings(
    quotas: Sequence[ResourceQuota], *, offered: Iterable[str] = (), foreign_scheduler: bool = False
) -> tuple[Finding, ...]:
    """Name what the quotas of a namespace do not do, though they look as if they did.

    Parameters
    ----------
    offered
        Accelerator resources that the catalog or the nodes offer.
    foreign_scheduler
        A scheduler is there that reads quotas in its own way (HAMi counts ``limits.``): what has no effect
        for Kubernetes may have one for it, so it is only warned about.
    """
    found = []
    severity = Severity.WARNING if foreign_scheduler else Severity.ERROR
    for quota in quotas:
        for key in (key for key in quota.bounded if not is_effective(key)):
            name = key.removeprefix(_LIMITS)
            found.append(
                Finding(
                    severity=severity,
                    code="ineffective-quota-key",
                    message=f"quota {quota.namespace}/{quota.name}: {key} bounds nothing; Kubernetes counts "
                    f"extended resources only as {_REQUESTS}{name}",
                    path=f"spec.hard[{key}]",
                    help=f"Write {_REQUESTS}{name}: {quota.hard[key]}.",
                )
            )
    bounded = {key.removeprefix(_REQUESTS) for q in quotas for key in effective_hard(q)}
    if any(is_accelerator(name) for name in bounded):
        found += [
            _gap(name) for name in dict.fromkeys(offered) if is_accelerator(name) and name not in bounded
        ]
    return tuple(found)


def _gap(name: str) -> Finding:
    return Finding(
        severity=Severity.WARNING,
        code="quota-gap",
        message=f"the quotas bound some GPUs but not {name}: it can be used without limit",
        help=f"Add {_REQUESTS}{name}, or bound GPU equivalents in the catalog.",
    )
