"""What preflight asks of a running hub, against real hubs of both ends of the range."""

from __future__ import annotations

from services.preflight.ask_hub import ask_hub
from tests.hub.harness import Hub


async def test_a_hub_says_what_preflight_looks_at(hub: Hub) -> None:
    facts, denied = await ask_hub(hub.base, hub.token, ["greeter"])
    assert denied == {}
    assert int(facts.version.partition(".")[0]) >= 5
    assert facts.spawner == "hub_ext.spawner.WorkspaceSpawner"
    assert facts.services is not None
    assert facts.services["tests"]["roles"] == ["tests"]
    assert facts.services["greeter"]["url"]
    # No proxy is here that would lead to a service from the hub's own address.
    assert facts.health["greeter"].startswith(
        f"GET {hub.base.removesuffix('/hub')}/services/greeter/health: "
    )


async def test_a_token_that_is_worth_nothing_learns_the_version_alone(hub: Hub) -> None:
    facts, denied = await ask_hub(hub.base, "no-token", [])
    assert facts.version
    assert (facts.spawner, facts.services) == (None, None)
    assert set(denied) == {"hub_spawner", "hub_services"}
