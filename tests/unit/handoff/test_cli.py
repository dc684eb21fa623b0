"""The commands of a workspace, against the service over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from hub_ext.cli.app import main
from services.job_handoff.client import Client
from services.job_handoff.git import GitError, read_checkout
from services.job_handoff.runner.source import PATCH
from services.job_handoff.verb_run import watch

from .conftest import World


class Command:
    """`gpu-workspaces` in a workspace."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    async def __call__(self, *arguments: object) -> tuple[int, dict[str, Any]]:
        """Run it; gives its exit status and its JSON."""
        self._capsys.readouterr()
        verb, *rest = map(str, arguments)
        status = await asyncio.to_thread(main, [verb, "--json", *rest])
        text = self._capsys.readouterr().out
        answer = json.loads(text[text.index("{") :])
        assert status != 2 or "error" in answer
        return status, answer


@pytest.fixture
def command(
    url: str, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("GPU_WORKSPACES_HANDOFF_URL", url)
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "ada")
    monkeypatch.setenv("JUPYTERHUB_SERVER_NAME", "")
    world.hub.add_server("ada", options={"profile": "desk"})
    return Command(capsys)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "helper.py").write_text("X = 1\n")
    file = folder / "train.py"
    file.write_text("import helper\n")
    return file


async def test_a_script_is_sent_tried_and_submitted_once(
    command: Command, script: Path, world: World
) -> None:
    status, tried = await command("run", script, "--profile", "cpu", "--dry-run")
    assert (status, tried["result"]["forecast"]["when"]) == (0, "now"), tried
    assert world.kube.all_for_test("jobs") == []
    again = ("run", script, "--profile", "cpu", "--key", "k", "--max-duration", "1h", "--args", "--lr", "0.1")
    _, first = await command(*again)
    _, second = await command(*again)
    assert (first["result"]["created"], second["result"]["created"]) == (True, False)
    (job,) = world.kube.all_for_test("jobs")
    spec = next(
        one["value"]
        for one in job["spec"]["template"]["spec"]["containers"][0]["env"]
        if one["name"] == "HANDOFF_SPEC"
    )
    assert json.loads(spec)["entry"]["arguments"] == ["--lr", "0.1"]


async def test_why_not_is_a_finding(command: Command, script: Path) -> None:
    status, refused = await command("run", script, "--profile", "desk")
    assert (status, refused["findings"][0]["code"]) == (1, "not-runnable")
    (script.parent / "key.pem").write_text("x")
    status, refused = await command("run", script, "--profile", "cpu")
    assert (status, refused["findings"][0]["code"]) == (1, "credential-in-source")
    assert (await command("run", script.parent / "none.py", "--profile", "cpu"))[0] == 2


async def test_nothing_is_sent_of_a_run_without_a_profile(command: Command, script: Path) -> None:
    status, answer = await command("run", script, "--root", script.parent / "elsewhere")
    assert status == 2
    assert answer["error"].startswith("--profile says what it runs on")


async def test_preparing_gives_the_page_to_open(command: Command, script: Path) -> None:
    status, prepared = await command("run", script, "--prepare")
    assert status == 0
    assert prepared["result"]["url"].startswith("/services/job-handoff/new?server=&snapshot=")
    assert prepared["result"]["url"].endswith("&path=train.py")


async def test_runs_are_listed_shown_ended_and_fetched(
    command: Command, script: Path, world: World, tmp_path: Path
) -> None:
    _, made = await command("run", script, "--profile", "cpu", "--name", "first")
    run = made["result"]["id"]
    assert [one["title"] for one in (await command("handoff", "list"))[1]["result"]] == ["first"]
    assert (await command("handoff", "show", run))[1]["result"]["status"]["phase"] == "queued"
    assert (await command("handoff", "show", "run-x"))[1]["findings"][0]["code"] == "unknown-run"
    await world.store.put(f"nlp/ada/runs/{run}/outputs/a.txt", b"new")
    await world.store.put(f"nlp/ada/runs/{run}/outputs/deep/b.txt", b"b")
    assert (await command("handoff", "cancel", run))[1]["result"]["status"]["phase"] == "canceled"
    home = tmp_path / "runs"
    (home / run).mkdir(parents=True)
    (home / run / "a.txt").write_text("mine")
    _, brought = await command("handoff", "fetch", "--finished", "--to", home)
    assert brought["result"]["files"] == [str(home / run / "deep" / "b.txt")]
    assert (home / run / "a.txt").read_text() == "mine"
    assert (await command("handoff", "fetch", "--finished", "--to", home))[1]["result"]["files"] == []


