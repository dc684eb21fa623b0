"""Finding out everything that a request is judged by, and judging it.

Shell: talks to hub, cluster and store.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hub_ext.catalog.model import Catalog, RunKind
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import Weights
from hub_ext.quota.policy import limits_for
from hub_ext.quota.usage import Holding
from hub_ext.render.pod import amounts
from hub_ext.render.storage import UserFacts, build_volumes

from . import places
from .archive import Contents
from .census import holding_of, without_server
from .core import Core
from .home import UNSEEN, judge_home
from .installed import unavailable
from .limits import LimitVerdict, judge_limits, usage_of
from .manifest.pod import Part
from .model import Git, HomeFolder, RunRequest, Snapshot
from .people import Asker, server_image
from .plan import Plan, Scene, plan_run
from .queue import Forecast, When, forecast
from .record import Record, record_of
from .seen import record_from
from .snapshot import check_entry
from .store import StoreError, refusal
from .verdicts import RefusalReason, RunRefusedError
from .volumes import look_at_home

INSTALLED_FOR: Final = 300.0
"""Seconds that what is installed is known for."""
MOST_CONTENTS: Final = 8 * 1024 * 1024
"""Bytes of what is known about a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A request with everything that was found out about it."""

    plan: Plan
    asker: Asker
    catalog: Catalog
    holding: Holding
    forecast: Forecast
    limit: LimitVerdict
    home: Part | None


class Judge:
    """Judges requests by how things stand at this moment."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._problems: Mapping[Any, str] = {}
        self._looked = float("-inf")

    async def judge(self, asker: Asker, request: RunRequest, run: str) -> Judged:
        core = self._core
        catalog, weights = await core.catalog()
        today = core.now().date()
        await core.kept.check(asker.person.name, {})
        contents = await self._contents(asker.person.name, request)
        server = None
        if request.image == "server":
            server = await server_image(
                asker,
                request.server,
                catalog,
                today=today,
                kube=core.kube,
                namespaces=core.settings.server_namespaces,
            )
        scene = Scene(
            catalog=catalog,
            settings=core.settings,
            person=asker.person,
            today=today,
            server=server,
            unavailable=await self._unavailable(),
            source_kernels=contents.kernels if contents else {},
        )
        first = await self._first(asker, catalog, request)
        plan = plan_run(scene, request, run=run, lineage=first.lineage if first else "")
        if first is not None and first.team != plan.team:
            raise RunRefusedError(
                RefusalReason.OTHER_TEAM,
                f"The checkpoints of {first.id} belong to the team {first.team}, and this run is for "
                f"{plan.team}.",
                field="team",
                help="Book it on the same team, or begin anew.",
            )
        home: Part | None = None
        if isinstance(request.source, HomeFolder):
            home, notice = await self._home(plan, catalog, asker)
            plan = replace(plan, notices=(*plan.notices, *filter(None, [notice])))
        holding = holding_of(record_of(plan, submitted=core.now()), weights)
        limit = await self._limit(asker, plan, catalog, weights, holding)
        queue = await core.cluster.queue(plan.queue)
        pool = plan.workspace.pool
        seen = forecast(
            queue,
            holding.taken,
            selector=pool.node_selector if pool else {},
            excluded=core.settings.unbounded_resources,
        )
        if limit.held and limit.refusal and seen.when is not When.NEVER:
            seen = replace(seen, when=When.WAIT, reason=limit.refusal.reason.value, text=limit.refusal.text)
        return Judged(
            plan=plan,
            asker=asker,
            catalog=catalog,
            holding=holding,
            forecast=seen,
            limit=limit,
            home=home,
        )

    async def _contents(self, user: str, request: RunRequest) -> Contents | None:
        """Read what is in the uploaded source; one that is not there is refused."""
        source = request.source
        digest = (
            source.sha256
            if isinstance(source, Snapshot)
            else source.patch
            if isinstance(source, Git)
            else None
        )
        if digest is None:
            return None
        try:
            found = await self._core.store.get(places.contents_path(user, digest), most=MOST_CONTENTS)
        except StoreError as error:
            raise refusal(error) from error
        if found is None:
            raise RunRefusedError(
                RefusalReason.SOURCE_MISSING,
                "The source is not there (any more).",
                field="source",
                help="Upload it first, or again.",
            )
        contents = Contents(**{**json.loads(found), "files": tuple(json.loads(found)["files"])})
        if isinstance(source, Snapshot):
            check_entry(contents.files, request.entry.path)
        return contents

    async def _first(self, asker: Asker, catalog: Catalog, request: RunRequest) -> Record | None:
        """Find the run that a request goes on from; None for one that begins anew."""
        if request.resume_from is None:
            return None
        record = await self.record_of(asker, catalog, request.resume_from)
        if record is None:
            raise RunRefusedError(
                RefusalReason.UNKNOWN_RUN, "The run to go on from is not one of yours.", field="resumeFrom"
            )
        return record

    async def record_of(self, asker: Asker, catalog: Catalog, run: str) -> Record | None:
        """Find the record of a user's own run."""
        obj = await self._core.cluster.find(run)
        record = record_from(obj) if obj else None
        if record is not None and record.user == asker.person.name:
            return record
        return await self._core.stored_record(catalog, asker.person, run)

    async def _unavailable(self) -> Mapping[Any, str]:
        if time.monotonic() - self._looked > INSTALLED_FOR:
            self._problems = unavailable(await self._core.cluster.installed())
            self._looked = time.monotonic()
        return self._problems

    async def _limit(
        self, asker: Asker, plan: Plan, catalog: Catalog, weights: Weights, holding: Holding
    ) -> LimitVerdict:
        settings, user = self._core.settings, asker.person.name
        count = await self._core.census.current(weights)
        if (active := count.active(user)) >= settings.bounds.runs_per_user:
            raise RunRefusedError(
                RefusalReason.TOO_MANY_RUNS,
                f"You have {active} runs and schedules that have not ended, as many as you may have.",
                help="Cancel one, or wait for one to end.",
            )
        holdings = count.holdings
        if plan.request.release and plan.request.server is not None:
            holdings = without_server(holdings, settings.server_namespaces, user, plan.request.server)
        usage = usage_of(holdings, holding.owner)
        return judge_limits(holding.taken, usage, limits_for(catalog, plan.team))

    async def _home(self, plan: Plan, catalog: Catalog, asker: Asker) -> tuple[Part, str]:
        """Give volume and mount of the home, and what to know of it; refuse where it cannot be mounted."""
        home, pool = plan.workspace.storage.home, plan.workspace.pool
        mode = home.access_mode if home else "ReadWriteOnce"
        facts = UNSEEN
        claim = home.claim if home is not None and home.claim in catalog.jobs.claims else None
        if claim is not None:
            facts = await look_at_home(
                self._core.kube,
                self._core.cluster,
                claim=claim,
                declared=mode,
                pool=pool,
                asked=Resources.read(amounts(plan.workspace)[0]),
            )
        # A Ray cluster has a head beside what does the work.
        pods = plan.request.nodes + (plan.kind is RunKind.RAY_JOB)
        verdict = judge_home(
            mode, running=bool(asker.servers), reachable=claim is not None, pods=pods, facts=facts
        )
        if not verdict.mount:
            raise RunRefusedError(RefusalReason.HOME_NOT_MOUNTABLE, verdict.text, field="source")
        volumes, mounts = build_volumes(plan.workspace, UserFacts(name=plan.user, team=plan.team), labels={})
        parts = zip(volumes, mounts, strict=True)
        return next(part for part in parts if part[0]["name"] == "workspace-home"), verdict.text
