"""Taking in a run: judge it, have the cluster judge it, create it once.

Shell: talks to hub, cluster and store.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hub_ext.catalog.model import Catalog, RunKind
from hub_ext.errors import HubError, KubeError
from hub_ext.quota.demand import Weights
from hub_ext.quota.refusals import Answer
from hub_ext.quota.refusals import explain as explain_refusal
from hub_ext.quota.usage import Holding
from hub_ext.render.storage import UserFacts, build_volumes
from services.kube import ConflictError, InvalidError

from . import places
from .archive import Contents
from .census import holding_of, without_server
from .core import Core, read_runner
from .home import judge_home
from .ids import ANNOTATION_HASH, Claims, request_hash, run_id, token_for
from .installed import unavailable
from .limits import GATE, GATE_ANNOTATION, LimitVerdict, judge_limits, usage_of
from .manifest.build import build_run, build_runner_map, build_source_map
from .manifest.place import build_run_policy
from .manifest.site import Site
from .model import Git, HomeFolder, RunRequest, Snapshot, read_request
from .people import Asker, ask_hub, server_image
from .plan import Plan, Scene, plan_run
from .queue import Forecast, When, forecast
from .record import Record, record_of
from .seen import record_from
from .snapshot import check_entry
from .store import StoreError, refusal
from .texts import of_run
from .verdicts import RefusalReason, RunRefusedError

log = logging.getLogger(__name__)

INSTALLED_FOR: Final = 300.0
"""Seconds that what is installed is known for."""
_MOST_CONTENTS: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What came of a submission."""

    record: Record
    created: bool
    """False for one that was there already, and for a dry run."""
    forecast: Forecast
    notices: tuple[str, ...] = ()
    released: bool = False
    """Whether the server was asked to stop."""

    def as_dict(self) -> dict[str, Any]:
        """Give the body of the answer."""
        return {
            "id": self.record.id,
            "created": self.created,
            "title": self.record.title,
            "kind": self.record.kind,
            "profile": self.record.profile,
            "image": self.record.image,
            "queue": self.record.queue,
            "forecast": self.forecast.as_dict(),
            "notices": list(self.notices),
            "released": self.released,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A request with everything that was found out about it."""

    plan: Plan
    asker: Asker
    catalog: Catalog
    holding: Holding
    forecast: Forecast
    limit: LimitVerdict
    home: tuple[Mapping[str, Any], Mapping[str, Any]] | None


class Desk:
    """Where runs are handed in."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._locks: dict[str, asyncio.Lock] = {}
        self._runner = build_runner_map(core.settings.namespace, read_runner())
        self._problems: Mapping[Any, str] = {}
        self._looked = float("-inf")

    async def submit(self, user: str, body: object, *, dry_run: bool = False) -> Submitted:
        """Take in a run, or say what would become of it.

        Raises
        ------
        RunRefusedError
            It may not be, or cannot be at the moment.
        """
        begun = time.monotonic()
        request = read_request(body)
        kind = request.kind.value if request.kind else "default"
        # One at a time per user: two tabs must not both fit into the room that is left for one.
        async with self._locks.setdefault(user, asyncio.Lock()):
            try:
                result = await self._submit(user, request, dry_run=dry_run)
            except RunRefusedError as error:
                self._core.metrics.submissions.labels(kind, error.reason).inc()
                raise
            except StoreError as error:
                raise refusal(error) from error
        outcome = "tried" if dry_run else "created" if result.created else "repeated"
        self._core.metrics.submissions.labels(result.record.kind, outcome).inc()
        if not dry_run:
            self._core.metrics.seconds.observe(time.monotonic() - begun)
        return result

    async def _submit(self, user: str, request: RunRequest, *, dry_run: bool) -> Submitted:
        run = run_id(user, request.key or secrets.token_hex(16))
        asker = await ask_hub(self._core.hub, user)
        if request.key is not None and (found := await self._existing(asker, run, request)) is not None:
            return found
        judged = await self._judge(asker, request, run)
        if judged.forecast.when is When.NEVER:
            raise RunRefusedError(
                judged.forecast.reason,
                judged.forecast.text,
                field="profile",
                help=judged.forecast.help,
                status=409,
            )
        if judged.limit.never and judged.limit.refusal is not None:
            refused = judged.limit.refusal
            raise RunRefusedError(refused.reason.value, refused.text, field="profile", status=409)
        return await self._create(judged, dry_run=dry_run)

    # What is there already

    async def _existing(self, asker: Asker, run: str, request: RunRequest) -> Submitted | None:
        """Find the run of this key, on the cluster or filed; another request under the key is refused."""
        obj = await self._core.cluster.find(run)
        if obj is not None:
            return self._repeated(obj, request)
        catalog, _ = await self._core.catalog()
        record = await self._core.stored_record(catalog, asker.person, run)
        if record is None:
            return None
        _check_same(request_hash(record.read_request().model_dump(mode="json", exclude={"key"})), request)
        return Submitted(record=record, created=False, forecast=_THERE)

    def _repeated(self, obj: Mapping[str, Any], request: RunRequest) -> Submitted:
        notes = obj["metadata"].get("annotations") or {}
        _check_same(notes.get(ANNOTATION_HASH, ""), request)
        record = record_from(obj)
        if record is None:
            raise RunRefusedError(RefusalReason.KEY_REUSED, "Something else has the name of this run.")
        return Submitted(record=record, created=False, forecast=_THERE)

    # Judging

    async def _judge(self, asker: Asker, request: RunRequest, run: str) -> _Judged:
        core = self._core
        catalog, weights = await core.catalog()
        today = core.now().date()
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
        plan = plan_run(scene, request, run=run, lineage=await self._lineage(asker, catalog, request))
        home = _home(plan, catalog, asker) if isinstance(request.source, HomeFolder) else None
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
        return _Judged(
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
            found = await self._core.store.get(places.contents_path(user, digest), most=_MOST_CONTENTS)
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

    async def _lineage(self, asker: Asker, catalog: Catalog, request: RunRequest) -> str:
        if request.resume_from is None:
            return ""
        record = await self.record_of(asker, catalog, request.resume_from)
        if record is None:
            raise RunRefusedError(
                RefusalReason.UNKNOWN_RUN, "The run to go on from is not one of yours.", field="resumeFrom"
            )
        return record.lineage

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
        if plan.schedule is None and count.active.get(user, 0) >= settings.bounds.runs_per_user:
            raise RunRefusedError(
                RefusalReason.TOO_MANY_RUNS,
                f"You have {count.active[user]} runs that have not ended, which is as many as you may have.",
                help="Cancel one, or wait for one to end.",
            )
        holdings = count.holdings
        if plan.request.release and plan.request.server is not None:
            holdings = without_server(holdings, settings.server_namespaces, user, plan.request.server)
        usage = usage_of(holdings, holding.owner)
        return judge_limits(holding.taken, usage, self._core.limits(catalog, plan.team))

    # Creating

    async def _create(self, judged: _Judged, *, dry_run: bool) -> Submitted:
        core, plan = self._core, judged.plan
        archive = await self._inline(plan)
        source_map = (
            build_source_map(core.settings.namespace, plan.id, archive) if archive is not None else None
        )
        site = Site(
            settings=core.settings,
            runner_map=self._runner["metadata"]["name"],
            source_map=source_map["metadata"]["name"] if source_map else "",
            token=token_for(
                core.secret, Claims(team=plan.team, user=plan.user, run=plan.id, lineage=plan.lineage)
            ),
            submitted=core.now(),
            home=judged.home,
        )
        obj = build_run(judged.catalog, plan, site)
        _hold(obj, held=judged.limit.held)
        record = record_from(obj)
        assert record is not None  # noqa: S101 - it was just written
        answer = Submitted(record=record, created=False, forecast=judged.forecast, notices=plan.notices)
        if dry_run:
            await self._ask_cluster(obj, dry_run=True)
            return answer
        await core.cluster.ensure_map(self._runner)
        if source_map is not None:
            await core.cluster.ensure_map(source_map)
        if plan.kind is not RunKind.JOB:
            await core.cluster.ensure_policy(build_run_policy(core.settings, plan.id))
        try:
            created = await self._ask_cluster(obj, dry_run=False)
        except ConflictError:
            # The same submission came through another time: it is the one that counts.
            there = await core.cluster.find(plan.id)
            if there is None:
                raise
            return self._repeated(there, plan.request)
        return await self._created(
            judged, replace(answer, created=True), created | {"kind": obj["kind"]}, source_map
        )

    async def _created(
        self,
        judged: _Judged,
        answer: Submitted,
        obj: Mapping[str, Any],
        source_map: Mapping[str, Any] | None,
    ) -> Submitted:
        core, plan = self._core, judged.plan
        if plan.schedule is None:
            (await core.census.current((await core.catalog())[1])).add(
                plan.id, judged.holding, held=judged.limit.held
            )
        if source_map is not None:
            await core.cluster.give_map(source_map["metadata"]["name"], obj)
        if plan.kind is not RunKind.JOB:
            await core.cluster.give_policy(plan.id, obj)
        await core.audit("submitted", answer.record, actor=plan.user)
        return replace(answer, released=await self._release(plan))

    async def _inline(self, plan: Plan) -> bytes | None:
        """Give the archive where it is small enough to travel with the run, else nothing."""
        source = plan.request.source
        if not isinstance(source, Snapshot):
            return None
        path = places.snapshot_path(plan.user, source.sha256)
        size = await self._core.store.size(path)
        if size is None:
            raise RunRefusedError(RefusalReason.SOURCE_MISSING, "The source is gone.", field="source")
        return await self._core.store.get(path) if size <= self._core.settings.bounds.inline_size else None

    async def _ask_cluster(self, obj: Mapping[str, Any], *, dry_run: bool) -> dict[str, Any]:
        """Create the object, or have it judged; what the API server refuses is told in plain words."""
        try:
            return await self._core.cluster.create(obj, dry_run=dry_run)
        except ConflictError:
            raise
        except InvalidError as error:
            if obj["kind"] == "CronJob" and ("schedule" in error.what or "timeZone" in error.what):
                raise RunRefusedError(
                    RefusalReason.BAD_SCHEDULE,
                    f"The schedule is not valid: {error.what[:300]}",
                    field="schedule",
                ) from error
            raise _told(error) from error
        except KubeError as error:
            raise _told(error) from error

    async def _release(self, plan: Plan) -> bool:
        """Stop the server that handed off; a hub that does not answer costs only that, the run is there."""
        if not plan.request.release or plan.request.server is None:
            return False
        try:
            await self._core.hub.stop_server(plan.user, plan.request.server)
        except HubError as error:
            log.warning("server not released: run=%s error=%s", plan.id, error)
            return False
        return True


_THERE: Final = Forecast(when=When.UNKNOWN, text="This run was submitted before.")


def _check_same(known: str, request: RunRequest) -> None:
    if known != request_hash(request.model_dump(mode="json", exclude={"key"})):
        raise RunRefusedError(
            RefusalReason.KEY_REUSED,
            "Another run was submitted under this key.",
            field="key",
            help="Use a new key for another run.",
        )


def _hold(obj: dict[str, Any], *, held: bool) -> None:
    """Gate a run that a limit holds back; those of a schedule are always gated, for they come later."""
    if obj["kind"] == "CronJob":
        obj["spec"]["jobTemplate"]["metadata"]["annotations"] |= {GATE_ANNOTATION: GATE}
    elif held:
        obj["metadata"]["annotations"] |= {GATE_ANNOTATION: GATE}


def _home(plan: Plan, catalog: Catalog, asker: Asker) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Give volume and mount of the home as the source; refuse where it cannot be mounted."""
    home = plan.workspace.storage.home
    reachable = home is not None and home.claim is not None and home.claim in catalog.jobs.claims
    verdict = judge_home(
        home.access_mode if home else "ReadWriteOnce", running=bool(asker.servers), reachable=reachable
    )
    if not verdict.mount:
        raise RunRefusedError(RefusalReason.HOME_NOT_MOUNTABLE, verdict.text, field="source")
    volumes, mounts = build_volumes(plan.workspace, UserFacts(name=plan.user, team=plan.team), labels={})
    for volume, mount in zip(volumes, mounts, strict=True):
        if volume["name"] == "workspace-home":
            return volume, mount
    return None


def _told(error: KubeError) -> RunRefusedError:
    """Say in the words of the spawn page why the API server created nothing."""
    found = explain_refusal(Answer(code=error.status or 0, message=error.what))
    log.warning("run not created: error=%s", error)
    status = 503 if found.retry else 409
    return RunRefusedError(found.reason.value, of_run(found.text), help=found.detail[:500], status=status)
