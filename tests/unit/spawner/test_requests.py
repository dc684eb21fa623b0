"""What is asked of the API server, and what becomes of its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientConnectionError
from tornado import web

from hub_ext.patience import Patience
from hub_ext.spawner import WorkspaceSpawner
from tests.unit.spawner.world import Answer, pod_of


@pytest.mark.parametrize(("asked", "given"), [(0, 1), (1, 1), (30, 30)])
async def test_a_pod_is_given_time_to_let_go_of_its_device(
    make: Callable[..., WorkspaceSpawner], asked: int, given: int
) -> None:
    spawner = make()
    await spawner._make_delete_pod_request("p", SimpleNamespace(grace_period_seconds=asked), asked, 3)
    assert spawner.api.grace == [given]


@pytest.fixture
def patient(make: Callable[..., WorkspaceSpawner]) -> WorkspaceSpawner:
    """A spawner in the middle of a start."""
    spawner = make()
    spawner._patience = Patience(own=60, queue=0)
    return spawner


POD = {"metadata": {"name": "jupyter-ada"}}
CONFLICT = {"reason": "Conflict", "message": 'Operation cannot be fulfilled on resourcequotas "q": modified'}
TAKEN = {"reason": "AlreadyExists", "message": 'pods "jupyter-ada" already exists'}


@pytest.mark.parametrize(("answer", "stops"), [(CONFLICT, 0), (TAKEN, 1)])
async def test_only_a_pod_of_the_same_name_is_stopped(
    patient: WorkspaceSpawner,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, str],
    stops: int,
) -> None:
    stopped: list[bool] = []

    async def stop(_self: Any, now: bool = False) -> None:
        stopped.append(now)

    monkeypatch.setattr(WorkspaceSpawner, "stop", stop)
    patient.api.answers = [Answer(409, **answer)]
    await patient._create_pod(POD, 3)
    assert (len(patient.api.created), len(stopped)) == (2, stops)


@pytest.mark.parametrize("error", [TimeoutError(), ClientConnectionError("gone"), ConnectionResetError()])
async def test_an_api_server_that_is_away_for_a_moment_is_asked_again(
    patient: WorkspaceSpawner, error: Exception
) -> None:
    patient.api.answers = [error]
    await patient._create_pod(POD, 3)
    assert len(patient.api.created) == 2


async def test_an_api_server_that_stays_away_is_named_without_a_promise(patient: WorkspaceSpawner) -> None:
    patient._patience = Patience(own=0, queue=0)
    patient.api.answers = [TimeoutError()] * 9
    with pytest.raises(web.HTTPError) as caught:
        await patient._create_pod(POD, 3)
    assert caught.value.status_code == 503
    assert caught.value.jupyterhub_message == (  # type: ignore[attr-defined]
        "The cluster does not answer at the moment. It did not get better in time; please try again later."
    )


OVER = {
    "reason": "Forbidden",
    "message": 'pods "jupyter-ada" is forbidden: exceeded quota: q, requested: pods=1, used: pods=4, '
    "limited: pods=4",
}
NO_DRY_RUN = {"reason": "BadRequest", "message": 'admission webhook "a.b" does not support dry run'}


async def test_a_user_whose_pod_would_be_refused_gets_no_claim(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    await pod_of(spawner, {"profile": "cpu"})
    spawner.api.answers = [Answer(403, **OVER)]
    with pytest.raises(web.HTTPError) as caught:
        await spawner._make_create_pvc_request(spawner.get_pvc_manifest(), 3)
    assert caught.value.status_code == 403
    assert (len(spawner.api.tried), spawner.api.claims) == (1, [])


@pytest.mark.parametrize(
    "answer", [Answer(201), Answer(400, **NO_DRY_RUN), Answer(409, **CONFLICT), TimeoutError()]
)
async def test_what_is_not_refused_for_certain_gets_its_claim(
    make: Callable[..., WorkspaceSpawner], answer: Answer | Exception
) -> None:
    spawner = make()
    await pod_of(spawner, {"profile": "cpu"})
    spawner.api.answers = [answer]
    assert await spawner._make_create_pvc_request(spawner.get_pvc_manifest(), 3)
    assert [claim.metadata.name for claim in spawner.api.claims] == ["claim-ada"]
    assert spawner.api.created == []


async def test_the_log_of_a_refusal_has_neither_token_nor_manifest(
    make: Callable[..., WorkspaceSpawner], caplog: pytest.LogCaptureFixture
) -> None:
    spawner = make()
    spawner._patience = Patience(own=60, queue=0)
    pod = await pod_of(spawner, {"profile": "cpu"})
    assert "secret-token" in json.dumps(pod)
    spawner.api.answers = [Answer(403, reason="Forbidden", message="pods is forbidden: no\nway")]
    with pytest.raises(web.HTTPError):
        await spawner._create_pod(pod, 3)
    assert "secret-token" not in caplog.text
    assert "containers" not in caplog.text
    assert all("\n" not in record.getMessage() for record in caplog.records)
