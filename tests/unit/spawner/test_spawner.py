"""What the spawner does between the hub and the API server, without either."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.client.rest import ApiException
from tornado import web
from traitlets import TraitError

from hub_ext.hub_errors import LinkOnly, hub_error
from hub_ext.selection import Refusal
from hub_ext.spawner import WorkspaceSpawner
from hub_ext.spawner_objects import to_object
from tests.fakes.workspaces import TEXT


def status(code: int, **fields: Any) -> ApiException:
    """Make the exception of the client for an answer of the API server."""
    error = ApiException(status=code, reason="")
    error.body = json.dumps({"kind": "Status", **fields})
    return error


class Api:
    """Answers what a test lays out, and keeps what it was asked."""

    def __init__(self, client: Any) -> None:
        self.api_client = client
        self.answers: list[ApiException | None] = []
        self.claim: Any = None
        self.created: list[Any] = []
        self.grace: list[int] = []

    async def create_namespaced_pod(self, _namespace: str, pod: Any) -> None:
        self.created.append(pod)
        if self.answers and (error := self.answers.pop(0)):
            raise error

    async def delete_namespaced_pod(self, *, grace_period_seconds: int, body: Any, **_: Any) -> None:
        assert body.grace_period_seconds == grace_period_seconds
        self.grace.append(grace_period_seconds)

    async def read_namespaced_persistent_volume_claim(self, _name: str, _namespace: str) -> Any:
        if self.claim is None:
            raise status(404, reason="NotFound")
        return self.claim


@pytest.fixture
async def make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., WorkspaceSpawner]]:
    """Make spawners of one user, as the hub does."""
    client = ApiClient()
    monkeypatch.setattr("kubespawner.spawner.load_config", lambda **_: None)
    monkeypatch.setattr("kubespawner.spawner.shared_client", lambda _: Api(client))
    catalog = tmp_path / "catalog.yaml"
    catalog.write_text(TEXT)
    user = SimpleNamespace(
        name="ada", id=1, url="/user/ada", groups=[SimpleNamespace(name="nlp")], escaped_name="ada"
    )
    hub = SimpleNamespace(public_host="", url="http://hub", base_url="/hub/", api_url="http://hub/api")

    def make(name: str = "", **traits: Any) -> WorkspaceSpawner:
        spawner = WorkspaceSpawner(
            _mock=True,
            user=user,
            hub=hub,
            orm_spawner=SimpleNamespace(name=name, user_options={}, server=None),
            oauth_client_id="x",
            **{"catalog": str(catalog), **traits},
        )
        spawner.api_token = "secret-token"
        if not name:
            user.spawner = spawner
        return spawner

    yield make
    await client.close()


async def pod_of(spawner: WorkspaceSpawner, options: Mapping[str, Any]) -> dict[str, Any]:
    """Render the pod of one attempt."""
    spawner.user_options = dict(options)
    spawner._set_start_timeout(options)
    await spawner.load_user_options()
    return to_object(spawner.api.api_client, await spawner.get_pod_manifest())


async def test_an_attempt_leaves_nothing_behind(make: Callable[..., WorkspaceSpawner]) -> None:
    baseline = {"node_selector": {"users": "yes"}, "environment": {"A": "{username}"}}
    fresh = await pod_of(make(**baseline), {"profile": "cpu"})
    spawner = make(**baseline)
    assert "nvidia.com/gpu" in json.dumps(await pod_of(spawner, {"profile": "full", "cards": "two"}))
    assert await pod_of(spawner, {"profile": "cpu"}) == fresh
    assert await pod_of(spawner, {"profile": "cpu"}) == fresh
    assert spawner.node_selector == {"users": "yes"}


async def test_a_refused_attempt_has_nothing_to_start(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    await pod_of(spawner, {"profile": "full"})
    spawner.user_options = {"profile": "nope"}
    with pytest.raises(web.HTTPError):
        await spawner.load_user_options()
    with pytest.raises(RuntimeError):
        await spawner.get_pod_manifest()
    assert spawner.user_options == spawner.orm_spawner.user_options
    assert spawner.user_options["profile"] == "full"


async def test_the_pod_loses_nothing_that_the_admin_configured(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make(
        extra_pod_config={"resourceClaims": [{"name": "c", "resourceClaimName": "c"}], "hostAliases": []},
        container_security_context={"appArmorProfile": {"type": "RuntimeDefault"}},
        init_containers=[{"name": "i", "image": "i", "restartPolicy": "Always"}],
        extra_annotations={"note": "a"},
    )
    pod = await pod_of(spawner, {"profile": "cpu"})
    (notebook,) = pod["spec"]["containers"]
    assert pod["spec"]["resourceClaims"] == [{"name": "c", "resourceClaimName": "c"}]
    assert notebook["securityContext"]["appArmorProfile"] == {"type": "RuntimeDefault"}
    assert pod["spec"]["initContainers"][0]["restartPolicy"] == "Always"
    assert pod["metadata"]["annotations"]["note"] == "a"


async def test_a_profile_s_start_timeout_counts_for_it_alone(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make(start_timeout=77, catalog=json.loads(json.dumps(_with_timeout())))
    await pod_of(spawner, {"profile": "cpu"})
    assert spawner.start_timeout == 600
    await pod_of(spawner, {"profile": "turns"})
    assert spawner.start_timeout == 77


def _with_timeout() -> dict[str, Any]:
    import yaml

    data: dict[str, Any] = yaml.safe_load(TEXT)
    data["profiles"][0]["session"] = {"startTimeout": "10m"}
    del next(p for p in data["profiles"] if "until" in p)["until"]
    return data


async def test_the_home_is_as_the_profile_says_and_the_user_s_in_all_servers(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    default, named = make(storage_class="slow", storage_capacity="1Gi"), make("lab", storage_class="slow")
    for spawner in (default, named):
        await pod_of(spawner, {"profile": "cpu"})
        assert spawner.storage_pvc_ensure
        claim = to_object(spawner.api.api_client, spawner.get_pvc_manifest())
        assert claim["metadata"]["name"] == "claim-ada"
        assert claim["spec"]["resources"]["requests"] == {"storage": "10Gi"}
        assert "slow" not in json.dumps(claim)
        assert claim["metadata"]["annotations"]["hub.jupyter.org/username"] == "ada"


async def test_a_named_server_takes_no_shared_home_with_it(
    make: Callable[..., WorkspaceSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []

    async def delete(_self: Any, name: str, _timeout: int) -> bool:
        deleted.append(name)
        return True

    monkeypatch.setattr(WorkspaceSpawner, "_make_delete_pvc_request", delete)
    default, named = make(), make("lab", pvc_name_template="claim-{user_server}")
    await pod_of(named, {"profile": "cpu"})
    await named.delete_forever()
    assert deleted == []
    await default.delete_forever()
    assert deleted == ["claim-ada"]


@pytest.mark.parametrize("key", ["hub.jupyter.org/username", "gpu-workspaces.jupyter.org/user"])
async def test_a_home_of_somebody_else_is_not_mounted(
    make: Callable[..., WorkspaceSpawner], key: str
) -> None:
    spawner = make()
    spawner.api.claim = SimpleNamespace(metadata=SimpleNamespace(annotations={key: "mallory"}))
    with pytest.raises(web.HTTPError) as caught:
        await pod_of(spawner, {"profile": "cpu"})
    assert caught.value.status_code == 403


@pytest.mark.parametrize(("asked", "given"), [(0, 1), (1, 1), (30, 30)])
async def test_a_pod_is_given_time_to_let_go_of_its_device(
    make: Callable[..., WorkspaceSpawner], asked: int, given: int
) -> None:
    spawner = make()
    await spawner._make_delete_pod_request("p", SimpleNamespace(grace_period_seconds=asked), asked, 3)
    assert spawner.api.grace == [given]


CONFLICT = {"reason": "Conflict", "message": 'Operation cannot be fulfilled on resourcequotas "q": modified'}
TAKEN = {"reason": "AlreadyExists", "message": 'pods "jupyter-ada" already exists'}


@pytest.mark.parametrize(("answer", "stops"), [(CONFLICT, 0), (TAKEN, 1)])
async def test_only_a_pod_of_the_same_name_is_stopped(
    make: Callable[..., WorkspaceSpawner],
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, str],
    stops: int,
) -> None:
    stopped: list[bool] = []

    async def stop(_self: Any, now: bool = False) -> None:
        stopped.append(now)

    monkeypatch.setattr(WorkspaceSpawner, "stop", stop)
    spawner = make()
    spawner.api.answers = [status(409, **answer), None]
    pod = SimpleNamespace(metadata=SimpleNamespace(name="jupyter-ada"))
    await spawner._create_pod(pod, 3)
    assert (len(spawner.api.created), len(stopped)) == (2, stops)


async def test_the_log_of_a_refusal_has_neither_token_nor_manifest(
    make: Callable[..., WorkspaceSpawner], caplog: pytest.LogCaptureFixture
) -> None:
    spawner = make()
    spawner.user_options = {"profile": "cpu"}
    await spawner.load_user_options()
    pod = await spawner.get_pod_manifest()
    assert "secret-token" in pod.to_str()
    spawner.api.answers = [status(403, reason="Forbidden", message="pods is forbidden: no\nway")]
    with pytest.raises(web.HTTPError):
        await spawner._create_pod(pod, 3)
    assert "secret-token" not in caplog.text
    assert "containers" not in caplog.text
    assert all("\n" not in record.getMessage() for record in caplog.records)


async def test_a_link_never_becomes_options(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    with pytest.raises(LinkOnly):
        spawner.options_from_query({"profile": ["full"]})
    assert not spawner.user_options


def test_a_refusal_is_taken_off_the_count_that_ends_an_older_hub() -> None:
    settings = {"failure_count": 2}
    error = hub_error(Refusal(reason="retired", text="100 % gone", status=400), settings)
    assert settings["failure_count"] in {1, 2}
    assert (error.status_code, error.jupyterhub_message) == (400, "100 % gone")  # type: ignore[attr-defined]
    assert str(error)


async def test_all_spawners_of_a_hub_share_one_view_of_the_cluster(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    assert make()._cluster is make("lab")._cluster is not None


async def test_users_with_namespaces_of_their_own_are_left_to_kubespawner(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    spawner = make(enable_user_namespaces=True)
    assert spawner._cluster is None
    assert await spawner._look("") is None


async def test_limits_for_all_together_are_checked_when_they_are_read(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    assert make(cluster_quota={"gpuEquivalents": 4.5, "servers": 9})._cluster is not None
    with pytest.raises(TraitError, match="gpuEqivalents"):
        make(cluster_quota={"gpuEqivalents": 4})


async def test_a_pod_is_made_in_an_attempt_only(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    spawner.user_options = {"profile": "cpu"}
    await spawner.load_user_options()
    with pytest.raises(RuntimeError):
        await spawner._make_create_pod_request(await spawner.get_pod_manifest(), 3)
    assert spawner.api.created == []
