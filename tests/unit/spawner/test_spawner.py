"""What the spawner does between the hub and the API server, without either."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tornado import web
from traitlets import TraitError
from traitlets.config import Application, Config

from hub_ext.cluster.shared import shared_metrics
from hub_ext.config import check_settings
from hub_ext.hub_errors import LinkOnly, hub_error
from hub_ext.patience import MARGIN, Patience
from hub_ext.selection import Refusal
from hub_ext.spawner import WorkspaceSpawner
from hub_ext.spawner_objects import to_object
from tests.fakes.workspaces import TEXT
from tests.unit.spawner.world import pod_of


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
