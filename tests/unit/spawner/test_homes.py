"""A home is its user's in all servers, under whatever name, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientConnectionError
from tornado import web

from hub_ext.attempt import Attempt
from hub_ext.patience import Patience
from hub_ext.selection import Selection, select
from hub_ext.spawner import WorkspaceSpawner
from hub_ext.spawner_home import HomeSpawner
from hub_ext.spawner_objects import to_object
from tests.fakes.workspaces import TODAY
from tests.unit.spawner.world import pod_of


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
    own = "claim-{user_server}-{servername}"  # KubeSpawner 7.1 looks for the first in it, 7.0 for the second
    default, named = make(), make("lab", pvc_name_template=own)
    await pod_of(named, {"profile": "cpu"})
    await named.delete_forever()
    assert deleted == []
    default.api.homes = [claim("claim-ada", "ada")]
    await default.delete_forever()
    assert deleted == ["claim-ada"]


def claim(name: str, user: str, server: str = "", *, slug: str = "", going: str | None = None) -> Any:
    """Make a claim as KubeSpawner does; `slug` is its label, where that is not the user's name."""
    notes = {"hub.jupyter.org/username": user} | ({"hub.jupyter.org/servername": server} if server else {})
    labels = {"component": "singleuser-storage", "hub.jupyter.org/username": slug or user}
    metadata = SimpleNamespace(name=name, annotations=notes, labels=labels, deletion_timestamp=going)
    return SimpleNamespace(metadata=metadata)


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


@pytest.mark.parametrize(
    ("claims", "gone"),
    [
        ([claim("claim-a-64a", "ada")], []),
        ([claim("claim-a-64a", "ada", "lab")], ["claim-a-64a"]),
        ([claim("claim-a-64a", "ada", "other")], []),
        ([claim("claim-a-64a", "mallory", "lab")], []),
    ],
    ids=["the user's home", "its own", "another server's", "somebody else's"],
)
async def test_a_named_server_takes_what_is_its_own_whatever_the_default_one_remembers(
    make: Callable[..., WorkspaceSpawner], deleted: list[str], claims: list[Any], gone: list[str]
) -> None:
    """After an upgrade a user's servers may remember an old name that the default one has not used yet."""
    own = "claim-{user_server}-{servername}"  # KubeSpawner 7.1 looks for the first in it, 7.0 for the second
    default, named = make(), make("lab", pvc_name_template=own)
    named.load_state({"pvc_name": "claim-a-64a"})
    assert default.pvc_name != named.pvc_name
    named.api.homes = claims
    await named.delete_forever()
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


HOME = "claim-a-40b-2ec"


@pytest.mark.parametrize("server", ["", "lab"])
@pytest.mark.parametrize(
    ("there", "used"),
    [
        ([claim(HOME, "a@b.c", slug="a-40b-2ec")], HOME),
        ([claim("restored", "a@b.c", slug="a-b-c---d648b243")], "restored"),
        ([claim(HOME, "a@b.c", slug="a-40b-2ec"), claim("claim-a-b-c---d648b243", "a@b.c")], ""),
        ([claim(HOME, "a@b.c", slug="a-40b-2ec"), claim("x", "a@b.c", "lab", slug="a-40b-2ec")], HOME),
        ([claim(HOME, "a@b.c", slug="a-40b-2ec", going="2026-11-30T12:00:00Z")], ""),
        ([claim(HOME, "a-40b-2ec", slug="a-40b-2ec")], ""),
        ([], ""),
    ],
    ids=["an older hub's", "any name", "today's name", "a server's too", "going", "only alike", "none"],
)
async def test_a_home_is_found_by_whose_it_is_where_the_database_was_lost(
    make: Callable[..., WorkspaceSpawner], server: str, there: list[Any], used: str
) -> None:
    main = make()
    main.user.name = "a@b.c"
    main.pvc_name = main._expand_user_properties(main.pvc_name_template)
    spawner = make(server) if server else main
    spawner.api.homes = main.api.homes = there
    await pod_of(spawner, {"profile": "cpu"})
    assert spawner.pvc_name == (used or "claim-a-b-c---d648b243")
    assert spawner._pvc_exists is bool(used)


