"""Nodes, pods and catalogs for tests of the prepuller, as short as they can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.cluster.events import Event
from services.prepuller.facts import read_machine
from services.prepuller.picture import Picture, Seen, look
from services.prepuller.places import lay_out
from services.prepuller.plan import Plan, plan, worked_in
from services.prepuller.pods import PullPod, read_pull_pod
from services.prepuller.release import note_unneeded
from services.prepuller.settings import Settings
from services.prepuller.troubles import Troubles
from services.prepuller.wants import Desired, desire

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
TODAY = date(2026, 11, 30)
GPU = "nvidia.com/gpu"
REGISTRY = "registry.example.org"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def digest(letter: str) -> str:
    return "sha256:" + letter * 64


def ref(name: str, letter: str = "a") -> str:
    return f"{REGISTRY}/{name}@{digest(letter)}"


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def make_node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    images: Mapping[str, int] | None = None,
    allocatable: Mapping[str, str] | None = None,
    ready: str = "True",
    kubelet: str = "v1.36.3",
    conditions: Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> dict[str, Any]:
    """Make a Node; `images` are bytes by name, each an image of its own."""
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/arch": "amd64", **(labels or {})}},
        "spec": {"taints": list(taints), **spec},
        "status": {
            "allocatable": {"cpu": "32", "pods": "110", **(allocatable or {})},
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": at(-3600)}, *conditions],
            "nodeInfo": {"kubeletVersion": kubelet},
            "images": [{"names": [one], "sizeBytes": size} for one, size in (images or {}).items()],
        },
    }


def make_profile(name: str, images: Sequence[str], *, pool: str = "", gpu: str = "", **more: Any) -> Any:
    resources: dict[str, Any] = {"cpu": 1, "memory": "1Gi"}
    resources |= {"gpu": {"pool": gpu, "count": 1}} if gpu else {"pool": pool} if pool else {}
    return {
        "name": name,
        "version": 1,
        "displayName": name,
        "images": list(images),
        "resources": resources,
        **more,
    }


def make_catalog(
    *profiles: Mapping[str, Any],
    images: Mapping[str, Any],
    pools: Mapping[str, Any] | None = None,
    **more: Any,
) -> Catalog:
    """Make a catalog; an image may be its reference alone."""
    described = {
        key: {"displayName": key, **({"ref": one} if isinstance(one, str) else one)}
        for key, one in images.items()
    }
    return load_catalog(
        {
            "apiVersion": "gpu-workspaces/v1",
            "kind": "Catalog",
            "images": described,
            "pools": dict(pools or {}),
            "profiles": list(profiles),
            **more,
        }
    )


def settings(**values: Any) -> Settings:
    return Settings.model_validate(values)


EXCLUSIVE = {"product": "NVIDIA-H200", "sharing": "exclusive"}


class Cluster:
    """A cluster as the prepuller watches it: nodes, and its own pods with what a kubelet made of them."""

    def __init__(self, *nodes: Mapping[str, Any]) -> None:
        self.machines = {machine.name: machine for machine in map(read_machine, nodes)}
        self.pods: dict[str, PullPod] = {}
        self.now = NOW
        self.troubles = Troubles()
        self.unneeded: dict[str, datetime] = {}

    def picture(self, desired: Desired, given: Settings) -> Picture:
        machines = self.machines
        picture = look(
            desired,
            lay_out(desired, machines.values()),
            Seen(machines=machines, pods=tuple(self.pods.values())),
            troubles=self.troubles,
            limits=given.limits,
            now=self.now,
        )
        self.unneeded = note_unneeded(picture, self.unneeded)
        return picture

    def picture_of(self, catalog: Catalog) -> Picture:
        """Look with the settings that come with the prepuller."""
        given = settings()
        return self.picture(desire(catalog, given, today=TODAY), given)

    def plan(self, catalog: Catalog | Desired, given: Settings | None = None, **starts: Any) -> Plan:
        """Judge as the service does: note what failed, then decide."""
        chosen = given or settings()
        desired = catalog if isinstance(catalog, Desired) else desire(catalog, chosen, today=TODAY)
        picture = self.picture(desired, chosen)
        worked = worked_in(picture)
        self.troubles.forget(picture.pods, worked, self.now)
        for pod in picture.pods:
            machine = picture.machines.get(pod.node)
            self.troubles.note(
                pod,
                desired.wants.get(pod.want),
                worked=worked,
                architecture=machine.architecture if machine else "",
                now=self.now,
            )
        self.picture_now = self.picture(desired, chosen)
        return plan(
            self.picture_now,
            settings=chosen,
            troubles=self.troubles,
            worked=worked,
            starts=starts.get("starts", {}),
            unneeded=self.unneeded,
        )


def fetched(made: Plan) -> dict[str, list[str]]:
    """Short names of images to be fetched, by node."""
    found: dict[str, list[str]] = {}
    for one in made.fetches:
        found.setdefault(one.node, []).append(one.want.image.rpartition("/")[2].partition("@")[0])
    return found


def read(pod: Mapping[str, Any], events: Sequence[Event] = ()) -> PullPod:
    found = read_pull_pod(pod, events)
    assert found is not None
    return found
