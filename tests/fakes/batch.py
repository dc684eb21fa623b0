"""A Kubernetes API in memory with Kueue, Trainer and KubeRay installed, as far as runs need them.

It makes a Workload for what has a queue, as Kueue does; tests then admit, evict or end it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from services.kube import NotFoundError
from tests.fakes.kube import FakeKube

QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE = "kueue.x-k8s.io/v1beta2"
KINDS = {"jobs": "Job", "trainjobs": "TrainJob", "rayjobs": "RayJob"}


def stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class FakeBatch(FakeKube):
    """The namespace of runs, and everybody else's."""

    def __init__(
        self, *objects: Mapping[str, Any], groups: Mapping[str, list[str]] | None = None, **more
    ) -> None:
        super().__init__(*objects, **more)
        known = {
            "kueue.x-k8s.io": ["v1beta2", "v1beta1"],
            "trainer.kubeflow.org": ["v1alpha1"],
            "ray.io": ["v1"],
        }
        self.groups = dict(known if groups is None else groups)
        self.logs: dict[str, str] = {}
        self.waiting_logs: set[str] = set()

    async def find(self, path: str) -> dict[str, Any] | None:
        if path.startswith("/openapi/"):
            return None
        if path.count("/") == 2:
            name = path.rpartition("/")[2]
            versions = self.groups.get(name)
            return versions and {"name": name, "versions": [{"version": one} for one in versions]}
        return await super().find(path)

    async def text(self, path: str, **params: str) -> str:
        place = self._begin("get", path)
        if place.name not in self.logs:
            raise NotFoundError("no log", kind="pods", name=place.name, status=404)
        lines = self.logs[place.name].splitlines()
        return "\n".join(lines[-int(params.get("tailLines", 100000)) :])

    async def create(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        made = await super().create(path, body, dry_run=dry_run)
        kind = KINDS.get(path.rpartition("/")[2])
        queue = (made["metadata"].get("labels") or {}).get(QUEUE)
        if kind and queue and not dry_run:
            self._queue(kind, made, queue)
        return made

    def _queue(self, kind: str, made: Mapping[str, Any], queue: str) -> None:
        metadata = made["metadata"]
        self.put_for_test(
            {
                "apiVersion": KUEUE,
                "kind": "Workload",
                "metadata": {
                    "name": f"{kind.lower()}-{metadata['name']}-{secrets.token_hex(3)[:5]}",
                    "namespace": metadata["namespace"],
                    "labels": {"kueue.x-k8s.io/job-uid": metadata["uid"]},
                    "ownerReferences": [{"kind": kind, "name": metadata["name"], "uid": metadata["uid"]}],
                },
                "spec": {"queueName": queue, "active": True},
                "status": {},
            }
        )

    # What tests do

    def workload_for_test(self, run: str) -> dict[str, Any]:
        """The Workload of a run."""
        return next(
            one
            for one in self.all_for_test("workloads")
            if one["metadata"]["ownerReferences"][0]["name"] == run
        )

    def condition_for_test(
        self, run: str, kind: str, *, status: bool = True, reason: str = "", message: str = ""
    ) -> None:
        """Set a condition of a run's Workload, as Kueue does."""
        workload = self.workload_for_test(run)
        others = [one for one in workload["status"].get("conditions", ()) if one["type"] != kind]
        mine = {
            "type": kind,
            "status": str(status),
            "reason": reason,
            "message": message,
            "lastTransitionTime": stamp(),
        }
        self.put_for_test(workload | {"status": {**workload["status"], "conditions": [*others, mine]}})

    def pod_for_test(self, run: str, phase: str = "Running", **state: Any) -> dict[str, Any]:
        """Make a pod of a Job, as its controller and a kubelet do."""
        job = next(one for one in self.all_for_test("jobs") if one["metadata"]["name"] == run)
        template = job["spec"]["template"]
        container = state or {"running": {"startedAt": stamp()}}
        name = f"{run}-{secrets.token_hex(3)[:5]}"
        self.logs[name] = "hello\nworld"
        labels = template["metadata"]["labels"] | {"batch.kubernetes.io/job-name": run}
        return self.put_for_test(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": job["metadata"]["namespace"],
                    "labels": labels,
                    "annotations": template["metadata"]["annotations"],
                },
                "spec": template["spec"] | {"nodeName": "gpu-1"},
                "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": container}]},
            }
        )

    def end_for_test(self, run: str, *, succeeded: bool = True, reason: str = "", message: str = "") -> None:
        """End a Job, as its controller does."""
        job = next(one for one in self.all_for_test("jobs") if one["metadata"]["name"] == run)
        condition = {
            "type": "Complete" if succeeded else "Failed",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": stamp(),
        }
        self.put_for_test(job | {"status": {"conditions": [condition], "startTime": stamp()}})


def queue_objects(namespace: str, team: str, **nominal: str) -> list[dict[str, Any]]:
    """A queue of a team: its LocalQueue, ClusterQueue and the flavor of its nodes."""
    resources = [
        {"name": name.replace("__", "/"), "nominalQuota": amount} for name, amount in nominal.items()
    ]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": [one["name"] for one in resources],
                "flavors": [{"name": f"{team}-any", "resources": resources}],
            }
        ],
    }
    return [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": f"{team}-any"}},
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": team}, "spec": spec},
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": team, "namespace": namespace},
            "spec": {"clusterQueue": team},
        },
    ]
