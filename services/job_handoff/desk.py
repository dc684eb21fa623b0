"""Taking in a run: judge it, have the cluster judge it, create it once.

Shell: talks to hub, cluster and store.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hub_ext.catalog.model import RunKind
from hub_ext.cluster.times import read_time
from hub_ext.errors import HubError, KubeError
from hub_ext.quota.refusals import Answer
from hub_ext.quota.refusals import explain as explain_refusal
from services.kube import ConflictError, InvalidError

from . import places
from .core import Core, read_runner
from .ids import ANNOTATION_HASH, Claims, request_hash, run_id, token_for
from .judge import Judge, Judged
from .limits import GATE, GATE_ANNOTATION
from .manifest.build import build_run, build_runner_map, build_source_map
from .manifest.place import build_run_policy
from .manifest.site import Site
from .model import RunRequest, Snapshot, read_request
from .people import Asker, ask_hub
from .plan import Plan
from .queue import Forecast, When
from .record import Record
from .schedules import coming
from .seen import record_from
from .store import StoreError, refusal
from .submitted import Submitted
from .texts import of_run
from .verdicts import RefusalReason, RunRefusedError

log = logging.getLogger(__name__)


class Desk:
    """Where runs are handed in."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._locks: dict[str, asyncio.Lock] = {}
        self._runner = build_runner_map(core.settings.namespace, read_runner())
        self._judge = Judge(core)

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
            # Whoever sends it again may not have heard that it was done, or it was not done to its end.
            released = not dry_run and await self._release(asker, found.record, request)
            return replace(found, released=released)
        judged = await self._judge.judge(asker, request, run)
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

    # Creating

    async def _create(self, judged: Judged, *, dry_run: bool) -> Submitted:
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
        answer = Submitted(
            record=record,
            created=False,
            forecast=judged.forecast,
            notices=plan.notices,
            coming=coming(obj, core.now()) if plan.schedule is not None else None,
        )
        if dry_run:
            await self._ask_cluster(obj, dry_run=True)
            return answer
        beside = [source_map] if source_map is not None else []
        if plan.kind is not RunKind.JOB:
            beside.append(build_run_policy(core.settings, plan.id))
        for one in (self._runner, *beside):
            await core.cluster.ensure(one)
        try:
            created = await self._ask_cluster(obj, dry_run=False)
        except ConflictError:
            # The same submission came through another time: it is the one that counts.
            there = await core.cluster.find(plan.id)
            if there is None:
                raise
            return self._repeated(there, plan.request)
        return await self._created(
            judged, replace(answer, created=True), created | {"kind": obj["kind"]}, beside
        )

    async def _created(
        self,
        judged: Judged,
        answer: Submitted,
        obj: Mapping[str, Any],
        beside: Sequence[Mapping[str, Any]],
    ) -> Submitted:
        """Finish what is there already: nothing that fails now may look as if there were no run."""
        core, plan = self._core, judged.plan
        try:
            await self._count(judged)
            for one in beside:
                await core.cluster.give(one["kind"], one["metadata"]["name"], obj)
        except KubeError as error:
            log.warning(
                "run is created, and the rest is left to cleaning up: run=%s error=%s", plan.id, error
            )
        await core.audit("submitted", answer.record, actor=plan.user)
        return replace(answer, released=await self._release(judged.asker, answer.record, plan.request))

    async def _count(self, judged: Judged) -> None:
        """Let the run take its room at once."""
        core, plan = self._core, judged.plan
        count = await core.census.current((await core.catalog())[1])
        if plan.schedule is None:
            count.add(plan.id, judged.holding, held=judged.limit.held)
        else:
            count.owners[plan.id] = plan.user

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
            if obj["kind"] == "CronJob" and _OF_SCHEDULE.search(error.what):
                raise RunRefusedError(
                    RefusalReason.BAD_SCHEDULE,
                    f"The schedule is not valid: {error.what[:300]}",
                    field="schedule",
                ) from error
            raise _told(error) from error
        except KubeError as error:
            raise _told(error) from error

    async def _release(self, asker: Asker, record: Record, request: RunRequest) -> bool:
        """Stop the server that handed off, and none that was started since.

        A hub that does not answer costs only that: the run is there.
        """
        server = asker.servers.get(request.server) if request.server is not None else None
        submitted = read_time(record.submitted)
        if not request.release or server is None:
            return False
        if server.started and submitted and server.started > submitted:
            return False
        try:
            await self._core.hub.stop_server(asker.person.name, server.name)
        except HubError as error:
            log.warning("server not released: run=%s error=%s", record.id, error)
            return False
        return True


_OF_SCHEDULE: Final = re.compile(r"(?:^|[\s\[])spec\.(?:schedule|timeZone): ")
"""As the API server names the field of a fault."""
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


def _told(error: KubeError) -> RunRefusedError:
    """Say in the words of the spawn page why the API server created nothing."""
    found = explain_refusal(Answer(code=error.status or 0, message=error.what))
    log.warning("run not created: error=%s", error)
    status = 503 if found.retry else 409
    # Nobody submits a run again but its owner; with the same key that makes no second one.
    text = of_run(found.text).replace("It is tried again by itself.", "Try again in a minute.")
    return RunRefusedError(found.reason.value, text, help=found.detail[:500], status=status)
