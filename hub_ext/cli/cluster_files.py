"""Reading what `kubectl get … -o yaml` or `-o json` wrote, in place of a cluster.

Shell: reads files.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ..cluster.kinds import Kind
from ..cluster.state import ClusterState
from ..quota.demand import Weights
from .catalogs import UsageError

_KINDS: Final = {
    "Pod": Kind.PODS,
    "Node": Kind.NODES,
    "ResourceQuota": Kind.QUOTAS,
    "LimitRange": Kind.LIMIT_RANGES,
    "Event": Kind.EVENTS,
    "Workload": Kind.WORKLOADS,
}


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Read the Kubernetes objects of a file: one, several documents, or lists of them.

    Raises
    ------
    UsageError
        The file holds no objects of the Kubernetes API.
    """
    text = path.read_text(encoding="utf-8")
    try:
        documents = _documents(text)
    except YAMLError as error:
        raise UsageError(f"{path}: neither JSON nor YAML: {str(error).splitlines()[0]}") from error
    found = list(_objects(documents))
    if not all(isinstance(one, Mapping) and "kind" in one and "metadata" in one for one in found):
        raise UsageError(f"{path}: not what `kubectl get -o yaml` writes: an object without kind or metadata")
    return found


def _documents(text: str) -> list[Any]:
    """Read JSON by the fast reader, since clusters are large, and anything else as YAML."""
    try:
        return [json.loads(text)]
    except ValueError:
        return list(YAML(typ="safe").load_all(text))


def _objects(documents: Iterable[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, Mapping) and isinstance(document.get("items"), list):
            yield from document["items"]
        elif document is not None:
            yield document


def load_state(paths: Iterable[Path], weights: Weights, now: datetime) -> ClusterState:
    """Make the state of a cluster from files; a kind that none of them holds is one that cannot be seen."""
    state = ClusterState(weights)
    for path in paths:
        for item in read_objects(path):
            kind = _KINDS.get(item["kind"])
            if kind is None:
                continue
            state.put(kind, item, now)
            namespace = "" if kind is Kind.NODES else item["metadata"].get("namespace", "")
            state.seen(kind, namespace)
            if kind is Kind.PODS:
                # Whoever writes files down knows which namespaces matter.
                state.seen(Kind.OUTSIDE)
    return state
