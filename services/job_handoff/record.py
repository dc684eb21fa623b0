"""The record of a run: who asked for what, what was decided, and how it ended.

It stands on the run's object as an annotation, and in the store when the run has ended.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from hub_ext.errors import BadValueError
from hub_ext.quota.arithmetic import GPU_EQUIVALENTS, SERVERS, Amount, Resources
from hub_ext.render.pod import amounts

from .model import RunRequest
from .plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run."""

    id: str
    user: str
    team: str
    title: str
    kind: str
    profile: str
    """With its version: ``name@3``."""
    image: str
    """By digest."""
    queue: str
    lineage: str
    submitted: str
    """ISO 8601."""
    request: Mapping[str, Any]
    """As it was read, without the idempotency key."""
    max_seconds: int
    price_per_hour: str = ""
    """Of one pod; empty where the catalog has none."""
    currency: str = ""
    resources: Mapping[str, str] = field(default_factory=dict)
    """Requests of one pod."""
    ended: Mapping[str, Any] | None = None
    """Status at the end (`status.Status.as_dict`); None while it has not ended."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Size of each result, in bytes."""

    @property
    def nodes(self) -> int:
        return int(self.request.get("nodes", 1))

    @property
    def is_schedule(self) -> bool:
        """Whether it was asked for again and again."""
        return self.request.get("schedule") is not None

    def as_json(self) -> str:
        """Write it on one line."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    def read_request(self) -> RunRequest:
        """Give the request again, for a retry.

        Raises
        ------
        BadValueError
            It was made by another version of this service and is not valid any more.
        """
        try:
            return RunRequest.model_validate(self.request)
        except ValidationError as error:
            raise BadValueError(f"the request of {self.id} cannot be read any more: {error}") from error

    def with_end(self, status: Mapping[str, Any], files: Mapping[str, int]) -> Record:
        """Give the record of the run when it has ended."""
        return replace(self, ended=dict(status), files=dict(files))


def record_of(plan: Plan, *, submitted: datetime) -> Record:
    """Write down what was decided."""
    price = plan.workspace.price
    return Record(
        id=plan.id,
        user=plan.user,
        team=plan.team,
        title=plan.request.title,
        kind=plan.kind.value,
        profile=plan.workspace.profile.label,
        image=str(plan.image),
        queue=plan.queue,
        lineage=plan.lineage,
        submitted=submitted.isoformat(timespec="seconds"),
        request=plan.request.model_dump(mode="json", by_alias=True, exclude={"key"}),
        max_seconds=int(plan.max_duration.total_seconds()),
        price_per_hour=str(price.per_hour) if price else "",
        currency=price.currency if price else "",
        resources=amounts(plan.workspace)[0],
    )


def parse_record(text: str) -> Record:
    """Read a record; what a later version has added is left out.

    Raises
    ------
    BadValueError
        Not a record.
    """
    try:
        found = json.loads(text)
        known = {name: found[name] for name in Record.__dataclass_fields__ if name in found}
        return Record(**known)
    except (ValueError, TypeError, KeyError) as error:
        raise BadValueError(f"not the record of a run: {error}") from error


def asked_by(record: Record, worth: Fraction = Fraction(0)) -> Resources:
    """Say what all pods of a run take together; `worth` is the GPU equivalents of one pod."""
    one = Resources.read(record.resources)
    extra: dict[str, Amount] = {GPU_EQUIVALENTS: worth, SERVERS: 0}
    amounts_of_one: dict[str, Amount] = {**dict(one.items()), **extra}
    return Resources({name: amount * record.nodes for name, amount in amounts_of_one.items()})
