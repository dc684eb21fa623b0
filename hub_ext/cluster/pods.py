"""Pods, reduced to what quotas, waiting and start-up phases need.

No environment, command or annotation of the user's container is kept: a pod of a server carries its token.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ..names import DOMAIN, HUB_SERVER, HUB_USER
from ..quota.arithmetic import FINISHED_PHASES, PodRequest, Resources, is_overdue, pod_request
from .times import read_time

NOTEBOOK: Final = "notebook"
"""Name that KubeSpawner gives the user's container (`kubespawner.objects.make_pod`)."""
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
KUEUE_GATE: Final = "kueue.x-k8s.io/admission"
_KEPT_LABELS: Final = (QUEUE_LABEL, "component", "app.kubernetes.io/component", HUB_USER)
_KEPT_NOTES: Final = (HUB_USER, HUB_SERVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition of a pod or a workload."""

    type: str
    status: bool
    """Unknown counts as false."""
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    """Last change, to the second; overwritten when the condition flips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What the kubelet says about one container."""

    name: str
    init: bool = False
    sidecar: bool = False
    state: str = "waiting"
    """``waiting``, ``running`` or ``terminated``."""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    started: datetime | None = None
    finished: datetime | None = None
    restarts: int = 0
    ready: bool = False
    image: str = ""
    last_reason: str = ""
    """Why the run before this one ended, such as ``OOMKilled``."""
    last_exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod at one moment."""

    uid: str
    namespace: str
    name: str
    created: datetime
    phase: str
    node: str = ""
    reason: str = ""
    """Why the kubelet refused or ended the pod as a whole."""
    message: str = ""
    labels: Mapping[str, str]
    notes: Mapping[str, str]
    requests: Resources
    conditions: tuple[Condition, ...] = ()
    containers: tuple[Container, ...] = ()
    """Init containers first, in the order of the pod."""
    selector: tuple[tuple[str, str], ...] = ()
    """Labels that its node must have: those of the pool and of the hub together."""
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    """Volume claims that it mounts."""
    deleted: datetime | None = None
    grace_seconds: int | None = None

    def condition(self, kind: str) -> Condition | None:
        """Give the condition of that type, if the pod has it."""
        return next((one for one in self.conditions if one.type == kind), None)

    def holds(self, kind: str) -> bool:
        """Say whether the condition of that type is true."""
        found = self.condition(kind)
        return found is not None and found.status

    def counts(self, now: datetime) -> bool:
        """Say whether the pod takes room at `now`; same rule as `quota.arithmetic.counts`."""
        return self.phase not in FINISHED_PHASES and not is_overdue(self.deleted, self.grace_seconds, now)

    @property
    def notebook(self) -> Container | None:
        """The user's container: the one of KubeSpawner's name, else the first that is no init container."""
        main = [one for one in self.containers if not one.init]
        return next((one for one in main if one.name == NOTEBOOK), main[0] if main else None)


def read_pod(pod: Mapping[str, Any], request: PodRequest | None = None) -> Pod:
    """Reduce a Pod in API spelling; `request` is what its `spec` asks for, for callers who know it already.

    Raises
    ------
    KeyError
        Not an object of the API: it has no uid.
    """
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    created = read_time(metadata.get("creationTimestamp"))
    if created is None:
        raise KeyError("creationTimestamp")
    return Pod(
        uid=metadata["uid"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        created=created,
        phase=status.get("phase", ""),
        node=spec.get("nodeName") or "",
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        labels=_ours(metadata.get("labels"), _KEPT_LABELS),
        notes=_ours(metadata.get("annotations"), _KEPT_NOTES),
        requests=(request or pod_request(spec)).requests,
        conditions=read_conditions(status),
        containers=_containers(spec, status),
        selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        claims=_claims(spec),
        deleted=read_time(metadata.get("deletionTimestamp")),
        grace_seconds=metadata.get("deletionGracePeriodSeconds"),
    )


def read_conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Read `status.conditions` of a pod, a node or a workload."""
    return tuple(
        Condition(
            type=one.get("type", ""),
            status=one.get("status") == "True",
            reason=one.get("reason") or "",
            message=one.get("message") or "",
            since=read_time(one.get("lastTransitionTime")),
        )
        for one in status.get("conditions") or ()
    )


def _ours(texts: Mapping[str, str] | None, kept: tuple[str, ...]) -> dict[str, str]:
    return {key: text for key, text in (texts or {}).items() if key in kept or key.startswith(f"{DOMAIN}/")}


def _claims(spec: Mapping[str, Any]) -> tuple[str, ...]:
    claims = (volume.get("persistentVolumeClaim") or {} for volume in spec.get("volumes") or ())
    return tuple(claim["claimName"] for claim in claims if claim.get("claimName"))


def _containers(spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[Container, ...]:
    found: list[Container] = []
    for part, states, init in (
        ("initContainers", "initContainerStatuses", True),
        ("containers", "containerStatuses", False),
    ):
        by_name = {one.get("name"): one for one in status.get(states) or ()}
        found.extend(
            _container(one, by_name.get(one.get("name")) or {}, init=init) for one in spec.get(part) or ()
        )
    return tuple(found)


def _container(container: Mapping[str, Any], status: Mapping[str, Any], *, init: bool) -> Container:
    states = status.get("state") or {}
    state = next(iter(states), "waiting")
    facts = states.get(state) or {}
    last = (status.get("lastState") or {}).get("terminated") or {}
    return Container(
        name=container.get("name", ""),
        init=init,
        sidecar=init and container.get("restartPolicy") == "Always",
        state=state,
        reason=facts.get("reason") or "",
        message=facts.get("message") or "",
        exit_code=facts.get("exitCode"),
        started=read_time(facts.get("startedAt")),
        finished=read_time(facts.get("finishedAt")),
        restarts=status.get("restartCount") or 0,
        ready=bool(status.get("ready")),
        image=container.get("image") or "",
        last_reason=last.get("reason") or "",
        last_exit_code=last.get("exitCode"),
    )


def reduce_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Give a pod in API spelling with only what KubeSpawner reads: names, ports and status, no secrets."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels")
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata}
        | {"annotations": _ours(metadata.get("annotations"), _KEPT_NOTES)},
        "spec": {
            "nodeName": spec.get("nodeName"),
            "containers": [
                {"name": one.get("name"), "ports": one.get("ports") or []}
                for one in spec.get("containers") or ()
            ],
        },
        "status": pod.get("status") or {},
    }
