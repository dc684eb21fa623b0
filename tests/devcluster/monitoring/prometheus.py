"""A real Prometheus server as a process of the host.

Shell: starts programs, speaks HTTP.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.devcluster import build, cache
from tests.devcluster.answering import until_answering
from tests.devcluster.errors import CommandFailedError, DevClusterError
from tests.devcluster.monitoring.history import Series, open_metrics
from tests.devcluster.monitoring.scrape import Job, build_config
from tests.devcluster.ports import free_port
from tests.devcluster.processes import Processes
from tests.devcluster.waiting import PATIENCE_SECONDS, Check, nothing, until

PROGRAMS = ("prometheus", "promtool")


class Prometheus:
    """A handle: any process of the host may make one."""

    def __init__(self, url: str, config: Path, *, check: Check = nothing) -> None:
        self.url = url
        """Without a slash at its end."""
        self._config = config
        self._check = check

    def query(self, expression: str, *, at: float | None = None) -> list[dict[str, Any]]:
        """The result of an instant query, now or at a Unix time; raises `DevClusterError`."""
        given = {"query": expression} | ({} if at is None else {"time": str(at)})
        answer = httpx.post(f"{self.url}/api/v1/query", data=given, trust_env=False, timeout=PATIENCE_SECONDS)
        body = answer.json()
        if body["status"] != "success":
            raise DevClusterError(f"Prometheus refuses {expression!r}: {body['error']}")
        result: list[dict[str, Any]] = body["data"]["result"]
        return result

    def wait_for(self, expression: str) -> list[dict[str, Any]]:
        """Ask until there is a result, and return it; raises `NotReadyError`."""
        found: list[dict[str, Any]] = []

        def missing() -> str | None:
            found[:] = self.query(expression)
            return None if found else "no result"

        until(missing, what=f"{expression} to have a result", check=self._check)
        return found

    def scrape(self, *jobs: Job, every_seconds: float = 1) -> None:
        """Scrape these from now on, and nothing else."""
        self._config.write_text(yaml.safe_dump(build_config(jobs, every_seconds=every_seconds)))
        httpx.post(f"{self.url}/-/reload", trust_env=False, timeout=PATIENCE_SECONDS).raise_for_status()

    def wait_until_ready(self) -> None:
        until_answering(f"{self.url}/-/ready", what=f"Prometheus at {self.url}", check=self._check)


@contextlib.contextmanager
def running_prometheus(
    folder: Path,
    *jobs: Job,
    host: str = "127.0.0.1",
    every_seconds: float = 1,
    history: Sequence[Series] = (),
) -> Iterator[Prometheus]:
    """Run a Prometheus; it ends with the block.

    Parameters
    ----------
    folder
        For its data, configuration and log; data of an earlier one is dropped.
    history
        What it remembers from before its start. It must end before the first scrape.

    Raises `DevClusterError` or `BuildError`.
    """
    processes = Processes(folder)
    try:
        yield start(
            processes,
            folder,
            build.ensure(PROGRAMS),
            address=f"{host}:{free_port()}",
            config=build_config(jobs, every_seconds=every_seconds),
            log=folder / "prometheus.log",
            history=history,
        )
    finally:
        processes.stop_all()


def start(
    processes: Processes,
    folder: Path,
    programs: Mapping[str, Path],
    *,
    address: str,
    config: Mapping[str, Any],
    log: Path,
    history: Sequence[Series] = (),
) -> Prometheus:
    """Start a Prometheus as one of `processes`; returns when it answers queries.

    `programs` has those of `PROGRAMS`, `folder` takes its data and configuration.
    """
    data, file = folder / "prometheus", folder / "prometheus.yaml"
    cache.remove(data)
    data.mkdir(parents=True)
    file.write_text(yaml.safe_dump(dict(config)))
    if history:
        _remember(programs["promtool"], folder / "history.txt", data, history)
    process = processes.start(
        "prometheus",
        [
            programs["prometheus"],
            f"--config.file={file}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address={address}",
            "--web.enable-lifecycle",
            "--scrape.discovery-reload-interval=100ms",  # else new targets wait for five seconds
            "--storage.tsdb.retention.time=7d",
            "--log.level=warn",
        ],
        log=log,
    )
    prometheus = Prometheus(f"http://{address}", file, check=process.check)
    prometheus.wait_until_ready()
    return prometheus


def _remember(promtool: Path, file: Path, data: Path, history: Sequence[Series]) -> None:
    file.write_text(open_metrics(history))
    argv = [str(promtool), "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(file), str(data)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailedError(argv, done.returncode, done.stderr + done.stdout)