async def test_results_are_brought_when_they_no_longer_change(
    command: Command, script: Path, world: World, tmp_path: Path
) -> None:
    _, made = await command("run", script, "--profile", "cpu")
    run, home = made["result"]["id"], tmp_path / "runs"
    results = f"nlp/ada/runs/{run}/outputs"
    await world.store.put(f"{results}/a.ipynb", b"half")
    _, early = await command("handoff", "fetch", run, "--to", home)
    assert (early["findings"][0]["code"], early["result"]["files"]) == ("not-ended", [])
    await world.store.put(f"{results}/a.ipynb", b"whole")
    await world.store.put(f"{results}/clash/b", b"b")
    await command("handoff", "cancel", run)
    (home / run).mkdir(parents=True)
    (home / run / "clash").write_text("a file of the user")
    status, brought = await command("handoff", "fetch", run, "--to", home)
    assert (status, brought["result"]["files"]) == (1, [str(home / run / "a.ipynb")])
    assert [one["code"] for one in brought["findings"]] == ["not-brought"]
    (home / run / "clash").unlink()
    status, rest = await command("handoff", "fetch", "--finished", "--to", home)
    assert (status, rest["result"]["files"]) == (0, [str(home / run / "clash" / "b")])
    assert (home / run / "a.ipynb").read_bytes() == b"whole"
    assert sorted(one.name for one in (home / run).rglob("*.part")) == []
    assert (await command("handoff", "remove", run))[1]["result"]["files"] > 0
    assert (await command("handoff", "list"))[1]["result"] == []


class LosesAnswers(httpx.HTTPTransport):
    """Brings every request there; the answers to the first ones of a kind are lost."""

    def __init__(self, method: str, lost: int) -> None:
        super().__init__()
        self.method, self.lost = method, lost

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        if request.method == self.method and self.lost:
            self.lost -= 1
            answer.read()
            raise httpx.ReadTimeout("lost", request=request)
        return answer


