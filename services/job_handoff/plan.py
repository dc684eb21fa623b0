"""From a request to everything that is decided about a run, or to the reason why it may not be.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from hub_ext.catalog.compose import Workspace
from hub_ext.catalog.model import Catalog, RunKind, RunRules
from hub_ext.names import ImageReference
from hub_ext.selection import Refusal, select
from hub_ext.selection_access import Person, is_allowed
from hub_ext.units import format_duration

from .inputs import check_environment, check_git, check_kernel, check_schedule, no_kernel
from .model import Notebook, RunRequest, Schedule
from .settings import HandoffSettings
from .verdicts import RefusalReason, RunRefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerImage:
    """The image that the user's server runs at this moment."""

    reference: ImageReference
    pull_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is known around a request when it is judged."""

    catalog: Catalog
    settings: HandoffSettings
    person: Person
    today: date
    server: ServerImage | None = None
    """None if no server was named, or if the one that was does not run."""
    unavailable: Mapping[RunKind, str] = field(default_factory=dict)
    """Kinds that the cluster cannot run, and why."""
    source_kernels: Mapping[str, str | None] = field(default_factory=dict)
    """Kernel that each notebook of the source names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run, decided: whoever builds its objects has nothing left to judge."""

    id: str
    user: str
    request: RunRequest
    workspace: Workspace
    image: ImageReference
    pull_secrets: tuple[str, ...]
    team: str
    kind: RunKind
    rules: RunRules
    priority: str | None
    """Name of a WorkloadPriorityClass; None where the catalog has no priorities."""
    max_duration: timedelta
    lineage: str
    """Run that the checkpoints are named after: the first of those that resume each other."""
    notices: tuple[str, ...] = ()
    """What the user should know, though nothing is wrong."""

    @property
    def queue(self) -> str:
        """Name of the LocalQueue."""
        return self.team

    @property
    def continues(self) -> bool:
        """Whether it goes on from an earlier run."""
        return self.lineage != self.id

    @property
    def schedule(self) -> Schedule | None:
        return self.request.schedule


def plan_run(scene: Scene, request: RunRequest, *, run: str, lineage: str = "") -> Plan:
    """Decide everything about a run.

    Parameters
    ----------
    run
        Its name.
    lineage
        Of the run that it goes on from; empty for none.

    Raises
    ------
    RunRefusedError
        It may not be; the reason says why.
    """
    check_groups(scene.person, scene.settings)
    workspace, team, notice = _workspace(scene, request)
    rules = workspace.profile.jobs
    if rules is None:
        raise RunRefusedError(
            RefusalReason.NOT_RUNNABLE,
            f"{workspace.profile.display_name} is a workspace only; runs cannot be made of it.",
            field="profile",
            allowed=runnable_names(scene.catalog, scene.person, today=scene.today),
        )
    if not team:
        raise RunRefusedError(
            RefusalReason.NO_TEAM,
            "You are in no team, and runs wait in the queue of a team.",
            help="Ask an administrator to put you into one.",
        )
    kind = _kind(scene, request, rules)
    _check_size(request, rules, kind)
    check_environment(request, scene.settings)
    check_git(request, scene.settings)
    if request.schedule is not None:
        check_schedule(request.schedule, scene.today)
    _check_kernel(scene, request)
    image, secrets = _image(scene, request, workspace)
    return Plan(
        id=run,
        user=scene.person.name,
        request=request,
        workspace=workspace,
        image=image,
        pull_secrets=secrets,
        team=team,
        kind=kind,
        rules=rules,
        priority=_priority(scene, request),
        max_duration=_duration(request, rules, scene.settings),
        lineage=lineage or run,
        notices=tuple(filter(None, (notice, _sharing_notice(workspace, request)))),
    )


def check_groups(person: Person, settings: HandoffSettings) -> None:
    """Refuse who may not hand off at all; the button and the API ask this same rule.

    Raises
    ------
    RunRefusedError
        `group-required`, naming the groups.
    """
    if settings.groups and person.groups.isdisjoint(settings.groups):
        raise RunRefusedError(
            RefusalReason.GROUP_REQUIRED,
            f"Runs are for members of {' or '.join(settings.groups)}.",
            allowed=settings.groups,
            help="Ask an administrator to put you into the group.",
        )


def runnable_names(catalog: Catalog, person: Person, *, today: date) -> tuple[str, ...]:
    """Name the job profiles that a user may start, each once, in the catalog's order."""
    names: dict[str, None] = {}
    for profile in catalog.profiles:
        if profile.jobs is None or profile.name in names:
            continue
        chosen = select(catalog, person, {"profile": profile.name}, today=today)
        if not isinstance(chosen, Refusal) and chosen.workspace.profile.jobs is not None:
            names[profile.name] = None
    return tuple(names)


