"""ResourceQuota and LimitRange for each team that has a namespace.

Sources: Kubernetes counts extended resources in a quota under `requests.` only; a quota on `requests.cpu`
refuses containers without one; a LimitRange's `max` becomes the default where none is written
(k/k pkg/quota/v1/evaluator/core, pkg/apis/core/v1/defaults.go).

Pure: no clock, no network.
"""

from typing import Any

from ..catalog.model import Catalog, Quota
from ..errors import Finding
from ..names import LABEL_TEAM
from ..units import format_bytes, format_cpu
from .bounds import largest_requests, team_bounds
from .target import MANAGED_BY, Code, Object, Rendering, note

NAME = "gpu-workspaces"

SMALL_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
"""What a container reserves that says nothing; a sidecar or a helper of a Job."""


def render_resource_quotas(catalog: Catalog) -> Rendering:
    """Render one ResourceQuota per team namespace."""
    documents: list[Object] = []
    findings: list[Finding] = []
    for name, team in catalog.teams.items():
        hard = quota_hard(catalog, name)
        if not hard:
            continue
        findings += _remarks(name, team.quota, team.per_user)
        namespace = _own_namespace(catalog, name, findings)
        if namespace is not None:
            documents.append(_object("ResourceQuota", name, namespace, {"hard": hard}))
    return Rendering(documents=tuple(documents), findings=tuple(findings))


def quota_hard(catalog: Catalog, team: str) -> dict[str, str]:
    """Give `spec.hard` of a team's ResourceQuota."""
    bounds = team_bounds(catalog, team)
    hard = {f"requests.{name}": str(count) for name, count in bounds.gpus.items() if count is not None}
    if bounds.cpu is not None:
        hard["requests.cpu"] = format_cpu(bounds.cpu)
    if bounds.memory is not None:
        hard["requests.memory"] = format_bytes(bounds.memory)
    return dict(sorted(hard.items()))


def render_limit_ranges(catalog: Catalog) -> Rendering:
    """Render one LimitRange per team namespace: small requests by default, no container beyond a profile."""
    documents: list[Object] = []
    findings: list[Finding] = []
    for name in catalog.teams:
        namespace = _own_namespace(catalog, name, findings)
        if namespace is not None:
            documents.append(_object("LimitRange", name, namespace, {"limits": [_limits(catalog, name)]}))
    return Rendering(documents=tuple(documents), findings=tuple(findings))


def _limits(catalog: Catalog, team: str) -> dict[str, Any]:
    largest = dict(sorted(largest_requests(catalog, team).items()))
    none = dict.fromkeys(largest, "0")
    limits: dict[str, Any] = {"type": "Container", "defaultRequest": SMALL_REQUESTS | none}
    if largest:
        # Without a default of zero, every container that names no GPU would get `max` of them.
        limits |= {"default": none, "max": {resource: str(count) for resource, count in largest.items()}}
    return limits


def _object(kind: str, team: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = MANAGED_BY | {LABEL_TEAM: team}
    metadata = {"name": NAME, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def _own_namespace(catalog: Catalog, team: str, findings: list[Finding]) -> str | None:
    """Give the namespace that a team has to itself; if there is none, that is a remark."""
    namespace = catalog.teams[team].namespace
    others = [name for name, other in catalog.teams.items() if other.namespace == namespace and name != team]
    if namespace is not None and not others:
        return namespace
    shared = "the hub's namespace" if namespace is None else f"{namespace} with {', '.join(others)}"
    message = f"this team shares {shared}, where a quota would bind everybody"
    remedy = "Give it a namespace of its own to have the cluster enforce it too."
    findings.append(note(Code.NO_NAMESPACE, f"teams.{team}", message, help=remedy))
    return None


def _remarks(team: str, quota: Quota, per_user: Quota) -> list[Finding]:
    told = {
        "quota.servers": quota.servers is not None,
        "quota.gpuEquivalents": quota.gpu_equivalents is not None,
        "perUser": bool(per_user.model_fields_set or per_user.extended),
    }
    message = {
        "quota.servers": "a quota counts pods of every kind; the spawner counts workspaces",
        "quota.gpuEquivalents": "a quota knows no worth; each resource is bounded by it alone, "
        "and the spawner checks the sum",
        "perUser": "a quota knows no users; the spawner checks it",
    }
    return [note(Code.NOT_EXPRESSIBLE, f"teams.{team}.{k}", message[k]) for k, said in told.items() if said]
