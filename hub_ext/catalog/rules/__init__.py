"""Rules about a catalog whose shape is right: each says what it finds, none stops the others.

A rule is a function from a `Context` to problems, with a code from `codes`. To add one: write it in the
module of its subject, list it here, add its code to `codes`, and give it a case in the tests.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ..problems import Problem
from . import choices, images, lifecycle, policy, pools, references, storage, teams, workspaces
from .context import Context

ALL: Final[tuple[Callable[[Context], Iterator[Problem]], ...]] = (
    references.check_images,
    references.check_pools,
    references.check_teams,
    references.check_access,
    references.check_choices,
    lifecycle.check_unique,
    lifecycle.check_replacements,
    lifecycle.check_until,
    lifecycle.check_offered,
    lifecycle.check_recommended,
    lifecycle.check_aliases,
    images.check_pinned,
    images.check_used,
    images.check_fit,
    pools.check_gpus,
    pools.check_ambiguous,
    pools.check_used,
    choices.check_names,
    choices.check_reachable,
    workspaces.check_variants,
    workspaces.check_promises,
    storage.check_storage,
    storage.check_overlap,
    storage.check_hub_home,
    storage.check_shared_memory,
    storage.check_work_dir,
    policy.check_session,
    policy.check_security,
    policy.check_environment,
    policy.check_labels,
    policy.check_open,
    policy.check_prices,
    teams.check_members,
    teams.check_namespaces,
    teams.check_quotas,
)


def check(context: Context) -> list[Problem]:
    """Apply every rule."""
    return [problem for rule in ALL for problem in rule(context)]
