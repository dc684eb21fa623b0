"""Kueue objects: a flavor per pool, a ClusterQueue and a LocalQueue per team, one cohort.

The catalog's quotas are upper bounds, so nobody borrows; the cohort is there for admins who loosen that, and
for fair sharing. Processors and memory are counted once per team, whatever pool a workload runs in: they
have a flavor of their own. Nothing is preempted, for a preempted pod is a lost notebook; only where runs have
a namespace and priorities of their own a more urgent run of a team preempts a less urgent one.

Source: kueue.x-k8s.io/v1beta2 (Kueue 0.19, apis/kueue/v1beta2).

Pure: no clock, no network.
"""

from typing import Any

from ..catalog.model import Catalog, Pool, Priority
from ..errors import Finding
from ..names import LABEL_TEAM, object_name
from ..units import format_bytes, format_cpu
from .bounds import Bounds, pools_by_resource, team_bounds
from .target import MANAGED_BY, Code, Rendering, note

API_VERSION = "kueue.x-k8s.io/v1beta2"
PREFIX = "gpu-workspaces"
ANY_NODE = f"{PREFIX}-any"
"""Flavor under which processors and memory are counted."""

UNBOUNDED = 1_000_000
"""Stands for no bound, which Kueue has no word for: processors, and devices of one kind."""
UNBOUNDED_MEMORY = "1Ei"


def render_kueue(
    catalog: Catalog, *, namespace: str | None = None, jobs_namespace: str | None = None
) -> Rendering:
    """Render all objects.

    Parameters
    ----------
    namespace
        The hub's namespace, for the queues of teams that have none of their own; None leaves them out.
    jobs_namespace
        Where runs are: each team gets a queue there too, on the same quota; None for no runs.
    """
    pools = {name: pool for name, pool in catalog.pools.items() if pool.gpu is not None}
    flavors = [_flavor(ANY_NODE, None), *(_flavor(flavor_name(n), pool) for n, pool in pools.items())]
    documents, findings = [*flavors, _object("Cohort", PREFIX, {})], _remarks(catalog)
    for name, team in catalog.teams.items():
        home = team.namespace or namespace
        places = [place for place in dict.fromkeys((home, jobs_namespace)) if place is not None]
        if not places:
            findings.append(_without_namespace(name))
            continue
        preempts = jobs_namespace is not None and len(catalog.jobs.priorities) > 1
        documents.append(_cluster_queue(catalog, name, places, preempts=preempts))
        documents += [_local_queue(name, place) for place in places]
    if jobs_namespace is not None:
        documents += [_priority(name, one) for name, one in catalog.jobs.priorities.items()]
    return Rendering(documents=tuple(documents), findings=tuple(findings))


def flavor_name(pool: str) -> str:
    """Name the ResourceFlavor of a pool."""
    return object_name(f"{PREFIX}-{pool}")


def queue_name(team: str) -> str:
    """Name the ClusterQueue of a team; its LocalQueue bears the team's own name."""
    return object_name(f"{PREFIX}-{team}")


def _object(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    labels = MANAGED_BY | metadata.pop("labels", {})
    result = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, **metadata, "labels": labels},
    }
    return result | ({"spec": spec} if spec else {})


def _flavor(name: str, pool: Pool | None) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if pool is not None and pool.node_selector:
        spec["nodeLabels"] = dict(pool.node_selector)
    if pool is not None and pool.tolerations:
        spec["tolerations"] = [t.model_dump(by_alias=True, exclude_none=True) for t in pool.tolerations]
    return _object("ResourceFlavor", name, spec)


def _priority(name: str, priority: Priority) -> dict[str, Any]:
    document = _object("WorkloadPriorityClass", name, {})
    return document | {"value": priority.value, "description": priority.display_name}


def _selector(places: list[str]) -> dict[str, Any]:
    key = "kubernetes.io/metadata.name"
    if len(places) == 1:
        return {"matchLabels": {key: places[0]}}
    return {"matchExpressions": [{"key": key, "operator": "In", "values": places}]}


def _cluster_queue(catalog: Catalog, team: str, places: list[str], *, preempts: bool) -> dict[str, Any]:
    bounds = team_bounds(catalog, team)
    within = "LowerPriority" if preempts else "Never"
    spec = {
        "cohortName": PREFIX,
        "namespaceSelector": _selector(places),
        "preemption": {"reclaimWithinCohort": "Never", "withinClusterQueue": within},
        "resourceGroups": [_base_group(bounds), *_gpu_groups(catalog, bounds)],
    }
    return _object("ClusterQueue", queue_name(team), spec, labels={LABEL_TEAM: team})


def _local_queue(team: str, namespace: str) -> dict[str, Any]:
    spec = {"clusterQueue": queue_name(team)}
    return _object("LocalQueue", team, spec, namespace=namespace, labels={LABEL_TEAM: team})


def _base_group(bounds: Bounds) -> dict[str, Any]:
    cpu = str(UNBOUNDED) if bounds.cpu is None else format_cpu(bounds.cpu)
    memory = UNBOUNDED_MEMORY if bounds.memory is None else format_bytes(bounds.memory)
    return _group([ANY_NODE], {ANY_NODE: {"cpu": cpu, "memory": memory}})


def _gpu_groups(catalog: Catalog, bounds: Bounds) -> list[dict[str, Any]]:
    offers = pools_by_resource(catalog)
    groups = []
    for resources, pools in _components(offers):
        quotas = {
            flavor_name(pool): {
                resource: _nominal(bounds.gpus.get(resource)) if pool in offers[resource] else "0"
                for resource in resources
            }
            for pool in pools
        }
        groups.append(_group(list(quotas), quotas))
    return groups


def _components(offers: dict[str, tuple[str, ...]]) -> list[tuple[list[str], list[str]]]:
    """Split resources and pools into groups that share none; Kueue wants each in one group only."""
    components: list[tuple[list[str], list[str]]] = []
    for resource, pools in offers.items():
        joined = [c for c in components if not set(c[1]).isdisjoint(pools)]
        components = [c for c in components if c not in joined]
        resources = [r for c in joined for r in c[0]] + [resource]
        names = dict.fromkeys([p for c in joined for p in c[1]] + list(pools))
        components.append((resources, list(names)))
    return components


def _nominal(bound: int | None) -> str:
    return str(UNBOUNDED if bound is None else bound)


def _group(flavors: list[str], quotas: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {
        "coveredResources": list(quotas[flavors[0]]),
        "flavors": [
            {
                "name": flavor,
                "resources": [
                    {"name": name, "nominalQuota": amount, "borrowingLimit": "0"}
                    for name, amount in quotas[flavor].items()
                ],
            }
            for flavor in flavors
        ],
    }


def _remarks(catalog: Catalog) -> list[Finding]:
    return [
        note(
            Code.NOT_EXPRESSIBLE,
            "pools",
            f"{', '.join(pools)} all offer {resource}; Kueue counts it in each of them apart, "
            "so each gets the whole bound of a team",
            help="The team's ResourceQuota bounds them together: render the target resourcequota as well.",
        )
        for resource, pools in pools_by_resource(catalog).items()
        if len(pools) > 1
    ]


def _without_namespace(team: str) -> Finding:
    return note(
        Code.NO_NAMESPACE,
        f"teams.{team}",
        "this team has no namespace, so it gets no queue",
        help="Set its namespace, or give the hub's with --namespace.",
    )