async def test_a_new_user_s_home_is_asked_for_once_and_once_more_when_it_is_made(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    """What is asked at each first start is what many starts at once cost the hub."""
    spawner = make()
    for _ in range(2):  # a second attempt asks anew: meanwhile it may be there
        spawner.api.asked.clear()
        await pod_of(spawner, {"profile": "cpu"})
        by_name, by_owner = spawner.api.asked
        assert by_name == spawner.pvc_name
        assert by_owner.startswith("component=singleuser-storage,hub.jupyter.org/username in (")
        await spawner.get_pod_manifest()
        assert spawner.api.asked[2:] == [spawner.pvc_name], "somebody else may have been faster"


async def test_no_home_is_guessed_where_several_may_be_it(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    spawner.api.homes = [claim("old-1", "ada"), claim("old-2", "ada")]
    with pytest.raises(web.HTTPError) as caught:
        await pod_of(spawner, {"profile": "cpu"})
    assert caught.value.status_code == 409
    assert "old-1" not in str(caught.value.log_message), "names of claims are for the log"


async def test_a_home_that_is_remembered_is_not_looked_for(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    spawner.load_state({"pvc_name": "claim-of-old", "kubespawner_version": "7.0.0"})
    spawner.api.homes = [claim("claim-of-old", "ada"), claim("claim-ada", "ada")]
    await pod_of(spawner, {"profile": "cpu"})
    assert spawner.pvc_name == "claim-of-old"


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


# Zones ------------------------------------------------------------------------------------------------------


def volume_in(zone: str) -> dict[str, Any]:
    rule = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}}}


def bound(volume: str) -> Any:
    found = claim("claim-ada", "ada")
    found.spec = SimpleNamespace(volume_name=volume)
    return found


async def started(spawner: WorkspaceSpawner) -> None:
    """Do what a start does beside the pod."""
    await pod_of(spawner, {"profile": "cpu"})
    spawner._attempt = Attempt()
    spawner._attempt.created.set()
    await spawner._learn_home()
    spawner._attempt = None


def zones_on_page(spawner: WorkspaceSpawner, profile: str = "full") -> frozenset[str]:
    chosen = select(spawner._catalog, spawner._person, {"profile": profile}, today=TODAY)
    assert isinstance(chosen, Selection)
    return spawner._zones_of_home(chosen.workspace, spawner.namespace)


async def test_where_a_home_is_is_looked_up_once_and_remembered(
    make: Callable[..., WorkspaceSpawner],
) -> None:
    spawner = make()
    spawner.api.claim, spawner.api.volumes = bound("v1"), {"v1": volume_in("zone-c")}
    assert zones_on_page(spawner) == frozenset()
    await started(spawner)
    await started(spawner)
    assert spawner.api.looked == ["v1"]
    assert zones_on_page(spawner) == {"zone-c"}
    assert zones_on_page(make("lab")) == {"zone-c"}, "the home is the same in all servers"
    later = make()
    later.load_state(json.loads(json.dumps(spawner.get_state())))
    assert zones_on_page(later) == {"zone-c"}
    for other in ({}, {"home": {"zones": 1}}, {"home": ["of another version"]}):
        later.load_state(other)
        assert zones_on_page(later) == frozenset()


async def test_a_home_that_was_made_anew_is_looked_at_again(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    spawner.api.volumes = {"v1": volume_in("zone-c"), "v2": {"spec": {}}}
    for volume, zones in (("v1", {"zone-c"}), ("v2", set()), ("v1", {"zone-c"})):
        spawner.api.claim = bound(volume)
        await started(spawner)
        assert zones_on_page(spawner) == zones
    assert spawner.api.looked == ["v1", "v2", "v1"]


async def test_without_the_right_nobody_asks_again_and_nothing_is_said(
    make: Callable[..., WorkspaceSpawner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HomeSpawner, "_may_read_volumes", True)
    spawner = make()
    spawner.api.claim = bound("v1")
    await started(spawner)
    await started(spawner)
    assert spawner.api.looked == ["v1"]
    assert zones_on_page(spawner) == frozenset()


async def test_an_attempt_that_made_nothing_asks_nothing(make: Callable[..., WorkspaceSpawner]) -> None:
    spawner = make()
    spawner.api.claim, spawner.api.volumes = bound("v1"), {"v1": volume_in("zone-c")}
    await pod_of(spawner, {"profile": "cpu"})
    spawner._attempt = Attempt()
    await spawner._learn_home()
    assert spawner.api.looked == []


@pytest.mark.parametrize(
    "trouble", [ClientConnectionError("gone"), TimeoutError(), ValueError("of a newer cluster")]
)
async def test_a_start_that_went_well_does_not_fail_by_looking_where_its_home_is(
    make: Callable[..., WorkspaceSpawner], trouble: Exception
) -> None:
    spawner = make()
    spawner.api.claim, spawner.api.volumes = bound("v1"), {"v1": trouble}
    await started(spawner)
    assert zones_on_page(spawner) == frozenset()
    spawner.api.volumes = {"v1": volume_in("zone-c")}
    await started(spawner)
    assert zones_on_page(spawner) == {"zone-c"}
