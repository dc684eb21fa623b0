"""The imitated dcgm-exporter as a process: it says what it is told to, or what a node's pods do.

`python -m tests.devcluster.monitoring.exporter HOST:PORT FILE [NODE]` answers `GET /metrics`. Port 0 takes a
free one; the address is written into FILE once it listens. NODE is a file with a `Followed` as JSON: cards
of a real node, which then are said to be held by the pods that hold them. `PUT /uses` says what these do,
by `namespace/name`; `PUT /readings` (a list of `Reading`s) replaces all that, until `null` is put;
`PUT /status` sets the HTTP status of the answers.

Shell: HTTP.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

import httpx
from pydantic import TypeAdapter, ValidationError

from tests.devcluster.monitoring.attribution import Device, Kubelet, attributed
from tests.devcluster.monitoring.dcgm import Model, Pod, Reading, Use, render
from tests.devcluster.monitoring.scrape import Convention, Job, Labels
from tests.devcluster.processes import Processes
from tests.devcluster.record import write_whole
from tests.devcluster.waiting import PATIENCE_SECONDS, until

READINGS = TypeAdapter(list[Reading] | None)
USES = TypeAdapter(dict[str, Use])
CHECKOUT = Path(__file__).resolve().parents[3]
NAME = "nvidia-dcgm-exporter"
ENVIRONMENT = {"PYTHONPATH": str(CHECKOUT)}


class Followed(Model):
    """A node whose pods are looked at."""

    kubelet: Kubelet
    devices: tuple[Device, ...]


class Exporter:
    """A handle: any process of the host may make one."""

    def __init__(self, address: str) -> None:
        self.address = address
        """`host:port`."""

    def show(self, *readings: Reading) -> None:
        """Say this from now on, and nothing else."""
        self._put("readings", READINGS.dump_json(list(readings)))

    def follow(self, uses: Mapping[Pod, Use] | None = None) -> None:
        """Say from now on who holds the node's cards, and that these pods do that; all others are at rest.

        An exporter without a node says nothing then.
        """
        named = {f"{pod.namespace}/{pod.name}": use for pod, use in (uses or {}).items()}
        self._put("uses", USES.dump_json(named))
        self._put("readings", b"null")

    def fail(self, status: int = HTTPStatus.SERVICE_UNAVAILABLE) -> None:
        """Answer scrapes with an error."""
        self._put("status", str(int(status)).encode())

    def recover(self) -> None:
        """Answer again."""
        self.fail(HTTPStatus.OK)

    def page(self) -> str:
        """What a scrape gets."""
        answer = httpx.get(f"http://{self.address}/metrics", trust_env=False, timeout=PATIENCE_SECONDS)
        return answer.raise_for_status().text

    def _put(self, what: str, body: bytes) -> None:
        answer = httpx.put(
            f"http://{self.address}/{what}", content=body, trust_env=False, timeout=PATIENCE_SECONDS
        )
        if answer.is_error:
            raise ValueError(f"the exporter refused {what}: {answer.text}")


def job_of(*exporters: Exporter, convention: Convention = Convention.EXPORTED) -> Job:
    """How Prometheus finds exporters."""
    own = {"namespace": "gpu-operator", "container": NAME, "service": NAME, "endpoint": "gpu-metrics"}
    targets: dict[str, Labels] = {
        exporter.address: {} if convention is Convention.STATIC else {**own, "pod": f"{NAME}-{number}"}
        for number, exporter in enumerate(exporters)
    }
    return Job(name=NAME, targets=targets, honor_labels=convention is Convention.HONORED)


@contextlib.contextmanager
def running_exporter(
    folder: Path, *, host: str = "127.0.0.1", name: str = "exporter", node: Followed | None = None
) -> Iterator[Exporter]:
    """Run an exporter that says nothing yet, or follows a node; its log and address are files of `folder`."""
    processes = Processes(folder)
    try:
        yield start(processes, folder, address=f"{host}:0", name=name, node=node, logs=folder)
    finally:
        processes.stop_all()


def start(
    processes: Processes, folder: Path, *, address: str, name: str, node: Followed | None, logs: Path
) -> Exporter:
    """Start an exporter as one of `processes`; raises `NotReadyError` or `ProcessDiedError`."""
    listening, followed = folder / f"{name}.address", folder / f"{name}.json"
    listening.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "tests.devcluster.monitoring.exporter", address, str(listening)]
    if node is not None:
        followed.write_text(node.model_dump_json())
        argv.append(str(followed))
    process = processes.start(name, argv, log=logs / f"{name}.log", env=ENVIRONMENT)
    until(
        lambda: None if listening.exists() else f"no {listening}",
        what=f"{name} to listen",
        check=process.check,
    )
    return Exporter(listening.read_text())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, node: Followed | None) -> None:
        super().__init__((host, port), Handler)
        self._node = node
        self.told: Sequence[Reading] | None = None
        self.uses: Mapping[str, Use] = {}
        self.status = HTTPStatus.OK

    def readings(self) -> Sequence[Reading]:
        if self.told is not None:
            return self.told
        if self._node is None:
            return ()
        return attributed(self._node.devices, self._node.kubelet.holders(), self.uses)


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND)
            return
        status = self.server.status
        self._answer(status, render(self.server.readings()) if status is HTTPStatus.OK else status.phrase)

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self._take(body)
        except (ValidationError, ValueError) as error:
            self._answer(HTTPStatus.BAD_REQUEST, str(error))
        else:
            self._answer(HTTPStatus.NO_CONTENT)

    def _take(self, body: bytes) -> None:
        match self.path:
            case "/readings":
                self.server.told = READINGS.validate_json(body)
            case "/uses":
                self.server.uses = USES.validate_json(body)
            case "/status":
                self.server.status = HTTPStatus(json.loads(body))
            case _:
                raise ValueError(f"nothing is set at {self.path}; there are /readings, /uses and /status")

    def _answer(self, status: HTTPStatus, text: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape a second would be all that the log has."""


def main(address: str, file: str, node: str = "") -> None:
    host, _, port = address.rpartition(":")
    followed = Followed.model_validate_json(Path(node).read_text()) if node else None
    with Server(host, int(port), followed) as server:
        write_whole(Path(file), f"{host}:{server.server_port}")
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