async def test_a_retry_whose_answer_is_lost_makes_one_run(
    command: Command, script: Path, world: World, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = await command("run", script, "--profile", "cpu")
    run = made["result"]["id"]
    await command("handoff", "cancel", run)
    pauses: list[float] = []
    client = Client(url, "ada", transport=LosesAnswers("POST", 2), sleep=pauses.append)
    monkeypatch.setattr(Client, "from_environment", lambda: client)
    status, again = await command("handoff", "retry", run)
    assert (status, again["result"]["created"]) == (0, False)
    assert [job["metadata"]["name"] for job in world.kube.all_for_test("jobs")] == [again["result"]["id"]]
    assert pauses == [1.0, 2.0]


async def test_files_are_sent_again_when_the_service_starts_anew(
    command: Command, script: Path, world: World, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer to the upload is lost, and then the hub's proxy says that nobody is there."""
    answers = iter([httpx.Response(503, text="<html>Service Unavailable</html>")])

    class Restarts(LosesAnswers):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "POST" and (away := next(answers, None)) is not None:
                return away
            return super().handle_request(request)

    pauses: list[float] = []
    client = Client(url, "ada", transport=Restarts("PUT", 1), sleep=pauses.append)
    monkeypatch.setattr(Client, "from_environment", lambda: client)
    status, made = await command("run", script, "--profile", "cpu")
    assert (status, made["result"]["created"], len(pauses)) == (0, True, 2)
    assert len(world.kube.all_for_test("jobs")) == 1


class Talking:
    """The service while a run says 300 lines between two looks; it gives the last 5000."""

    def __init__(self, looks: int) -> None:
        self.looks, self.seen = looks, 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/log"):
            lines = [f"step {number}" for number in range(4700 + 300 * self.seen)][-5000:]
            # What was filed ends without a line feed.
            return httpx.Response(200, text="\n".join(lines) + ("\n" if self.seen < self.looks else ""))
        self.seen += 1
        phase = "running" if self.seen < self.looks else "succeeded"
        return httpx.Response(200, json={"status": {"phase": phase, "text": phase, "reason": ""}})


def test_a_watch_says_each_line_once_however_long_the_log_is(capsys: pytest.CaptureFixture[str]) -> None:
    with Client("http://hub/", "t", transport=httpx.MockTransport(Talking(4))) as client:
        watch(client, "run-a", sleep=lambda _seconds: None)
    assert capsys.readouterr().out.splitlines() == [f"step {number}" for number in range(4700 + 300 * 4)]


async def test_outside_a_workspace_the_command_says_what_is_missing(
    command: Command, monkeypatch: pytest.MonkeyPatch, script: Path
) -> None:
    monkeypatch.delenv("GPU_WORKSPACES_HANDOFF_URL")
    status, answer = await command("run", script, "--profile", "cpu")
    assert status == 2
    assert "GPU_WORKSPACES_HANDOFF_URL" in answer["error"]


async def test_settings_that_are_not_there_are_named(command: Command, tmp_path: Path) -> None:
    status, answer = await command("handoff", "place", "--strict", tmp_path / "none.yaml")
    assert status == 2
    assert f"{tmp_path / 'none.yaml'}" in answer["error"]
    assert "cannot be read: No such file" in answer["error"]


async def test_manifests_are_checked_offline(command: Command, tmp_path: Path) -> None:
    gpu = {"name": "nvidia.com/gpu", "nominalQuota": "8"}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h200", "resources": [gpu]}]}
    queue = {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"resourceGroups": [group]}}
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    named: dict[str, Any] = {"metadata": {"name": "run"}}
    documents = [{"kind": "Job", **named, "spec": {"template": pod}}, {"kind": "RayJob", **named, "spec": {}}]
    (tmp_path / "queue.yaml").write_text(yaml.safe_dump(queue))
    (tmp_path / "runs.yaml").write_text(yaml.safe_dump_all(documents))
    check = ("handoff", "check", tmp_path / "runs.yaml", "--queue", tmp_path / "queue.yaml")
    status, found = await command(*check)
    assert (status, {one["code"] for one in found["findings"]}) == (1, {"queue-uncovered", "ray-job"})
    _, rest = await command(*check, "--exclude", "cpu", "--exclude", "memory")
    assert {one["code"] for one in rest["findings"]} == {"ray-job"}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"a": 1}, "kubectl"),
        ({"kind": "Pod", "metadata": {"name": "p"}}, "no Job"),
        ({"kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": "many"}}, "Job is not whole"),
        ({"kind": "Job", "metadata": {"name": "j"}, "spec": ["template"]}, "Job is not whole"),
    ],
)
async def test_what_is_no_run_is_not_called_a_good_one(
    command: Command, tmp_path: Path, document: Any, said: str
) -> None:
    (tmp_path / "runs.yaml").write_text(yaml.safe_dump(document))
    status, found = await command("handoff", "check", tmp_path / "runs.yaml")
    assert status == 2
    assert said in found["error"]


# Git


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose commit is on its remote, which has an address by https."""
    bare, work = tmp_path / "bare.git", tmp_path / "checkout"
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (
        ["git", "init", "-q", "--bare", str(bare)],
        ["git", "clone", "-q", str(bare), str(work)],
    ):
        subprocess.run(command, check=True, capture_output=True)
    (work / "sub").mkdir()
    (work / "sub" / "a.py").write_text("1\n")
    for command in (
        ["add", "."],
        [*identity, "commit", "-qm", "first"],
        ["push", "-q", "origin", "HEAD"],
        ["remote", "set-url", "origin", "git@git.example.com:team/code.git"],
    ):
        subprocess.run(["git", "-C", str(work), *command], check=True, capture_output=True)
    return work


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    found = read_checkout(checkout / "sub")
    assert (found.url, found.folder, found.changes) == ("https://git.example.com/team/code.git", "sub", None)
    assert len(found.commit) == 40


def test_what_is_not_committed_goes_along(checkout: Path) -> None:
    (checkout / "sub" / "a.py").write_text("2\n")
    (checkout / "new.py").write_text("3\n")
    found = read_checkout(checkout)
    assert found.changes is not None
    assert set(found.changes.files) == {PATCH, "new.py"}
    found.changes.close()


def test_a_commit_that_was_not_pushed_is_refused(checkout: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    command = ["git", "-C", str(checkout), *identity, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(command, check=True)
    with pytest.raises(GitError, match="Push it first"):
        read_checkout(checkout)


def test_a_workspace_needs_neither_the_cluster_s_nor_the_hub_s_libraries() -> None:
    heavy = [
        "obstore",
        "kubernetes_asyncio",
        "kubespawner",
        "jupyterhub",
        "tornado",
        "prometheus_client",
        "aiohttp",
    ]
    program = (
        "import sys, services.job_handoff.verb_run, services.job_handoff.verb_handoff\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
