"""Names of servers and users give valid names of objects, and never the same one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hub_ext.names import is_dns_label, is_label_value
from hub_ext.spawner import WorkspaceSpawner
from tests.unit.spawner.world import pod_of

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
