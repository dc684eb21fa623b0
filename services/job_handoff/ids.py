"""Names of runs and of what belongs to them: the same request gives the same names.

A run's name is made from its owner and the idempotency key, so creating it twice is refused by the API
server itself. It has at most 47 characters and begins with a letter (RFC 1035), which a RayJob needs: KubeRay
and Kueue append to it.

Pure: no clock, no network.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hub_ext.names import DOMAIN, label_value

_DIGITS: Final = 16
"""Base32 digits of SHA-256, 80 bits: nobody finds a key that meets another user's run."""

ANNOTATION_RECORD: Final = f"{DOMAIN}/run"
"""The run as its owner asked for it, and what was decided, as JSON (`record.Record`)."""
ANNOTATION_HASH: Final = f"{DOMAIN}/run-hash"
"""Of the request: tells a repeated request from another one under the same key."""
ANNOTATION_CANCELED: Final = f"{DOMAIN}/canceled"
"""When its owner, or an admin, ended it (ISO 8601)."""
ANNOTATION_STUCK: Final = f"{DOMAIN}/stuck"
"""Why the service took its quota back: it was admitted and could not start."""
ANNOTATION_FILED: Final = f"{DOMAIN}/filed"
"""Set once record and log are in the store."""

NO_TEAM: Final = "_none"
"""Stands for no team in the store. No team can have the name: none starts with `_`."""


def run_id(user: str, key: str) -> str:
    """Name a run: the same for the same user and key, and for no others."""
    exact = f"{len(user)}:{user}{key}".encode("utf-8", "surrogatepass")
    return f"run-{_digits(exact)}"


def content_name(prefix: str, content: bytes) -> str:
    """Name an object by what is in it."""
    return f"{prefix}-{_digits(content)}"


def _digits(content: bytes) -> str:
    return base64.b32encode(hashlib.sha256(content).digest()).decode("ascii").lower()[:_DIGITS]


def request_hash(request: Mapping[str, Any]) -> str:
    """Give a hash of a request that does not depend on the order of its keys."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def base_id(run: str) -> str:
    """Give the schedule that a run came from, or the run itself: ``run-…-29384756`` is one of ``run-…``."""
    head, _, tail = run.rpartition("-")
    return head if head.startswith("run-") and tail.isdigit() and len(tail) < _DIGITS else run


def owner_prefix(team: str, user: str) -> str:
    """Give the folder of the store that belongs to a user within a team.

    The team comes first, so that a bucket policy for ``<team>/*`` keeps teams apart.
    """
    return f"{team or NO_TEAM}/{label_value(user)}"


def run_prefix(team: str, user: str, run: str) -> str:
    """Give the folder of the store that belongs to a run."""
    return f"{owner_prefix(team, user)}/runs/{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Whose pods speak: enough to file what ends late, even when the run's object is gone."""

    team: str
    user: str
    run: str
    """Of a schedule the schedule itself: each of its runs may use the token."""
    lineage: str


def token_for(secret: bytes, claims: Claims) -> str:
    """Make the token with which a run's own pods speak to the service."""
    fields = [claims.team, claims.user, base_id(claims.run), claims.lineage]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    payload = base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii").rstrip("=")
    return f"{payload}.{_seal(secret, payload)}"


def read_token(secret: bytes, token: str, run: str) -> Claims | None:
    """Give the claims of a token for a run; None if it is not ours, or another run's."""
    payload, dot, seal = token.partition(".")
    if not dot or not hmac.compare_digest(seal.encode(), _seal(secret, payload).encode()):
        return None
    padded = payload + "=" * (-len(payload) % 4)
    team, user, meant, lineage = json.loads(base64.urlsafe_b64decode(padded).decode("utf-8", "surrogatepass"))
    if base_id(run) != meant:
        return None
    # Each run of a schedule begins anew, unless all of them go on from an earlier run.
    return Claims(team=team, user=user, run=run, lineage=run if lineage == meant else lineage)


def _seal(secret: bytes, payload: str) -> str:
    return hmac.new(secret, f"run-token:{payload}".encode(), hashlib.sha256).hexdigest()
