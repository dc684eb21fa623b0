"""What workspaces and runs refer to by name: priorities, runtimes, queues, training runtimes.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hub_ext.errors import Severity

from ..problems import Check, Problem
from ..scene import Scene


def priority_classes(scene: Scene) -> Iterator[Problem]:
    yield from _named(scene, "priority_class", "PriorityClass", "priorityClass")


def runtime_classes(scene: Scene) -> Iterator[Problem]:
    yield from _named(scene, "runtime_class", "RuntimeClass", "runtimeClass")


def _named(scene: Scene, field: str, kind: str, key: str) -> Iterator[Problem]:
    for name, pool in scene.pools.items():
        wanted = getattr(pool, field)
        if wanted and scene.objects.named(kind, wanted) is None:
            yield Problem(
                message=f"pool {name} names the {kind} {wanted}, which does not exist",
                evidence="there are: "
                f"{', '.join(o['metadata']['name'] for o in scene.objects.of(kind)) or 'none'}",
                help="Create it, or take it out of the pool; pods that name it are refused.",
                path=f"pools.{name}.{key}",
            )


def queues_lead_somewhere(scene: Scene) -> Iterator[Problem]:
    names = {one["metadata"]["name"]: one for one in scene.objects.of("ClusterQueue")}
    for queue in scene.objects.of("LocalQueue"):
        where = f"{queue['metadata'].get('namespace', '')}/{queue['metadata']['name']}"
        target = names.get((queue.get("spec") or {}).get("clusterQueue", ""))
        if target is None:
            yield Problem(
                message=f"queue {where} leads to a ClusterQueue that does not exist",
                evidence=f"clusterQueue: {(queue.get('spec') or {}).get('clusterQueue')}",
                help="What is queued there waits for ever. Create the ClusterQueue, or correct the name.",
                path=f"localqueues/{where}",
            )
        elif inactive := _inactive(target):
            yield Problem(
                message=f"the ClusterQueue of {where} admits nothing",
                evidence=inactive,
                help="Its flavors or admission checks are missing; see kubectl describe clusterqueue.",
                path=f"clusterqueues/{target['metadata']['name']}",
            )


def _inactive(queue: Mapping[str, Any]) -> str:
    for condition in (queue.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Active" and condition.get("status") == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    return ""


def training_runtimes(scene: Scene) -> Iterator[Problem]:
    """A field that newer trainers do not know is dropped in silence, and the job runs without GPUs."""
    for kind in ("ClusterTrainingRuntime", "TrainingRuntime"):
        for runtime in scene.objects.of(kind):
            name = runtime["metadata"]["name"]
            spec = runtime.get("spec") or {}
            torch = ((spec.get("mlPolicy") or {}).get("torch") or {}).get("numProcPerNode")
            if torch is not None:
                yield Problem(
                    message=f"runtime {name} says numProcPerNode, which Trainer 2.2 moved to the job",
                    evidence=f"mlPolicy.torch.numProcPerNode: {torch}",
                    help="Take the field out; runs that are handed off set spec.trainer.numProcPerNode as a "
                    "number.",
                    path=f"trainingruntimes/{name}",
                    severity=Severity.WARNING,
                )
            if not _says_resources(spec):
                yield Problem(
                    message=f"runtime {name} says no resources: a job that does not say them either gets no "
                    "GPU",
                    help="Say the resources of the node container in its template.",
                    path=f"trainingruntimes/{name}",
                    severity=Severity.NOTE,
                )


def _says_resources(spec: Mapping[str, Any]) -> bool:
    jobs = ((spec.get("template") or {}).get("spec") or {}).get("replicatedJobs") or []
    containers = [
        container
        for job in jobs
        for container in (
            (((job.get("template") or {}).get("spec") or {}).get("template") or {}).get("spec") or {}
        ).get("containers")
        or []
    ]
    return any((container.get("resources") or {}).get("limits") for container in containers)


CHECKS = (
    Check(
        code="priority-class",
        title="PriorityClasses exist",
        kinds=("PriorityClass",),
        needs=("catalog",),
        run=priority_classes,
    ),
    Check(
        code="runtime-class",
        title="RuntimeClasses exist",
        kinds=("RuntimeClass",),
        needs=("catalog",),
        run=runtime_classes,
    ),
    Check(
        code="queues",
        title="Queues lead somewhere",
        kinds=("LocalQueue", "ClusterQueue"),
        run=queues_lead_somewhere,
    ),
    Check(
        code="training-runtime",
        title="Training runtimes fit the trainer",
        kinds=("ClusterTrainingRuntime",),
        run=training_runtimes,
    ),
)
