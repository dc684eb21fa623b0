"""What one user may start now, as JSON: the same entries that the spawn page shows.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from ..catalog.compose import Workspace
from ..catalog.model import Catalog, CpuAmount
from ..cluster.offer import Offer
from ..render.pod import gpu_grant
from ..render.storage import UserFacts
from ..selection import Selection
from . import facts
from .answer import (
    Amount,
    Choice,
    Cost,
    Folder,
    GpuPart,
    Limits,
    Note,
    Now,
    Offered,
    Option,
    Refused,
    WorkspaceList,
)
from .entries import Visit, entries_for
from .entry import Entry
from .page import questions
from .view import Place, Question


def list_workspaces(catalog: Catalog, visit: Visit) -> WorkspaceList:
    """Say what a user may start now, in the order of the catalog."""
    found = entries_for(catalog, visit)
    return WorkspaceList(
        user=visit.person.name,
        server=visit.server_name,
        unknown=found.unknown,
        notices=tuple(Note(kind=notice.kind, text=notice.text) for notice in found.notices),
        workspaces=tuple(_offered(catalog, entry, visit) for entry in found.entries),
    )


def _offered(catalog: Catalog, entry: Entry, visit: Visit) -> Offered:
    workspace, room, price = entry.workspace, entry.room, entry.workspace.price
    profile = workspace.profile
    text = room.refusal or room.caution
    listed = Offered(
        profile=profile.name,
        version=profile.version,
        title=profile.display_name,
        description=profile.description,
        group=entry.group,
        selected=entry.chosen,
        options={},
        may_start=not room.refusal,
        refused=Refused(reason=room.reason, text=text) if text else None,
        warning=entry.warning,
        cpu=_cores(workspace.cpu),
        memory=Amount(request=workspace.memory.request, limit=workspace.memory.limit),
        gpu=_gpu(workspace),
        price=Cost(per_hour=price.per_hour, currency=price.currency) if price else None,
        choices=(),
        kept=(),
        gone=(),
        session=_limits(workspace),
        now=_now(room.offer) if room.offer else None,
    )
    # What is for others is shown as far as its card is, and no further.
    return listed if entry.closed else listed.model_copy(update=_open_parts(catalog, entry, visit))


def _open_parts(catalog: Catalog, entry: Entry, visit: Visit) -> dict[str, Any]:
    workspace = entry.workspace
    chosen = Selection(workspace=workspace, team=entry.team, several_teams=len(entry.teams) > 1)
    user = UserFacts(name=visit.person.name, team=entry.team, server_name=visit.server_name)
    return {
        "options": chosen.options,
        "choices": tuple(_choice(one) for one in questions(catalog, entry) if one.field),
        "kept": _folders(facts.stays(workspace, user, hub_home=visit.hub_home)),
        "gone": _folders(facts.goes(workspace, hub_home=visit.hub_home)),
    }


def _cores(amount: CpuAmount) -> Amount:
    return Amount(request=amount.request / 1000, limit=None if amount.limit is None else amount.limit / 1000)


def _gpu(workspace: Workspace) -> GpuPart | None:
    grant = gpu_grant(workspace)
    if grant is None or not grant.count:
        return None
    meaning = grant.meaning
    return GpuPart(
        count=grant.count,
        sharing=grant.sharing,
        product=grant.product,
        slice=grant.slice_name,
        title=meaning.title,
        text=meaning.text,
        own_memory=meaning.own_memory,
        own_faults=meaning.own_faults,
        own_time=meaning.own_time,
    )


def _choice(question: Question) -> Choice:
    mark = question.typed.mark if question.typed else None
    return Choice(
        name=question.key,
        title=question.label,
        help=question.help,
        options=tuple(
            Option(
                value=answer.value,
                title=answer.label,
                selected=answer.selected,
                requires=json.loads(answer.requires or "{}"),
            )
            for answer in question.answers
            if answer.value != mark
        ),
        typed=question.typed.help if question.typed else "",
    )


def _folders(places: Iterable[Place]) -> tuple[Folder, ...]:
    return tuple(Folder(path=place.path, text=place.text) for place in places)


def _limits(workspace: Workspace) -> Limits:
    session = workspace.session

    def seconds(span: timedelta | None) -> float | None:
        return span.total_seconds() if span is not None else None

    return Limits(
        idle_seconds=seconds(session.idle_timeout),
        max_seconds=seconds(session.max_duration),
        warn_before_seconds=tuple(before.total_seconds() for before in session.warn_before),
    )


_NOW: Final = frozenset(field.alias for field in Now.model_fields.values())


def _now(offer: Offer) -> Now:
    return Now.model_validate({key: value for key, value in offer.as_dict().items() if key in _NOW})
