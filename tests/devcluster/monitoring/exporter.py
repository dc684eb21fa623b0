"""The imitated dcgm-exporter as a process: it says what it is told to.

`python -m tests.devcluster.monitoring.exporter HOST:PORT FILE` answers `GET /metrics`; `PUT /readings` (a
list of `Reading`s) and `PUT /status` (the HTTP status of its answers) change them. Port 0 takes a free one;
the address is written into FILE once it listens.

Shell: HTTP.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path

import httpx
from pydantic import TypeAdapter, ValidationError

from tests.devcluster.monitoring.dcgm import Reading, render
from tests.devcluster.monitoring.scrape import Convention, Job, Labels
from tests.devcluster.processes import Process, Processes
from tests.devcluster.record import write_whole
from tests.devcluster.waiting import PATIENCE_SECONDS, until

READINGS = TypeAdapter(list[Reading])
CHECKOUT = Path(__file__).resolve().parents[3]
NAME = "nvidia-dcgm-exporter"
ENVIRONMENT = {"PYTHONPATH": str(CHECKOUT)}


class Exporter:
    """A handle: any process of the host may make one."""

    def __init__(self, address: str) -> None:
        self.address = address
        """`host:port`."""

    def show(self, *readings: Reading) -> None:
        """Say this from now on, and nothing else."""
        self._put("readings", READINGS.dump_json(list(readings)))

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
def running_exporter(folder: Path, *, host: str = "127.0.0.1", name: str = "exporter") -> Iterator[Exporter]:
    """Run an exporter that says nothing yet; its log and address are files of `folder`."""
    processes = Processes(folder)
    try:
        yield start(processes, folder, address=f"{host}:0", name=name)
    finally:
        processes.stop_all()


def start(processes: Processes, folder: Path, *, address: str, name: str) -> Exporter:
    """Start an exporter as one of `processes`."""
    file = folder / f"{name}.address"
    file.unlink(missing_ok=True)
    process = processes.start(name, command(address, file), log=folder / f"{name}.log", env=ENVIRONMENT)
    return Exporter(listening(file, process))


def command(address: str, file: Path) -> list[str]:
    return [sys.executable, "-m", "tests.devcluster.monitoring.exporter", address, str(file)]


def listening(file: Path, process: Process) -> str:
    """The address that an exporter wrote; raises `NotReadyError` or `ProcessDiedError`."""
    until(lambda: None if file.exists() else f"no {file}", what=process.name, check=process.check)
    return file.read_text()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__((host, port), Handler)
        self.lock = threading.Lock()
        self.readings: Sequence[Reading] = ()
        self.status = HTTPStatus.OK


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND)
            return
        with self.server.lock:
            status, readings = self.server.status, self.server.readings
        self._answer(status, render(readings) if status is HTTPStatus.OK else status.phrase)

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
                readings = READINGS.validate_json(body)
                with self.server.lock:
                    self.server.readings = readings
            case "/status":
                status = HTTPStatus(json.loads(body))
                with self.server.lock:
                    self.server.status = status
            case _:
                raise ValueError(f"nothing is set at {self.path}; there are /readings and /status")

    def _answer(self, status: HTTPStatus, text: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape a second would be all that the log has."""


def main(address: str, file: str) -> None:
    host, _, port = address.rpartition(":")
    with Server(host, int(port)) as server:
        write_whole(Path(file), f"{host}:{server.server_port}")
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
