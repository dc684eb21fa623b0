"""What a user may run, for the page, the command and the button in JupyterLab: one rule for all three.

Pure: `today` is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from hub_ext.catalog.model import Catalog
from hub_ext.quota import texts as quota_texts
from hub_ext.quota.arithmetic import Resources
from hub_ext.render.pod import amounts
from hub_ext.selection import Refusal, select
from hub_ext.selection_access import Person, teams_of
from hub_ext.units import format_duration, format_money

from .plan import check_groups, priorities_for, runnable_names
from .settings import HandoffSettings
from .verdicts import RunRefusedError


def offers_for(
    catalog: Catalog, settings: HandoffSettings, person: Person, *, servers: Mapping[str, str], today: date
) -> dict[str, Any]:
    """Give everything that a form of a new run needs.

    Parameters
    ----------
    servers
        Profile of each of the user's servers that run.
    """
    refusal = ""
    try:
        check_groups(person, settings)
    except RunRefusedError as error:
        refusal = error.text
    teams = teams_of(catalog, person)
    if not refusal and not teams:
        refusal = "You are in no team, and runs wait in the queue of a team."
    names = () if refusal else runnable_names(catalog, person, today=today)
    if not refusal and not names:
        refusal = "No profile for runs is offered to you."
    return {
        "allowed": not refusal,
        "refusal": refusal,
        "teams": [{"name": key, "title": catalog.teams[key].display_name or key} for key in teams],
        "profiles": [_profile(catalog, settings, person, name, today) for name in names],
        "priorities": [
            {"name": key, "title": catalog.jobs.priorities[key].display_name}
            for key in priorities_for(catalog, person)
        ],
        "servers": [{"name": name, "profile": profile} for name, profile in servers.items()],
        "environment": list(settings.environment),
        "gitHosts": list(settings.git_hosts),
        "source": {
            "files": settings.bounds.source_files,
            "size": settings.bounds.source_size,
            "packed": settings.bounds.source_packed,
        },
    }


def _profile(
    catalog: Catalog, settings: HandoffSettings, person: Person, name: str, today: date
) -> dict[str, Any]:
    chosen = select(catalog, person, {"profile": name}, today=today)
    assert not isinstance(chosen, Refusal)  # noqa: S101 - `runnable_names` has asked
    workspace = chosen.workspace
    rules = workspace.profile.jobs
    assert rules is not None  # noqa: S101 - as above
    requests = Resources.read(amounts(workspace)[0])
    price = workspace.price
    return {
        "name": name,
        "title": workspace.profile.display_name,
        "description": workspace.profile.description,
        "kinds": [kind.value for kind in rules.kinds],
        "maxNodes": rules.max_nodes,
        "maxDuration": format_duration(rules.max_duration or settings.bounds.max_duration),
        "resources": [quota_texts.amount(key, amount) for key, amount in requests.items()],
        "price": f"{format_money(price.per_hour, price.currency)} per hour" if price else "",
        "choices": [
            {
                "name": key,
                "title": choice.display_name,
                "selected": workspace.picks.get(key, ""),
                "options": [
                    {"name": option, "title": one.display_name} for option, one in choice.options.items()
                ],
            }
            for key, choice in workspace.profile.questions.items()
        ],
    }
