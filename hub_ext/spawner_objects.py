"""Between the client's models, in which KubeSpawner thinks, and plain objects in the API's spelling.

Shell: names the Kubernetes client's classes, talks to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from kubernetes_asyncio.client.rest import ApiException
from kubespawner.slugs import escape_slug, is_valid_label, safe_slug

from .names import ANNOTATION_USER, HUB_SERVER, HUB_USER, is_label_value
from .quota.refusals import explain, read_answer
from .quota.verdicts import Refusal

_OWNER_ANNOTATIONS: Final = (ANNOTATION_USER, HUB_USER)

_HOMES: Final = "component=singleuser-storage"
"""Selects the claims that KubeSpawner makes (`KubeSpawner.get_pvc_manifest`)."""

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
"""Older spelling of the storage class, which KubeSpawner writes too (`objects.make_pvc`)."""

NO_ANSWER: Final = explain(read_answer(0, None))
"""What it means that the API server does not answer in time."""


def to_object(client: Any, model: Any) -> dict[str, Any]:
    """Give a model as a plain object, and what is plain already as it is; `client` is an `ApiClient`."""
    if isinstance(model, dict):
        return model
    plain: dict[str, Any] = client.sanitize_for_serialization(model)
    return plain


def to_pod(client: Any, plain: Mapping[str, Any]) -> Any:
    """Give a plain object as a `V1Pod`, which hooks of admins expect."""
    return client.deserialize(SimpleNamespace(data=json.dumps(plain)), "V1Pod")


def put_on_claim(claim: Any, wanted: Mapping[str, Any]) -> None:
    """Make a claim of KubeSpawner's what `wanted` says; what only KubeSpawner says about it stays."""
    claim.metadata.labels.update(wanted["metadata"]["labels"])
    claim.metadata.annotations.pop(_CLASS_ANNOTATION, None)
    claim.metadata.annotations.update(wanted["metadata"]["annotations"])
    claim.spec = wanted["spec"]


def is_somebody_else_s(claim: Any, user: str) -> bool:
    """Say whether a claim names another user than this one as its owner."""
    annotations = claim.metadata.annotations or {}
    return any(annotations.get(key, user) != user for key in _OWNER_ANNOTATIONS)


def homes_selector(user: str) -> str:
    """Select claims of one user, as KubeSpawner 7 labels them and as those before it did."""
    slugs = {safe_slug(user, is_valid=is_valid_label), escape_slug(user)}
    values = sorted(slug for slug in slugs if is_label_value(slug))
    return f"{_HOMES},{HUB_USER} in ({', '.join(values)})"


def homes_of(claims: Iterable[Any], *, user: str, server: str) -> tuple[str, ...]:
    """Name the claims that say they are this server's; names that only look alike count for nothing.

    A claim that is being deleted is nobody's home any more.
    """
    return tuple(
        claim.metadata.name
        for claim in claims
        if (claim.metadata.annotations or {}).get(HUB_USER) == user
        and is_of_server(claim, server)
        and claim.metadata.deletion_timestamp is None
    )


def is_of_server(claim: Any, server: str) -> bool:
    """Say whether a claim is of one server; of the one without a name where it names none."""
    annotations = claim.metadata.annotations or {}
    return bool(annotations.get(HUB_SERVER, "") == server)


def explain_api_error(error: Exception) -> Refusal:
    """Say what the API server's answer means, or that there was none."""
    if isinstance(error, ApiException):
        return explain(read_answer(error.status or 0, error.body))
    return NO_ANSWER
