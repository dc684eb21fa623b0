"""What is known about a cluster while it is up: written once by its supervisor, read by everybody else.

Shell: files below the cluster's state folder.
"""

from __future__ import annotations

import fcntl
import json
import socket
from enum import StrEnum
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.addresses import Addresses
from tests.devcluster.errors import HostError, StateError
from tests.devcluster.spec import ClusterSpec, Model, Size

FIRST_PORT = 20000
"""Below the ports that outgoing connections use, so that none of them takes one in between."""
PORTS_PER_SLOT = 100


def runs_dir() -> Path:
    """Where the state folders are, one for each cluster."""
    return cache.cache_root() / "run"


class Record(Model):
    """How a cluster is laid out."""

    name: str
    spec: ClusterSpec
    state_dir: Path
    slot: int
    programs: dict[str, Path]
    """By plain name, whatever the Kubernetes version."""

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.slot)

    @property
    def host_address(self) -> str:
        return self.addresses.host if self.spec.size is Size.NODES else "127.0.0.1"

    @property
    def logs_dir(self) -> Path:
        return self.state_dir / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.state_dir / "admin.kubeconfig"

    @property
    def cgroup(self) -> str:
        """Name of the cluster's group in each hierarchy; clusters of another cache have another one."""
        return f"gpu-workspaces-{self.name}-{cache.key_of(str(self.state_dir))[:6]}"

    def port(self, name: str) -> int:
        """A free TCP port of the host for `name`: the same one in each process and call."""
        with (self.state_dir / "ports.json").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            ports: dict[str, int] = json.loads(file.read() or "{}")
            if name not in ports:
                ports[name] = self._free_port(set(ports.values()))
                file.truncate(0)
                file.write(json.dumps(ports))
            return ports[name]

    def _free_port(self, taken: set[int]) -> int:
        first = FIRST_PORT + self.slot * PORTS_PER_SLOT
        for port in range(first, first + PORTS_PER_SLOT):
            if port not in taken and is_free(port):
                return port
        raise HostError(
            f"no free TCP port between {first} and {first + PORTS_PER_SLOT - 1}",
            "see `ss -ltnp` for what has them",
        )

    def save(self) -> None:
        write_whole(self.state_dir / "cluster.json", self.model_dump_json(indent=1))

    @staticmethod
    def load(state_dir: Path) -> Record:
        """Raises `StateError` if there is none."""
        try:
            text = (state_dir / "cluster.json").read_text()
        except FileNotFoundError:
            raise StateError(
                f"cluster {state_dir.name!r}", "is not known", "start it: python -m tests.devcluster up"
            ) from None
        return Record.model_validate_json(text)


def is_free(port: int) -> bool:
    """Whether nobody listens on a port, on whatever address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


class Phase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


class Status(Model):
    """Where a cluster stands; replaced as a whole at each change."""

    phase: Phase
    message: str = ""
    """Why it failed, or which programs died while it was ready."""
    supervisor: int = 0
    """Process id."""

    def save(self, state_dir: Path) -> None:
        write_whole(state_dir / "status.json", self.model_dump_json())

    @staticmethod
    def load(state_dir: Path) -> Status | None:
        try:
            return Status.model_validate_json((state_dir / "status.json").read_text())
        except FileNotFoundError:
            return None


def write_whole(path: Path, text: str) -> None:
    """Write a file so that readers see the old or the new one, never a part."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)
