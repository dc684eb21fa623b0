"""The demo's command: it says what to open, the hub is there, and however it ends nothing stays."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from tests.demo.hub import PROXY_ID, check_listener
from tests.demo.services import SERVICES
from tests.demo.users import USERS
from tests.devcluster.client import ROOT
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import HostError
from tests.devcluster.sweep import marked
from tests.devcluster.waiting import PATIENCE_SECONDS, until
from tests.nodes import traces


@dataclass(frozen=True, kw_only=True)
class Demo:
    process: subprocess.Popen[str]
    said: str
    """All it printed until the hub was ready."""

    @property
    def url(self) -> str:
        return self._find(r"The hub is ready: (\S+)")

    @property
    def cluster(self) -> Cluster:
        return Cluster.open(Path(self._find(r"logs: +(\S+)")).parent)

    def _find(self, pattern: str) -> str:
        match = re.search(pattern, self.said)
        assert match, self.said
        return match[1]


@contextmanager
def demo() -> Iterator[Demo]:
    """Run the command as a person does, until it waits for Ctrl-C."""
    argv = [sys.executable, "-m", "tests.demo"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = ""
            for line in process.stdout:
                said += line
                if line.startswith("Ctrl-C stops"):
                    break
            yield Demo(process=process, said=said)
        finally:
            process.kill()


def services_of(cluster: Cluster) -> set[str]:
    """Which services run that the cluster's end would end: by whatever means, they know whose they are."""
    own = marked(cluster.state_dir)
    commands = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"]) if one.pid in own]
    modules = {word for command in commands for word in command if word.startswith("services.")}
    return {module.removeprefix("services.").replace("_", "-") for module in modules}


def until_gone(known: traces.Known) -> None:
    ended = time.time()

    def missing() -> str | None:
        found = traces.traces(known, ended=ended)
        return str(found) if found else None

    until(missing, what="all traces of the demo to be gone")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_says_what_to_open_and_leaves_nothing(number: signal.Signals) -> None:
    with demo() as running:
        assert all(user.name in running.said and user.password in running.said for user in USERS)
        page = httpx.get(f"{running.url}/hub/login", trust_env=False, timeout=PATIENCE_SECONDS)
        assert "Sign in" in page.text
        known = traces.know(running.cluster)
        assert traces.traces(known)
        assert services_of(running.cluster) >= set(SERVICES)

        running.process.send_signal(number)
        code = running.process.wait(PATIENCE_SECONDS)
        assert running.process.stdout
        last = running.process.stdout.read().strip()
        assert (code, last) == (
            (0, "Stopped. Nothing is left running.") if number is signal.SIGINT else (-number, "")
        )
        until_gone(known)


def test_another_program_at_the_port_does_not_pass_for_the_hub(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / PROXY_ID).write_text(str(os.getpid()))
        check_listener(tmp_path, port)

        (tmp_path / PROXY_ID).write_text("1")
        with pytest.raises(HostError, match=f"port {port} was taken"):
            check_listener(tmp_path, port)
