"""Runs on the cluster: the four kinds of objects, their pods, logs, events and places in the queue.

Shell: talks to the Kubernetes API.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from hub_ext.cluster.events import Event, EventIndex, read_event
from hub_ext.cluster.pods import Pod, read_pod
from hub_ext.names import LABEL_JOB, LABEL_USER, label_value
from services.kube import ConflictError, ForbiddenError, Kube, KubeError, NotFoundError, api_path

from .installed import KUEUE_VERSION, Installed, read_trainer
from .queue_facts import Queue, read_queue
from .seen import Around

KUEUE: Final = f"kueue.x-k8s.io/{KUEUE_VERSION}"
VISIBILITY: Final = f"visibility.kueue.x-k8s.io/{KUEUE_VERSION}"
PLURALS: Final[Mapping[str, tuple[str, str]]] = {
    "Job": ("batch/v1", "jobs"),
    "CronJob": ("batch/v1", "cronjobs"),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", "trainjobs"),
    "RayJob": ("ray.io/v1", "rayjobs"),
}
"""API version and plural of each kind of run."""
REQUIRED: Final = frozenset({"Job", "CronJob"})
"""Kinds that every cluster has; the others may be missing, or not be granted."""
_BESIDE: Final[Mapping[str, tuple[str, str]]] = {
    "ConfigMap": ("v1", "configmaps"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
}
_JOB_NAME: Final = "batch.kubernetes.io/job-name"


class Cluster:
    """The namespace of the runs."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    def _path(self, kind: str, *name: str) -> str:
        version, plural = PLURALS[kind]
        return api_path(version, plural, *name, namespace=self.namespace)

    def _core(self, plural: str, *name: str) -> str:
        return api_path("v1", plural, *name, namespace=self.namespace)

    # Objects of runs

    async def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Create the object of a run; raises `ConflictError` if there is one of its name."""
        return await self.kube.create(self._path(obj["kind"]), obj, dry_run=dry_run)

    async def find(self, run: str) -> dict[str, Any] | None:
        """Find the object of a run, whatever its kind; it has its `kind`."""
        found = await asyncio.gather(*(self._find(kind, run) for kind in PLURALS))
        return next((one for one in found if one is not None), None)

    async def _find(self, kind: str, run: str) -> dict[str, Any] | None:
        try:
            found = await self.kube.find(self._path(kind, run))
        except ForbiddenError:
            if kind in REQUIRED:
                raise
            return None
        # KubeRay gives the Job that hands a program to Ray the name of the RayJob itself.
        return None if found is None or (kind == "Job" and _is_part(found)) else found | {"kind": kind}

    async def runs(self, user: str | None = None) -> tuple[dict[str, Any], ...]:
        """List the objects of runs, of one user or of all, each with its `kind`; Jobs of schedules too."""
        selector = f"{LABEL_JOB},{LABEL_USER}={label_value(user)}" if user is not None else LABEL_JOB
        lists = await asyncio.gather(*(self._list(kind, selector) for kind in PLURALS))
        return tuple(one for found in lists for one in found)

    async def _list(self, kind: str, selector: str) -> list[dict[str, Any]]:
        try:
            found = await self.kube.list(self._path(kind), labelSelector=selector)
        except (NotFoundError, ForbiddenError):
            if kind in REQUIRED:
                raise
            return []  # the controller is not installed, or its kind was not granted: there are no such runs
        # What a controller made for a TrainJob bears its labels too; the run is its owner.
        return [one | {"kind": kind} for one in found if kind != "Job" or not _is_part(one)]

    async def annotate(self, obj: Mapping[str, Any], notes: Mapping[str, str | None]) -> dict[str, Any]:
        """Write annotations onto the object of a run."""
        body = {"metadata": {"annotations": dict(notes), "uid": obj["metadata"]["uid"]}}
        path = self._path(obj["kind"], obj["metadata"]["name"])
        return await self.kube.patch(path, body) | {"kind": obj["kind"]}

    async def remove(self, obj: Mapping[str, Any]) -> None:
        """Delete the object of a run with its pods, unless another has its name by now.

        Runs of a schedule stay: each is a run of its own, and is ended and filed as such.
        """
        metadata = obj["metadata"]
        how = "Orphan" if obj["kind"] == "CronJob" else "Background"
        with contextlib.suppress(ConflictError):
            path = self._path(obj["kind"], metadata["name"])
            await self.kube.delete(path, uid=metadata["uid"], propagation=how)

    async def suspend_schedule(self, obj: Mapping[str, Any], *, suspended: bool) -> None:
        """Let a schedule rest, or go on."""
        path = self._path("CronJob", obj["metadata"]["name"])
        await self.kube.patch(path, {"spec": {"suspend": suspended}})

    # What stands beside runs: ConfigMaps and NetworkPolicies

    def _beside(self, kind: str, *name: str) -> str:
        version, plural = _BESIDE[kind]
        return api_path(version, plural, *name, namespace=self.namespace)

    async def ensure(self, obj: Mapping[str, Any]) -> None:
        """Have an object; its name says what is in it, so one that is there is the right one."""
        with contextlib.suppress(ConflictError):
            await self.kube.create(self._beside(obj["kind"]), obj)

    async def give(self, kind: str, name: str, owner: Mapping[str, Any]) -> None:
        """Let an object go when its run goes."""
        await self.kube.patch(self._beside(kind, name), _owned_by(owner))

    async def loose(self) -> tuple[dict[str, Any], ...]:
        """List what was made for a run and is owned by none yet, each with its `kind`."""
        selectors = {
            "ConfigMap": f"app.kubernetes.io/component=source,{LABEL_JOB}",
            "NetworkPolicy": LABEL_JOB,
        }
        lists = [await self.kube.list(self._beside(kind), labelSelector=selectors[kind]) for kind in _BESIDE]
        return tuple(
            one | {"kind": kind}
            for kind, found in zip(_BESIDE, lists, strict=True)
            for one in found
            if not one["metadata"].get("ownerReferences")
        )

    async def drop(self, obj: Mapping[str, Any]) -> None:
        """Delete what no run owns."""
        metadata = obj["metadata"]
        await self.kube.delete(self._beside(obj["kind"], metadata["name"]), uid=metadata["uid"])

    # What belongs to a run

    async def around(self, obj: Mapping[str, Any], now: datetime) -> Around:
        """Read what belongs to one run."""
        pods, workload = await asyncio.gather(self._raw_pods(obj), self.workload(obj))
        read = sorted((read_pod(pod) for pod in pods), key=lambda pod: (pod.created, pod.name))
        events = await self._events([obj["metadata"]["uid"], *(pod.uid for pod in read[-3:])], now)
        return Around(workload=workload, pods=tuple(read), events=events)

    async def _raw_pods(self, obj: Mapping[str, Any]) -> list[dict[str, Any]]:
        name = obj["metadata"]["name"]
        if obj["kind"] == "CronJob":
            return []
        selector = f"{_JOB_NAME}={name}" if obj["kind"] == "Job" else f"{LABEL_JOB}={name}"
        return list(await self.kube.list(self._core("pods"), labelSelector=selector))

    async def workload(self, obj: Mapping[str, Any]) -> dict[str, Any] | None:
        """Read Kueue's Workload of a run; None if there is none yet."""
        uid = obj["metadata"]["uid"]
        found = await self._workloads(labelSelector=f"kueue.x-k8s.io/job-uid={uid}")
        return next(iter(found), None)

    async def workloads(self) -> dict[str, dict[str, Any]]:
        """Read all Workloads, by the uid of what they stand for."""
        found = await self._workloads()
        return {owner["uid"]: one for one in found for owner in one["metadata"].get("ownerReferences") or ()}

    async def _workloads(self, **params: str) -> Sequence[dict[str, Any]]:
        path = api_path(KUEUE, "workloads", namespace=self.namespace)
        try:
            return (await self.kube.list(path, **params)).items
        except NotFoundError:
            return ()  # without Kueue nothing starts, and what has ended is still there to be looked at

    async def pods(self, user: str | None = None) -> dict[str, tuple[Pod, ...]]:
        """Read the pods of runs, by the name of the run or of the Job of a schedule, oldest first."""
        selector = f"{LABEL_JOB},{LABEL_USER}={label_value(user)}" if user is not None else LABEL_JOB
        found: dict[str, list[Pod]] = {}
        for raw in await self.kube.list(self._core("pods"), labelSelector=selector):
            labels = raw["metadata"]["labels"]
            names = {labels[LABEL_JOB], labels.get(_JOB_NAME, "")} - {""}
            pod = read_pod(raw)
            for name in names:
                found.setdefault(name, []).append(pod)
        return {name: tuple(sorted(pods, key=lambda pod: pod.created)) for name, pods in found.items()}

    async def _events(self, uids: Iterable[str], now: datetime) -> dict[str, tuple[Event, ...]]:
        index = EventIndex()
        wanted = list(uids)
        for uid in wanted:
            found = await self.kube.list(self._core("events"), fieldSelector=f"involvedObject.uid={uid}")
            for one in found:
                if event := read_event(one, now):
                    index.put(event)
        return {uid: index.of(uid) for uid in wanted}

    async def deactivate(self, workload: Mapping[str, Any]) -> None:
        """Take a run out of its queue: Kueue ends its pods and gives its quota to others."""
        path = api_path(KUEUE, "workloads", workload["metadata"]["name"], namespace=self.namespace)
        await self.kube.patch(path, {"spec": {"active": False}})

    # Logs

    async def log(self, pod: Pod, *, lines: int | None = None, most: int | None = None) -> str | None:
        """Read the log of a pod's main container; None if there is none (any more)."""
        main = next((one.name for one in pod.containers if not one.init), "")
        params = {"container": main, "timestamps": "false"}
        if lines is not None:
            params["tailLines"] = str(lines)
        if most is not None:
            params["limitBytes"] = str(most)
        try:
            return await self.kube.text(self._core("pods", pod.name, "log"), **params)
        except NotFoundError:
            return None
        except KubeError as error:
            if error.status == HTTPStatus.BAD_REQUEST:
                return None  # "container is waiting to start": there is no log yet
            raise

    # Queues

    async def queue(self, team: str) -> Queue | None:
        """Read the queue of a team; None if it has none."""
        path = api_path(KUEUE, "localqueues", team, namespace=self.namespace)
        local = await self.kube.find(path)
        if local is None:
            return None
        name = local["spec"]["clusterQueue"]
        whole = await self.kube.find(api_path(KUEUE, "clusterqueues", name))
        if whole is None:
            return None
        listed = await self.kube.list(api_path(KUEUE, "resourceflavors"))
        flavors = {one["metadata"]["name"]: one for one in listed}
        stopped = (local.get("spec") or {}).get("stopPolicy", "None") != "None"
        waiting = (local.get("status") or {}).get("pendingWorkloads")
        return read_queue(whole, flavors, waiting=waiting, local_stopped=stopped)

    async def positions(self, team: str) -> dict[str, int] | None:
        """Give how many are ahead of each waiting Workload, by its name; None where Kueue does not say it."""
        path = api_path(VISIBILITY, "localqueues", team, "pendingworkloads", namespace=self.namespace)
        try:
            found = await self.kube.get(path, limit="1000")
        except (NotFoundError, ForbiddenError):
            return None
        except KubeError as error:
            if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                return None  # the part of Kueue that says it is not running
            raise
        return {
            one["metadata"]["name"]: int(one.get("positionInLocalQueue") or 0)
            for one in found.get("items") or ()
        }

    # What is installed

    async def installed(self) -> Installed:
        """See which kinds of runs the cluster serves."""
        kueue = await self.kube.find("/apis/kueue.x-k8s.io")
        versions = frozenset(one["version"] for one in (kueue or {}).get("versions") or ())
        trainer = await self.kube.find("/apis/trainer.kubeflow.org")
        ray = await self.kube.find("/apis/ray.io")
        patches: bool | None = None
        grace: bool | None = None
        if trainer is not None:
            schema = await self.kube.find(f"/openapi/v3/apis/{PLURALS['TrainJob'][0]}")
            patches, grace = read_trainer(schema) if schema else (None, None)
        return Installed(
            kueue=versions,
            trainer=trainer is not None,
            trainer_patches=patches,
            trainer_grace=grace,
            ray=ray is not None,
        )


def _owned_by(owner: Mapping[str, Any]) -> dict[str, Any]:
    """Write the patch that makes a run the owner of something."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": PLURALS[owner["kind"]][0],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {"metadata": {"ownerReferences": [reference]}}


def _is_part(job: Mapping[str, Any]) -> bool:
    owners = job["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("kind") != "CronJob" for owner in owners)
