"""Spawners of one user.

KubeSpawner 7.0 warns about a trait of its own when it is imported; nothing here can mend that.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "metadata {'default'", DeprecationWarning)
    from hub_ext.spawner import WorkspaceSpawner

from tests.fakes.workspaces import TEXT
from tests.unit.spawner.world import Api


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
