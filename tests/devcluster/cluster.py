"""A running cluster, as the addons and the tests use it.

Shell: talks to the cluster.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.devcluster.addresses import Addresses
from tests.devcluster.errors import CommandFailed
from tests.devcluster.node import Node
from tests.devcluster.processes import Process, Processes
from tests.devcluster.spec import ClusterSpec


class Cluster:
    """A handle: the supervisor has one, and each test process makes its own for the same cluster.

    What a handle starts (`popen`, `Node.popen`) ends with the process that started it.
    """

    name: str
    spec: ClusterSpec
    state_dir: Path
    logs_dir: Path
    kubeconfig: Path
    """Of an administrator; its server address is reachable from the host and, in size `nodes`, from pods."""
    server: str
    """URL of the API server."""
    host_address: str
    """Where a program on the host listens to be reached by pods; `127.0.0.1` in size `control`."""
    registry: str
    """`host:port` of the registry addon, for image references and `docker push`; its server listens there."""
    addresses: Addresses
    nodes: Mapping[str, Node]
    programs: Mapping[str, Path]
    """What the cluster was started with, by the names of `tests.devcluster.build`."""

    def node(self, name: str) -> Node:
        """The node of that name; raises `KeyError`."""
        return self.nodes[name]

    def port(self, name: str) -> int:
        """A free TCP port of the host for a program called `name`: the same one in each process and call."""
        raise NotImplementedError

    def popen(
        self, name: str, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program on the host, logging to `logs_dir/<name>.log`; it ends with this Python process."""
        raise NotImplementedError

    def kubectl(self, *args: str, input: str | None = None, timeout: float = 60) -> str:  # noqa: A002
        """Run kubectl as administrator and return what it printed; raises `CommandFailed`."""
        raise NotImplementedError

    def get(self, path: str) -> Any:
        """GET an API path, such as `/api/v1/nodes/gpu-1`; raises `ApiError`."""
        raise NotImplementedError

    def apply(self, *documents: Mapping[str, Any] | Path, timeout: float = 60) -> None:
        """Server-side apply objects, or files of them, as field manager `devcluster`."""
        raise NotImplementedError

    def wait_for(
        self, resource: str, condition: str, *, namespace: str | None = None, timeout: float = 120
    ) -> None:
        """`kubectl wait`, but failing at once when a program of the cluster dies; raises `NotReady`.

        `resource` as in `deployment/kueue-controller-manager`, `condition` as in `condition=Available` or
        `jsonpath={.status.phase}=Running`.
        """
        raise NotImplementedError

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace and wait until it is gone."""
        raise NotImplementedError
