"""Objects of the Kubernetes API for tests, as short as they can be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"
IMAGE = "registry.example.com/ai/torch@sha256:" + "ab" * 32


def at(seconds: float, *, micro: bool = False) -> str:
    """Write the moment `seconds` after `NOW` as the API does."""
    moment = NOW + timedelta(seconds=seconds)
    text = moment.isoformat(timespec="microseconds" if micro else "seconds")
    return text.replace("+00:00", "Z")


def make_pod(
    name: str = "jupyter-ada",
    *,
    uid: str = "pod-1",
    node: str | None = None,
    phase: str = "Pending",
    status: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    gpus: int = 1,
) -> dict[str, Any]:
    limits = {"cpu": "2", "memory": "4Gi", **({GPU: str(gpus)} if gpus else {})}
    container = {"name": "notebook", "image": IMAGE, "resources": {"limits": limits}}
    return {
        "metadata": {
            "name": name,
            "namespace": "hub",
            "uid": uid,
            "creationTimestamp": at(0),
            "labels": {"component": "singleuser-server", **(labels or {})},
            "annotations": {"hub.jupyter.org/username": name.removeprefix("jupyter-")},
            **(metadata or {}),
        },
        "spec": {
            "containers": [{**container, "env": [{"name": "JUPYTERHUB_API_TOKEN", "value": "secret"}]}],
            **({"nodeName": node} if node else {}),
            **(spec or {}),
        },
        "status": {"phase": phase, **(status or {})},
    }


def container_status(name: str = "notebook", **state: Any) -> dict[str, Any]:
    return {"name": name, "ready": False, "restartCount": 0, "state": state}


def condition(kind: str, status: str = "True", *, seconds: float = 0, **more: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": at(seconds), **more}


def make_event(
    reason: str,
    message: str = "",
    *,
    seconds: float = 0,
    uid: str = "pod-1",
    container: str = "",
    warning: bool = False,
    exact: bool = False,
    name: str = "",
    **more: Any,
) -> dict[str, Any]:
    """Make an event as the kubelet writes it, or (`exact`) as the scheduler does."""
    about = {"kind": "Pod", "namespace": "hub", "name": "jupyter-ada", "uid": uid}
    if container:
        about["fieldPath"] = f"spec.containers{{{container}}}"
    times: dict[str, Any] = {"firstTimestamp": at(seconds), "lastTimestamp": at(seconds), "eventTime": None}
    if exact:
        times = {"firstTimestamp": None, "lastTimestamp": None, "eventTime": at(seconds, micro=True)}
    return {
        "metadata": {
            "name": name or f"e.{reason}.{seconds}",
            "uid": name or f"{reason}-{seconds}",
            "namespace": "hub",
        },
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "count": 1,
        **times,
        **more,
    }


def make_node(
    name: str = "n1",
    *,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    ready: str | None = "True",
    **spec: Any,
) -> dict[str, Any]:
    conditions = [] if ready is None else [condition("Ready", ready)]
    base = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels or {}, "creationTimestamp": at(-3600)},
        "spec": spec,
        "status": {"allocatable": {**base, **(allocatable or {})}, "conditions": conditions},
    }
