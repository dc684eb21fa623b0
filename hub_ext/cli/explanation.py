"""What a user would get, where each value comes from, and what they may not have and why.

Pure: no clock, no network.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from ..catalog.compose import Workspace, compose
from ..catalog.model import Access, Catalog, Home, Mount, Option, Profile, Scratch, State
from ..catalog.source import Source
from ..catalog.versions import offered, state_on
from ..errors import SelectionError
from ..form import facts
from ..render.pod import gpu_grant
from ..render.storage import UserFacts, fill_in
from ..selection import Selection
from ..selection_access import Person, is_allowed
from ..units import gib
from .origins import BUILT_IN, Origins


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that a user gets."""

    topic: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether one option or profile can be had."""

    name: str
    title: str
    offered: bool
    reason: str = ""


def lines(catalog: Catalog, source: Source, selection: Selection, user: UserFacts) -> list[Line]:
    """Say what the user of a selection gets."""
    workspace = selection.workspace
    origins = Origins(source, workspace)
    parts = (
        _head(selection, origins),
        _size(workspace, origins),
        _place(workspace, origins),
        _storage(workspace, user, origins),
        _variables(workspace, origins),
        _limits(catalog, workspace, user, origins),
    )
    return [line for part in parts for line in part if line.value]


def _head(selection: Selection, origins: Origins) -> Iterator[Line]:
    workspace, profile = selection.workspace, selection.workspace.profile
    name = f"{profile.display_name} ({profile.label})"
    yield Line(topic="workspace", value=name, origin=origins.of("name"))
    yield Line(topic="notice", value=selection.notice, origin=origins.of("replacedBy"))
    for question, option in workspace.options.items():
        title = f"choice {question}"
        yield Line(topic=title, value=option.display_name, origin=origins.pick(question))
    image = f"{workspace.image.display_name}: {workspace.reference}"
    yield Line(topic="image", value=image, origin=origins.image())


def _size(workspace: Workspace, origins: Origins) -> Iterator[Line]:
    yield Line(topic="processors", value=facts.cpu(workspace.cpu), origin=origins.of("resources", "cpu"))
    yield Line(topic="memory", value=facts.memory(workspace.memory), origin=origins.of("resources", "memory"))
    grant = gpu_grant(workspace)
    if grant is None:
        hidden = "none; cards of the node are hidden"
        yield Line(topic="GPU", value=hidden, origin=origins.of("resources", "gpu"))
        return
    asked = f"{grant.meaning.title} ({grant.resource}: {grant.count}, request and limit)"
    yield Line(topic="GPU", value=asked, origin=origins.of("resources", "gpu"))
    yield Line(topic="", value=grant.meaning.text, origin=origins.pool("gpu", "sharing"))


def _place(workspace: Workspace, origins: Origins) -> Iterator[Line]:
    pool = workspace.pool
    if pool is None:
        yield Line(topic="nodes", value="wherever the hub places servers", origin=BUILT_IN)
        return
    selector = ", ".join(f"{key}={value}" for key, value in pool.node_selector.items())
    nodes = f"{workspace.pool_name}: {selector or 'any node'}"
    yield Line(topic="nodes", value=nodes, origin=origins.pool("nodeSelector"))
    taints = ", ".join(t.key or "every taint" for t in pool.tolerations)
    yield Line(topic="taints accepted", value=taints, origin=origins.pool("tolerations"))
    for topic, key, value in (
        ("runtime class", "runtimeClass", pool.runtime_class),
        ("priority class", "priorityClass", pool.priority_class),
        ("scheduler", "scheduler", pool.scheduler),
    ):
        yield Line(topic=topic, value=value or "", origin=origins.pool(key))


def _storage(workspace: Workspace, user: UserFacts, origins: Origins) -> Iterator[Line]:
    kept = facts.stays(workspace, user, hub_home=workspace.storage.home is None)
    lost = facts.goes(workspace, hub_home=workspace.storage.home is None)
    written = _storage_keys(workspace, user)
    for topic, places in (("kept after a stop", kept), ("lost at a stop", lost)):
        for place in places:
            value = f"{place.path}: {place.text}" if place.path else place.text
            keys = written.get(place.path)
            yield Line(topic=topic, value=value, origin=origins.of("storage", *keys) if keys else BUILT_IN)
    shared = workspace.shared_memory
    value = f"{gib(shared)} of /dev/shm, counted as memory" if shared else ""
    yield Line(topic="shared memory", value=value, origin=origins.of("storage", "sharedMemory"))


def _storage_keys(workspace: Workspace, user: UserFacts) -> dict[str, tuple[str, ...]]:
    """Give the key under `storage` that each place of a workspace was written with."""
    storage = workspace.storage
    mounted: dict[tuple[str, ...], Home | Scratch | Mount | None] = {
        ("home",): storage.home,
        ("scratch",): storage.scratch,
        ("datasets",): storage.datasets,
        ("models",): storage.models,
        **{("mounts", name): mount for name, mount in storage.mounts.items()},
    }
    keys = {part.mount_path: key for key, part in mounted.items() if part is not None}
    if storage.checkpoints is not None:
        keys[fill_in(storage.checkpoints.uri, workspace, user)] = ("checkpoints",)
    return keys


def _variables(workspace: Workspace, origins: Origins) -> Iterator[Line]:
    for name, value in workspace.environment.items():
        own = origins.of("environment", name)
        origin = origins.image() if own == BUILT_IN else own
        yield Line(topic="variable", value=f"{name}={value}", origin=origin)


def _limits(catalog: Catalog, workspace: Workspace, user: UserFacts, origins: Origins) -> Iterator[Line]:
    profile = workspace.profile
    for text in facts.session(profile.session):
        yield Line(topic="stopped", value=text, origin=origins.of("session"))
    yield Line(topic="price", value=facts.price(workspace.price), origin=origins.of("price"))
    team = catalog.teams.get(user.team or "")
    if team is not None and user.team is not None:
        cost = f", cost center {team.cost_center}" if team.cost_center else ""
        yield Line(topic="booked on", value=f"{user.team}{cost}", origin=origins.at("teams", user.team))
    network = profile.security.network_profile or ""
    yield Line(topic="network", value=network, origin=origins.of("security", "networkProfile"))
    root = "runs as root" if profile.security.run_as_user == 0 else ""
    yield Line(topic="security", value=root, origin=origins.of("security", "runAsUser"))


def options(catalog: Catalog, selection: Selection, person: Person) -> list[Verdict]:
    """Judge every option that was not picked: could it be, with the other picks as they are?"""
    workspace = selection.workspace
    whole = catalog.by_key[workspace.profile.key]
    verdicts = []
    for question, choice in whole.questions.items():
        for key, option in choice.options.items():
            if workspace.picks.get(question) == key:
                continue
            reason = _objection(catalog, whole, {**workspace.picks, question: key}, option, person)
            name = f"{question}={key}"
            verdicts.append(Verdict(name=name, title=option.display_name, offered=not reason, reason=reason))
    return verdicts


def _objection(
    catalog: Catalog, profile: Profile, picks: Mapping[str, str], option: Option, person: Person
) -> str:
    if not is_allowed(option.access, catalog, person):
        return f"offered to {_whom(option.access)} only"
    try:
        compose(catalog, profile, picks)
    except SelectionError as error:
        return error.message
    return ""


def profiles(catalog: Catalog, person: Person, *, today: date) -> list[Verdict]:
    """Judge every version of every profile: is it on the user's spawn page?"""
    shown = {profile.key for profile in offered(catalog, today=today)}
    return [_judge_profile(catalog, profile, person, today, shown) for profile in catalog.profiles]


def _judge_profile(
    catalog: Catalog, profile: Profile, person: Person, today: date, shown: set[tuple[str, int]]
) -> Verdict:
    reason = ""
    if not is_allowed(profile.access, catalog, person):
        reason = f"offered to {_whom(profile.access)} only"
    elif profile.key not in shown:
        reason = _STATES[state_on(profile, today)]
    return Verdict(name=profile.label, title=profile.display_name, offered=not reason, reason=reason)


_STATES = {
    State.ACTIVE: "",
    State.HIDDEN: "hidden: it starts by link only",
    State.DEPRECATED: "deprecated and replaced: saved choices move on",
    State.RETIRED: "retired: it cannot be started",
}


def _whom(access: Access | None) -> str:
    if access is None:
        return "everyone"
    kinds = {"team": access.teams, "group": access.groups, "user": access.users}
    parts = [
        f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names)}" for kind, names in kinds.items() if names
    ]
    return " and ".join(parts) or "nobody"


def as_data(items: list[Line] | list[Verdict]) -> list[dict[str, Any]]:
    """Give lines or verdicts as JSON data."""
    return [asdict(item) for item in items]
