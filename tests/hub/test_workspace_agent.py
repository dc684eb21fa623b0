"""The workspace agent in a real Jupyter server, with real kernels, terminals and processes."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from hub_ext.protocol import (
    URL_ENV,
    Attribution,
    Keep,
    Kernel,
    Origin,
    Process,
    Report,
    Saved,
    State,
    Stop,
    Terminal,
)
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.fakes.idle_culler import TOKEN, FakeCuller, serving
from tests.hub.notebook import Notebook, running_notebook

WORK = """
import time
def work():
    while True:
        end = time.perf_counter() + 0.05
        while time.perf_counter() < end: pass
        time.sleep(0.1)
"""
"""Uses about a third of a processor, and prints nothing."""
BUSY = 0.05
"""More of a processor than whatever only waits uses, and far less than `WORK` does on a slow machine."""


@dataclass(frozen=True)
class Worker:
    """A program that works until it is killed."""

    argv: list[str]
    note: Path
    """Where it writes its process id."""

    def started(self) -> bool:
        return self.note.exists() and self.note.read_text().endswith("\n")

    def find(self, report: Report) -> Process | None:
        pid = int(self.note.read_text())
        return next((process for process in report.processes if process.pid == pid), None)

    def listed(self, report: Report) -> Process:
        found = self.find(report)
        assert found, report
        return found


@dataclass(frozen=True)
class Workspace:
    notebook: Notebook
    culler: FakeCuller

    @contextmanager
    def worker(self) -> Iterator[Worker]:
        """A program that a test may start; it is killed afterwards."""
        note = self.notebook.folder / f"worker-{secrets.token_hex(4)}"
        worker = Worker([sys.executable, str(self.notebook.folder / "work.py"), str(note)], note)
        yield worker
        with suppress(psutil.NoSuchProcess):
            psutil.Process(int(note.read_text())).kill()

    async def report(self, found: Callable[[Report], object]) -> Report:
        """The first report from now on, of a full window, in which something is found."""
        seen, deadline = len(self.culler.of(Report)), time.monotonic() + PATIENCE_SECONDS
        last: Report | None = None
        while time.monotonic() < deadline:
            for last in self.culler.of(Report)[seen:]:
                if last.window_seconds and found(last):
                    return last
            self.notebook.check()
            await asyncio.sleep(0.1)
        raise AssertionError(f"not reported; the last report was {last!r}")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    culler = FakeCuller()
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "work.py").write_text(
        f"{WORK}\nimport os, sys\nprint(os.getpid(), file=open(sys.argv[1], 'w'))\nwork()\n"
    )
    with (
        serving(culler) as url,
        running_notebook(folder, {URL_ENV: url, "JUPYTERHUB_API_TOKEN": TOKEN}) as notebook,
    ):
        yield Workspace(notebook, culler)


def kernel_of(report: Report, kernel: str) -> Kernel | None:
    return next((found for found in report.kernels if found.id == kernel), None)


def terminal_of(report: Report, name: str) -> Terminal | None:
    return next((found for found in report.terminals if found.name == name), None)


def busy(process: Process | Kernel | Terminal | None) -> bool:
    return process is not None and (process.cpu or 0) > BUSY


def resting(found: Kernel | Terminal | None) -> bool:
    return found is not None and found.cpu is not None and found.cpu < BUSY


async def test_a_silent_cell_is_seen_to_compute(workspace: Workspace) -> None:
    async with workspace.notebook.kernel(f"{WORK}\nwork()") as kernel:
        report = await workspace.report(lambda report: busy(kernel_of(report, kernel)))
    found = kernel_of(report, kernel)
    assert found
    assert (found.state, found.connections, found.waits_for_input) == ("busy", 1, False)


async def test_training_goes_on_when_the_browser_is_closed(workspace: Workspace) -> None:
    async with workspace.notebook.kernel(f"{WORK}\nwork()", leave=True) as kernel:
        report = await workspace.report(
            lambda report: (found := kernel_of(report, kernel)) and not found.connections and busy(found)
        )
    found = kernel_of(report, kernel)
    assert found
    assert (found.state, found.connections) == ("busy", 0)


async def test_a_kernel_at_rest_with_a_thread_inside_computes(workspace: Workspace) -> None:
    code = f"{WORK}\nimport threading; threading.Thread(target=work, daemon=True).start()"
    async with workspace.notebook.kernel(code) as kernel:
        report = await workspace.report(
            lambda report: (found := kernel_of(report, kernel)) and found.state == "idle" and busy(found)
        )
    assert busy(kernel_of(report, kernel))


async def test_a_child_of_a_kernel_counts_for_it(workspace: Workspace) -> None:
    with workspace.worker() as worker:
        code = f"import subprocess; subprocess.Popen({worker.argv!r})"
        async with workspace.notebook.kernel(code) as kernel:
            # A kernel that has just begun works too; its child does so from its note on.
            report = await workspace.report(
                lambda report: worker.started() and worker.find(report) and busy(kernel_of(report, kernel))
            )
            child = worker.listed(report)
    assert (child.origin, child.owner) == (Origin.KERNEL, kernel)


async def test_a_question_to_the_user_is_told_from_work(workspace: Workspace) -> None:
    async with workspace.notebook.kernel("input('?')") as kernel:
        report = await workspace.report(
            lambda report: (found := kernel_of(report, kernel)) and found.waits_for_input and resting(found)
        )
    found = kernel_of(report, kernel)
    assert found
    assert found.state == "busy"


async def test_a_sleeping_cell_is_busy_without_using_anything(workspace: Workspace) -> None:
    async with workspace.notebook.kernel("import time; time.sleep(3600)") as kernel:
        report = await workspace.report(
            lambda report: (found := kernel_of(report, kernel)) and found.state == "busy" and resting(found)
        )
    found = kernel_of(report, kernel)
    assert found
    assert found.waits_for_input is False


async def test_terminals_work_in_the_foreground_and_in_the_background(workspace: Workspace) -> None:
    with workspace.worker() as one, workspace.worker() as other:
        async with (
            workspace.notebook.terminal(shlex.join(one.argv)) as front,
            workspace.notebook.terminal(f"{shlex.join(other.argv)} &") as back,
            workspace.notebook.terminal("true") as quiet,
        ):
            report = await workspace.report(
                lambda report: (
                    all(worker.started() and worker.find(report) for worker in (one, other))
                    and busy(terminal_of(report, front))
                    and busy(terminal_of(report, back))
                    and resting(terminal_of(report, quiet))
                )
            )
            workers = one.listed(report), other.listed(report)
    assert {terminal.name: terminal.foreground for terminal in report.terminals} == {
        front: workers[0].command,
        back: "",
        quiet: "",
    }
    assert [(worker.origin, worker.owner, worker.foreground) for worker in workers] == [
        (Origin.TERMINAL, front, True),
        (Origin.TERMINAL, back, False),
    ]


async def test_what_left_its_terminal_is_seen(workspace: Workspace) -> None:
    with workspace.worker() as worker:
        line = f"setsid nohup {shlex.join(worker.argv)} >/dev/null 2>&1 &"
        async with workspace.notebook.terminal(line, "exit"):
            report = await workspace.report(
                lambda report: not report.terminals and worker.started() and busy(worker.find(report))
            )
    found = worker.listed(report)
    assert (found.origin, found.owner) == (Origin.DETACHED, "")


async def test_short_commands_of_a_loop_count_for_their_terminal(workspace: Workspace) -> None:
    loop = "while :; do python3 -c 'sum(range(3000000))'; done"
    async with workspace.notebook.terminal(loop) as name:
        await workspace.report(lambda report: busy(terminal_of(report, name)))


async def test_nothing_is_reported_as_nothing(workspace: Workspace) -> None:
    report = await workspace.report(
        lambda report: report.complete and not report.kernels and not report.terminals
    )
    assert report.documents is None
    assert report.self_test.attribution in {Attribution.NO_LIBRARY, Attribution.NO_GPU}
    own = workspace.notebook.process.pid
    assert own not in {process.pid for process in report.processes}


async def test_reports_are_no_activity(workspace: Workspace) -> None:
    with workspace.notebook.client() as client:

        def last_activity() -> str:
            return str(client.get("api/status").json()["last_activity"])

        before = last_activity()
        told = {"page": "p", "documents": [{"path": "a.ipynb"}], "inputSeconds": 1}
        assert client.get("gpu-workspaces/session").status_code == 200
        assert client.post("gpu-workspaces/page", json=told).status_code == 204
        report = await workspace.report(lambda report: report.documents)
        assert last_activity() == before
        client.post("gpu-workspaces/page", json={"page": "p", "closed": True})
    assert [document.path for document in report.documents or ()] == ["a.ipynb"]
    assert report.input_seconds is not None


async def test_the_pages_save_before_a_stop(workspace: Workspace) -> None:
    culler = workspace.culler
    with workspace.notebook.client() as client:
        client.post("gpu-workspaces/page", json={"page": "p", "documents": [{"path": "a.ipynb"}]})
        client.post("gpu-workspaces/page", json={"page": "q", "documents": [{"path": "b.ipynb"}]})
        view = client.post("gpu-workspaces/stop", json={"save": True}).raise_for_status().json()
        assert view["answer"]["state"] == State.SAVING
        save = view["answer"]["save"]["id"]
        done = {"page": "p", "save": save, "saved": ["a.ipynb"], "failed": []}
        client.post("gpu-workspaces/saved", json=done).raise_for_status()
        assert not culler.of(Saved)  # one page has not answered
        failed = [{"path": "b.ipynb", "why": "read-only"}]
        client.post("gpu-workspaces/saved", json={**done, "page": "q", "saved": [], "failed": failed})
        await workspace.report(lambda report: culler.of(Saved))
        assert client.get("gpu-workspaces/session").json()["answer"]["state"] == State.STOPPING
    (told,) = culler.of(Saved)
    assert (told.save, told.saved) == (save, ("a.ipynb",))
    assert [(entry.path, entry.why) for entry in told.failed] == [("b.ipynb", "read-only")]
    assert culler.of(Stop)[-1].save
    culler.stopped = False


async def test_buttons_reach_the_culler(workspace: Workspace) -> None:
    culler = workspace.culler
    culler.deadline = time.monotonic() + 3600
    await workspace.report(lambda report: True)
    with workspace.notebook.client() as client:
        view = client.post("gpu-workspaces/keep", json={}).raise_for_status().json()
        assert view["answer"]["state"] == State.KEPT
        assert client.post("gpu-workspaces/stop", json={"save": "perhaps"}).status_code == 400
        culler.failing = 503
        answer = client.post("gpu-workspaces/keep", json={})
        culler.failing = 0
    assert answer.status_code == 502
    assert "503" in answer.json()["message"]
    assert len(culler.of(Keep)) == 1  # the second was refused


async def test_files_outside_the_workspace_are_not_run(workspace: Workspace) -> None:
    (workspace.notebook.folder / "files" / "link").symlink_to("/etc")
    with workspace.notebook.client() as client:
        for path in ("../work.py", "/etc/passwd", "link/passwd", "ünbekannt.ipynb", ""):
            answer = client.post("gpu-workspaces/job", json={"path": path})
            assert (answer.status_code, answer.json()["message"]) == (
                409,
                f"{path} is no file of this workspace",
            )


@pytest.mark.parametrize("url", ["no url", "http://127.0.0.1:9/"], ids=["no-url", "nobody-there"])
def test_the_server_runs_whatever_the_culler_does(tmp_path: Path, url: str) -> None:
    environment = {URL_ENV: url, "JUPYTERHUB_API_TOKEN": TOKEN}
    with running_notebook(tmp_path / "server", environment) as notebook, notebook.client() as client:
        assert client.get("gpu-workspaces/session").raise_for_status().json()["answer"] is None
        assert client.get("api/status").status_code == 200
        notebook.process.send_signal(signal.SIGTERM)
        assert notebook.process.wait(PATIENCE_SECONDS) in {0, -signal.SIGTERM}
        said = notebook.log.read_text()
    assert "Traceback" not in said
    assert "Task was destroyed" not in said
