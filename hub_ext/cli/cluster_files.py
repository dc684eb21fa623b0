"""Reading what `kubectl get … -o yaml` or `-o json` wrote, in place of a cluster.

Shell: reads files.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ..cluster.kinds import Kind
from ..cluster.state import ClusterState
from ..quota.demand import Weights
from .catalogs import UsageError
from .files import read_documents

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
        The file holds no objects of the Kubernetes API. A `kubectl get` that failed leaves one without
        anything; where there are no objects, it writes an empty list.
    """
    documents = read_documents(path)
    if all(document is None for document in documents):
        raise UsageError(
            f"{path}: it is empty; `kubectl get` has failed when it wrote this, see what it said"
        )
    found = list(_objects(documents))
    if not all(map(_is_object, found)):
        raise UsageError(f"{path}: not what `kubectl get -o yaml` writes: an object without kind or metadata")
    return found


def _objects(documents: Iterable[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, Mapping) and isinstance(document.get("items"), list):
            yield from document["items"]
        elif document is not None:
            yield document


def _is_object(one: Any) -> bool:
    return (
        isinstance(one, Mapping)
        and isinstance(one.get("kind"), str)
        and isinstance(one.get("metadata"), Mapping)
    )


def load_state(paths: Iterable[Path], weights: Weights, now: datetime) -> ClusterState:
    """Make the state of a cluster from files; a kind that none of them holds is one that cannot be seen."""
    state = ClusterState(weights)
    for path in paths:
        for item in read_objects(path):
            kind = _KINDS.get(item["kind"])
            if kind is None:
                continue
            try:
                state.put(kind, item, now)
                namespace = "" if kind is Kind.NODES else item["metadata"].get("namespace", "")
                state.seen(kind, namespace)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                name = f"{item['kind']} {item['metadata'].get('name')!r}"
                raise UsageError(f"{path}: {name} is not whole: {error!r}") from error
            if kind is Kind.PODS:
                # Whoever writes files down knows which namespaces matter.
                state.seen(Kind.OUTSIDE)
    return state