def _workspace(scene: Scene, request: RunRequest) -> tuple[Workspace, str, str]:
    team = {"team": request.team} if request.team else {}
    options: dict[str, Any] = {**request.choices, "profile": request.profile, **team}
    chosen = select(scene.catalog, scene.person, options, today=scene.today)
    if isinstance(chosen, Refusal):
        raise RunRefusedError(chosen.reason, chosen.text, field="profile", status=chosen.status)
    return chosen.workspace, chosen.team or "", chosen.notice


def _kind(scene: Scene, request: RunRequest, rules: RunRules) -> RunKind:
    kind = request.kind or rules.kinds[0]
    if kind not in rules.kinds:
        raise RunRefusedError(
            RefusalReason.KIND_NOT_OFFERED,
            f"This profile is not for a {kind.value}.",
            field="kind",
            allowed=[one.value for one in rules.kinds],
        )
    if problem := scene.unavailable.get(kind):
        raise RunRefusedError(
            RefusalReason.KIND_UNAVAILABLE,
            f"The cluster cannot run a {kind.value} at the moment: {problem}",
            field="kind",
            help="Please tell an administrator.",
        )
    if request.schedule is not None and kind is not RunKind.JOB:
        raise RunRefusedError(
            RefusalReason.SCHEDULE_KIND,
            "Only a job can be repeated on a schedule.",
            field="kind",
            allowed=["job"],
        )
    return kind


def _check_size(request: RunRequest, rules: RunRules, kind: RunKind) -> None:
    most = 1 if kind is RunKind.JOB else rules.max_nodes
    if request.nodes > most:
        raise RunRefusedError(
            RefusalReason.TOO_MANY_NODES,
            f"A {kind.value} of this profile has at most {most} {'pod' if most == 1 else 'pods'}; "
            f"{request.nodes} were asked for.",
            field="nodes",
        )
    if isinstance(request.entry, Notebook) and kind is not RunKind.JOB:
        raise RunRefusedError(
            RefusalReason.KIND_NOT_OFFERED,
            f"A notebook runs in one pod, as a job; a {kind.value} runs a script.",
            field="kind",
            allowed=["job"],
        )


def _duration(request: RunRequest, rules: RunRules, settings: HandoffSettings) -> timedelta:
    most = rules.max_duration or settings.bounds.max_duration
    if request.max_duration is None:
        return most
    if request.max_duration > most or request.max_duration < timedelta(minutes=1):
        raise RunRefusedError(
            RefusalReason.TOO_LONG,
            f"A run of this profile may take from 1m to {format_duration(most)}.",
            field="maxDuration",
        )
    return request.max_duration


def _priority(scene: Scene, request: RunRequest) -> str | None:
    offered = priorities_for(scene.catalog, scene.person)
    if request.priority is None:
        known = scene.catalog.jobs.priorities
        return next((name for name in offered if known[name].default), offered[0] if offered else None)
    if request.priority not in offered:
        raise RunRefusedError(
            RefusalReason.PRIORITY_NOT_ALLOWED,
            "This priority is not offered to you.",
            field="priority",
            allowed=offered,
        )
    return request.priority


def priorities_for(catalog: Catalog, person: Person) -> tuple[str, ...]:
    """Name the priorities that a user may choose from."""
    return tuple(
        name for name, one in catalog.jobs.priorities.items() if is_allowed(one.access, catalog, person)
    )


def _check_kernel(scene: Scene, request: RunRequest) -> None:
    """Refuse a kernel that is known not to be there; what is not known is found out by the run."""
    if not isinstance(request.entry, Notebook):
        return
    path, kernel = request.entry.path, request.entry.kernel
    named = scene.source_kernels.get(path)
    if path in scene.source_kernels and named is None and kernel is None:
        raise no_kernel(path, request.kernels or ())
    if request.kernels is not None:
        check_kernel(named, kernel, request.kernels)


def _image(scene: Scene, request: RunRequest, workspace: Workspace) -> tuple[ImageReference, tuple[str, ...]]:
    if request.image == "profile":
        return _pinned(workspace.reference), workspace.image.pull_secrets
    if scene.server is None:
        raise RunRefusedError(
            RefusalReason.NO_SERVER,
            "The server whose image was asked for does not run.",
            field="image",
            allowed=["profile"],
        )
    return _pinned(scene.server.reference), scene.server.pull_secrets


def _pinned(image: ImageReference) -> ImageReference:
    if not image.digest:
        raise RunRefusedError(
            RefusalReason.IMAGE_NOT_PINNED,
            f"{image} can change until the run starts: it has no digest.",
            field="image",
            help="Run it with the image of your running server, or ask an administrator to pin this one.",
        )
    return image


def _sharing_notice(workspace: Workspace, request: RunRequest) -> str:
    gpu = workspace.pool.gpu if workspace.pool and workspace.gpu else None
    if gpu is None or gpu.sharing.value not in {"time-slicing", "mps"}:
        return ""
    if request.nodes > 1:
        return "The pods of this run may meet on one card: shares are not separate GPUs, and are not faster."
    return "A share of a card has neither memory nor faults of its own: another user's job can end this run."
