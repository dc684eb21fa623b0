"""A control plane of a test's own: etcd and an API server, no controllers, to be stopped and started at will.

Without the quota controller a new quota is never counted, and without the others nothing changes by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.devcluster import build, control_plane
from tests.devcluster.addresses import Addresses
from tests.devcluster.api import Api
from tests.devcluster.ports import free_port
from tests.devcluster.processes import Processes
from tests.devcluster.waiting import PATIENCE_SECONDS

LOCAL = "127.0.0.1"
SERVER = "kube-apiserver"


@dataclass
class BareControlPlane:
    """etcd and an API server."""

    plane: control_plane.ControlPlane
    processes: Processes
    api: Api

    def kubeconfig(self, server: str) -> Path:
        """Write a kubeconfig of an administrator for the server under that address."""
        secrets = self.plane.secrets
        file = self.plane.folder / f"admin-{server.rpartition(':')[2]}.kubeconfig"
        return secrets.authority.kubeconfig(
            file, server=server, cluster="bare", user="admin", pair=secrets.admin
        )

    def restart_server(self) -> None:
        """Kill the API server, start it anew and wait until it answers."""
        self.processes.get(SERVER).kill()
        self.processes.get(SERVER).restart()
        self.api.until_answering(
            "/readyz", what="the API server to be back", timeout=PATIENCE_SECONDS, check=self.processes.check
        )

    def namespace(self, name: str) -> None:
        """Make a namespace in which pods can be created: nobody else makes its service account."""
        self.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.api.request(
            "POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}
        )


@contextmanager
def bare_control_plane(folder: Path, *flags: str) -> Iterator[BareControlPlane]:
    """Start etcd and an API server with further flags in `folder`; stop them afterwards."""
    programs = build.ensure(["etcd", SERVER])
    addresses, logs = Addresses(39), folder / "logs"
    logs.mkdir(parents=True)
    plane = control_plane.ControlPlane(
        programs=programs,
        folder=folder,
        logs=logs,
        addresses=addresses,
        bind_address=LOCAL,
        port=free_port(),
        etcd_port=free_port(),
        etcd_peer_port=free_port(),
        secrets=control_plane.issue_secrets(
            folder / "pki", name="bare", addresses=addresses, bind_address=LOCAL
        ),
    )
    processes = Processes(folder)
    api = Api(plane.server, ca=plane.secrets.authority.certificate, pair=plane.secrets.admin)
    try:
        processes.start("etcd", control_plane.etcd(plane), log=logs / "etcd.log")
        processes.start(SERVER, [*control_plane.apiserver(plane), *flags], log=logs / f"{SERVER}.log")
        bare = BareControlPlane(plane, processes, api)
        api.until_answering("/readyz", what="the API server", timeout=PATIENCE_SECONDS, check=processes.check)
        yield bare
    finally:
        api.close()
        processes.stop_all()


@dataclass
class Wire:
    """A TCP connection to a server that can be cut and mended."""

    target: int
    server: asyncio.Server | None = None
    links: set[asyncio.Task[None]] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    port: int = field(default_factory=free_port)

    async def mend(self) -> None:
        """Let connections through."""
        self.server = await asyncio.start_server(self._link, LOCAL, self.port)

    async def cut(self) -> None:
        """End all connections and refuse new ones."""
        assert self.server is not None
        self.server.close()
        for link in list(self.links):
            link.cancel()
            with suppress(asyncio.CancelledError):
                await link
        await self.server.wait_closed()

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._carry(reader, writer))
        self.links.add(link)
        link.add_done_callback(self.links.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_writer: asyncio.StreamWriter | None = None
        try:
            far_reader, far_writer = await asyncio.open_connection(LOCAL, self.target)
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, far_writer))
                both.create_task(_pump(far_reader, writer))
        except (OSError, ExceptionGroup):
            pass
        finally:
            for end in (writer, far_writer):
                if end is not None:
                    end.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(65536):
        sink.write(chunk)
        await sink.drain()
    sink.write_eof() if sink.can_write_eof() else sink.close()


def admission_file(folder: Path, plugins: dict[str, Any]) -> Path:
    """Write a configuration of admission plugins."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "admission.json"
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": name, "configuration": one} for name, one in plugins.items()],
    }
    file.write_text(json.dumps(configuration))
    return file
