"""What the spawner does between the hub and the API server, without either."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientConnectionError
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.client.rest import ApiException
from tornado import web
from traitlets import TraitError
from traitlets.config import Application, Config

from hub_ext.cluster.shared import shared_metrics
from hub_ext.config import check_settings
from hub_ext.hub_errors import LinkOnly, hub_error
from hub_ext.names import is_dns_label, is_label_value
from hub_ext.patience import MARGIN, Patience
from hub_ext.selection import Refusal
from hub_ext.spawner import WorkspaceSpawner
from hub_ext.spawner_objects import to_object
from tests.fakes.workspaces import TEXT


def status(code: int, **fields: Any) -> ApiException:
    """Make the exception of the client for an answer of the API server."""
    error = ApiException(status=code, reason="")
    error.body = json.dumps({"kind": "Status", **fields})
    return error


class Answer:
    """What the client gives for a request whose answer it shall not read."""

    def __init__(self, code: int, **fields: Any) -> None:
        self.status = code
        self._body = json.dumps({"kind": "Status", **fields}).encode()

    async def read(self) -> bytes:
        return self._body

    def release(self) -> None:
        """Keep nothing."""


class Api:
    """Answers what a test lays out, and keeps what it was asked."""

    def __init__(self, client: Any) -> None:
        self.api_client = client
        self.answers: list[Answer | Exception] = []
        self.claim: Any = None
        self.silent = 0
        self.homes: list[Any] = []
        self.claims: list[Any] = []
        self.created: list[Any] = []
        self.tried: list[Any] = []
        self.grace: list[int] = []

    async def create_namespaced_pod(
        self, _namespace: str, pod: Any, *, _preload_content: bool, dry_run: str = ""
    ) -> Answer:
        assert not _preload_content
        (self.tried if dry_run else self.created).append(pod)
        answer = self.answers.pop(0) if self.answers else Answer(201)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def create_namespaced_persistent_volume_claim(self, *, namespace: str, body: Any) -> None:
        assert namespace
        self.claims.append(body)

    async def delete_namespaced_pod(self, *, grace_period_seconds: int, body: Any, **_: Any) -> None:
        assert body.grace_period_seconds == grace_period_seconds
        self.grace.append(grace_period_seconds)

    async def read_namespaced_persistent_volume_claim(self, name: str, _namespace: str) -> Any:
        if self.silent:
            self.silent -= 1
            raise ClientConnectionError("gone")
        named = [one for one in self.homes if one.metadata.name == name]
        if self.claim is None and not named:
            raise status(404, reason="NotFound")
        return self.claim or named[0]

    async def list_namespaced_persistent_volume_claim(self, _namespace: str, *, label_selector: str) -> Any:
        assert label_selector == "component=singleuser-storage"
        return SimpleNamespace(items=self.homes)


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
    spawner = make(start_timeout=77, queue_timeout=1000, catalog=json.loads(json.dumps(_with_timeout())))
    for profile, own in (("cpu", 600), ("turns", 77), ("nope", 77)):
        spawner.user_options = {"profile": profile}
        start = spawner.start()
        # The hub reads it here, and gives up without a reason when it is over.
        assert spawner.start_timeout == own + 1000 + MARGIN
        start.cancel()
        with suppress(asyncio.CancelledError):
            await start
        assert spawner._patience == Patience(own=own, queue=1000)


async def test_a_stop_waits_as_long_as_the_hub_is_configured_to(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    spawner = make(start_timeout=77)
    spawner.user_options = {"profile": "nope"}
    with pytest.raises(web.HTTPError):
        await spawner.start()
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
    make: Callable[..., WorkspaceSpawner], deleted: list[str]
) -> None:
    default, named = make(), make("lab", pvc_name_template="claim-{user_server}")
    await pod_of(named, {"profile": "cpu"})
    await named.delete_forever()
    assert deleted == []
    default.api.homes = [claim("claim-ada", "ada")]
    await default.delete_forever()
    assert deleted == ["claim-ada"]


def claim(name: str, user: str, server: str = "") -> Any:
    notes = {"hub.jupyter.org/username": user} | ({"hub.jupyter.org/servername": server} if server else {})
    return SimpleNamespace(metadata=SimpleNamespace(name=name, annotations=notes))


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    async def delete(_self: Any, name: str, _timeout: int) -> bool:
        names.append(name)
        return True

    monkeypatch.setattr(WorkspaceSpawner, "_make_delete_pvc_request", delete)
    return names


@pytest.mark.parametrize(
    ("claims", "gone"),
    [
        ([claim("claim-ada", "ada"), claim("claim-a-64a", "ada")], ["claim-ada"]),
        ([claim("claim-a-64a", "ada"), claim("claim-ada-lab", "ada", "lab")], ["claim-a-64a"]),
        ([claim("claim-a-64a", "ada"), claim("claim-64", "ada")], []),
        ([claim("claim-ada-x", "ada-x"), claim("claim-adam", "adam")], []),
        ([claim("claim-ada", "mallory"), claim("claim-a-64a", "ada")], []),
    ],
    ids=["by its name", "by whose it is", "not certain", "only alike", "somebody else's"],
)
async def test_with_its_user_goes_the_home_that_is_certainly_theirs(
    make: Callable[..., WorkspaceSpawner], deleted: list[str], claims: list[Any], gone: list[str]
) -> None:
    spawner = make()
    spawner.api.homes = claims
    await spawner.delete_forever()
    assert deleted == gone


async def test_a_home_is_kept_where_the_hub_keeps_homes(
    make: Callable[..., WorkspaceSpawner], deleted: list[str]
) -> None:
    spawner = make(delete_pvc=False)
    spawner.api.homes = [claim("claim-ada", "ada")]
    await spawner.delete_forever()
    assert deleted == []


@pytest.mark.parametrize(
    ("state", "there", "used"),
    [
        ({"pod_name": "jupyter-a"}, ["claim-a-40b-2ec"], "claim-a-40b-2ec"),
        ({"pod_name": "jupyter-a"}, ["claim-a-40b-2ec", "safe"], "safe"),
        ({"pod_name": "jupyter-a"}, [], "safe"),
        ({}, ["claim-a-40b-2ec"], "safe"),
    ],
    ids=["an older hub's", "both", "none", "a new user"],
)
async def test_a_named_server_mounts_the_home_that_an_older_hub_named(
    make: Callable[..., WorkspaceSpawner], state: dict[str, str], there: list[str], used: str
) -> None:
    main = make()
    main.user.name = "a@b.c"
    main.load_state(state)
    main.pvc_name = main._expand_user_properties(main.pvc_name_template)
    named = make("lab")
    names = {"safe": main.pvc_name}
    named.api.homes = main.api.homes = [claim(names.get(name, name), "a@b.c") for name in there]
    pod = await pod_of(named, {"profile": "cpu"})
    mounted = [
        one["persistentVolumeClaim"] for one in pod["spec"]["volumes"] if "persistentVolumeClaim" in one
    ]
    assert [one["claimName"] for one in mounted] == [names.get(used, used)]


@pytest.mark.parametrize("key", ["hub.jupyter.org/username", "gpu-workspaces.jupyter.org/user"])
async def test_a_home_of_somebody_else_is_not_mounted(
    make: Callable[..., WorkspaceSpawner], key: str
) -> None:
    spawner = make()
    spawner.api.claim = SimpleNamespace(metadata=SimpleNamespace(annotations={key: "mallory"}))
    with pytest.raises(web.HTTPError) as caught:
        await pod_of(spawner, {"profile": "cpu"})
    assert caught.value.status_code == 403


async def test_whose_the_home_is_is_asked_until_there_is_an_answer(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    spawner = make()
    spawner.api.silent = 2
    await pod_of(spawner, {"profile": "cpu"})
    spawner.api.silent = 99
    spawner._patience = Patience(own=0.1, queue=0)
    with pytest.raises(web.HTTPError) as caught:
        await pod_of(spawner, {"profile": "cpu"})
    assert caught.value.status_code == 503


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


def test_users_with_namespaces_of_their_own_are_refused(make: Callable[..., WorkspaceSpawner]) -> None:
    with pytest.raises(
        TraitError, match=r"enable_user_namespaces is not supported.*teams\.<team>\.namespace"
    ):
        make(enable_user_namespaces=True)


@pytest.mark.parametrize("section", ["KubeSpawner", "WorkspaceSpawner"])
def test_a_hub_whose_users_have_namespaces_of_their_own_does_not_start(
    monkeypatch: pytest.MonkeyPatch, section: str
) -> None:
    config = Config({section: {"enable_user_namespaces": True}})
    monkeypatch.setattr(Application, "_instance", Application(config=config))
    with pytest.raises(SystemExit, match=rf"does not start: {section}\.enable_user_namespaces"):
        check_settings()


async def test_a_hook_of_the_admin_gets_the_pod_as_it_expects_it(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    plain, hooked = make(), make(modify_pod_hook=lambda _spawner, pod: pod)
    for spawner in (plain, hooked):
        spawner.user_options = {"profile": "cpu"}
        await spawner.load_user_options()
    pod = await hooked.get_pod_manifest()
    assert pod.spec.containers[0].name == "notebook"
    assert to_object(hooked.api.api_client, pod) == await plain.get_pod_manifest()


async def test_refusals_are_counted_under_names_of_the_catalog_only(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    counter = shared_metrics().refusals

    def count(profile: str, reason: str) -> float:
        return float(counter.labels(profile, reason)._value.get())

    before = [count("full", "unknown-choice"), count("", "unknown-profile")]
    for options in ({"profile": "full", "nope": "x"}, {"profile": "nope"}):
        with pytest.raises(web.HTTPError):
            await pod_of(make(), options)
    assert [count("full", "unknown-choice"), count("", "unknown-profile")] == [one + 1 for one in before]


async def test_a_pod_is_made_in_an_attempt_only(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    spawner.user_options = {"profile": "cpu"}
    await spawner.load_user_options()
    with pytest.raises(RuntimeError, match="has reserved room"):
        await spawner._make_create_pod_request(await spawner.get_pod_manifest(), 3)
    assert spawner.api.created == []


OLD_NAMES = ["gpu", "GPU", "my.server", "a--b", "1gpu", "gpu-", "x" * 31, "train-2026"]
PAIRS = [
    ("ab", ""),
    ("a", "b"),
    ("a", "b-c"),
    ("a-b", "c"),
    ("a@x.org", ""),
    ("a-x-org", ""),
    ("A", ""),
    ("a", ""),
]


@pytest.mark.parametrize(
    "servers", [[("ada", name) for name in OLD_NAMES], PAIRS], ids=["names of an older hub", "alike"]
)
async def test_no_two_servers_share_a_name_and_all_names_are_valid(
    make: Callable[..., WorkspaceSpawner], servers: list[tuple[str, str]]
) -> None:
    pods, labels = [], []
    for user, server in servers:
        main = make()
        main.user.name = user
        spawner = main if not server else make(server)
        for one in (main, spawner):
            one.pod_name = one._expand_user_properties(one.pod_name_template)
        pod = await pod_of(spawner, {"profile": "cpu"})
        pods.append(pod["metadata"]["name"])
        labels.append(pod["metadata"]["labels"])
        assert pod["metadata"]["annotations"]["hub.jupyter.org/username"] == user
    assert len(set(pods)) == len(servers)
    assert all(is_dns_label(name) for name in pods)
    assert all(is_label_value(value) for found in labels for value in found.values())
    users = {found["gpu-workspaces.jupyter.org/user"] for found in labels}
    assert len(users) == len({user for user, _ in servers})
