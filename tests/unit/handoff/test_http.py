"""The service over HTTP: the REST interface, what pods ask, and the program in the pods, for real."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import quote

import httpx
import pytest
import yaml

from services.base import CatalogFile
from services.job_handoff.core import RUNNER
from services.job_handoff.ids import Claims, token_for
from services.job_handoff.runner import sending
from services.job_handoff.runner.client import Service
from services.job_handoff.store import StoreError

from .conftest import CATALOG, DIGEST, NOTEBOOK, PREFIX, SOURCE, World, archive, body, start_for_test


def bob(client: httpx.AsyncClient) -> dict[str, str]:
    return {"Authorization": "token bob"}


async def test_from_an_upload_to_a_canceled_run(ada: httpx.AsyncClient, world: World) -> None:
    content = archive({"new.py": "print(2)"})
    digest = hashlib.sha256(content).hexdigest()
    assert (await ada.get(f"api/snapshots/{digest}")).status_code == 404
    sent = await ada.put(f"api/snapshots/{digest}", content=content)
    assert (sent.status_code, sent.json()["files"]) == (201, 1)
    request = body(source={"type": "snapshot", "sha256": digest}, entry={"type": "script", "path": "new.py"})
    made = await ada.post("api/runs", json=request)
    assert made.status_code == 201
    run = made.json()["id"]
    assert (await ada.post("api/runs", json=request)).status_code == 200
    assert [one["id"] for one in (await ada.get("api/runs")).json()["runs"]] == [run]
    ended = (await ada.post(f"api/runs/{run}/cancel", json={})).json()
    assert ended["status"]["phase"] == "canceled"
    assert world.kube.all_for_test("jobs") == []
    assert (await ada.get(f"api/runs/{run}")).json()["status"]["phase"] == "canceled"


async def test_pages_say_when_a_schedule_starts_next(ada: httpx.AsyncClient) -> None:
    daily = {"cron": "0 6 * * *", "timeZone": "Europe/Berlin"}
    run = (await ada.post("api/runs", json=body(schedule=daily))).json()["id"]
    told = (await ada.get(f"api/runs/{run}")).json()
    for page in ("", f"runs/{run}"):
        text = (await ada.get(page)).text
        assert told["status"]["text"] in text
        assert f'datetime="{told["next"]}" data-zone="Europe/Berlin"' in text
        assert "localize(document)" in text
    await ada.post(f"api/runs/{run}/pause", json={})
    for page in ("", f"runs/{run}"):
        text = (await ada.get(page)).text
        assert "Paused" in text
        assert "data-zone=" not in text


async def test_another_s_run_is_as_if_it_were_not_there(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("api/runs", json=body())).json()["id"]
    for method, path in (
        ("GET", f"api/runs/{run}"),
        ("GET", f"api/runs/{run}/log"),
        ("GET", f"api/runs/{run}/files"),
        ("GET", f"api/runs/{run}/files/a"),
        ("POST", f"api/runs/{run}/cancel"),
        ("POST", f"api/runs/{run}/retry"),
        ("GET", f"runs/{run}"),
    ):
        answer = await ada.request(method, path, json={} if method == "POST" else None, headers=bob(ada))
        assert answer.status_code == 404, path
    assert (await ada.get("api/runs", headers=bob(ada))).json() == {"runs": []}
    assert (await ada.get("all", headers=bob(ada))).status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_what_a_foreign_page_can_send_is_not_taken(ada: httpx.AsyncClient, kind: str) -> None:
    answer = await ada.post("api/runs", content=json.dumps(body()), headers={"Content-Type": kind})
    assert answer.status_code == 415


async def test_an_upload_that_is_not_what_it_says_is_refused(ada: httpx.AsyncClient) -> None:
    wrong = await ada.put(f"api/snapshots/{'0' * 64}", content=SOURCE)
    assert (wrong.status_code, wrong.json()["reason"]) == (400, "source-unsafe")
    secret = archive({"a.py": "KEY = 'AKIAABCDEFGHIJKLMNOP'"})
    answer = await ada.put(f"api/snapshots/{hashlib.sha256(secret).hexdigest()}", content=secret)
    assert answer.json()["reason"] == "credential-in-source"
    assert "AKIA" not in answer.text


async def test_a_page_shows_what_users_wrote_as_text(ada: httpx.AsyncClient) -> None:
    evil = "<script>alert(1)</script>"
    run = (await ada.post("api/runs", json=body(name=evil))).json()["id"]
    for path in ("", f"runs/{run}"):
        page = await ada.get(path)
        assert page.status_code == 200
        assert evil not in page.text
        assert "&lt;script&gt;" in page.text


async def test_the_page_of_a_schedule_leads_to_its_runs(ada: httpx.AsyncClient, world: World) -> None:
    asked = body(schedule={"cron": "0 6 * * 1-5", "timeZone": "Europe/Berlin"})
    schedule = (await ada.post("api/runs", json=asked)).json()["id"]
    assert "There are none yet" in (await ada.get(f"runs/{schedule}")).text
    start_for_test(world, schedule, f"{schedule}-29384756")
    page = await ada.get(f"runs/{schedule}")
    assert f'href="{PREFIX}runs/{schedule}-29384756"' in page.text
    assert "0 6 * * 1-5 (Europe/Berlin)" in page.text


async def test_the_form_submits_and_says_why_not(ada: httpx.AsyncClient) -> None:
    form = await ada.get("new", params={"snapshot": DIGEST, "path": "train.ipynb"})
    assert 'value="cpu"' in form.text
    fields = {"key": "f", "snapshot": DIGEST, "path": "train.py", "profile": "cpu", "arguments": "--lr 'a b'"}
    refused = await ada.post("new", data=fields | {"retries": "many"})
    assert refused.status_code == 400
    assert "a whole number" in refused.text
    trial = await ada.post("new", data=fields | {"do": "check"})
    assert "has room for it now" in trial.text
    done = await ada.post("new", data=fields)
    assert done.status_code == 303
    changed = await ada.post("new", data=fields | {"retries": "1"})
    assert changed.status_code == 409
    assert "sent before with other values" in changed.text
    assert 'name="key" value="f"' not in changed.text
    assert (await ada.get(done.headers["Location"].removeprefix(PREFIX))).status_code == 200


async def test_a_form_that_was_checked_or_cloned_keeps_all_answers(ada: httpx.AsyncClient) -> None:
    asked = {
        "kind:card": "trainjob",
        "nodes:card": "2",
        "choice:card:cards": "one",
        "maxDuration": "2h",
        "retries": "2",
        "launcher": "torchrun",
    }
    fields = {"key": "c", "snapshot": DIGEST, "path": "train.py", "profile": "card", **asked}
    checked = await ada.post("new", data=fields | {"do": "check", "kernel": "py", "nodes:slice": "2"})
    cloned = await made_into_a_form(ada, fields)
    for page in (checked.text, cloned):
        assert '<option value="trainjob" selected>' in page
        assert 'name="nodes:card" value="2"' in page
        assert 'name="maxDuration" value="2h"' in page
        assert 'name="retries" value="2"' in page
        assert "<option selected>torchrun</option>" in page
    assert 'name="nodes:slice" value="2"' in checked.text
    assert 'name="kernel" value="py"' in checked.text


async def test_a_clone_of_any_size_needs_no_long_link(ada: httpx.AsyncClient) -> None:
    """Proxies cut links off long before a request has reached its bound."""
    entry = {"type": "notebook", "path": "train.ipynb", "parameters": {"x": "y" * 50_000}}
    run = (await ada.post("api/runs", json=body(entry=entry))).json()["id"]
    answer = await ada.get(f"runs/{run}/clone")
    assert (answer.status_code, len(answer.headers["Location"]) < 200) == (302, True)
    form = await ada.get(answer.headers["Location"].removeprefix(PREFIX))
    assert "y" * 50_000 in form.text
    for path in (f"runs/{run}/clone", f"new?clone={run}", "new?clone=run-gone", "runs/run-gone/clone"):
        other = await ada.get(path, headers=bob(ada))
        assert (other.status_code, "yyyy" in other.text) == (404, False), path


async def made_into_a_form(ada: httpx.AsyncClient, fields: dict[str, str]) -> str:
    """Submit a run and give the form that is made of it."""
    done = await ada.post("new", data=fields)
    assert done.status_code == 303, done.text
    place = done.headers["Location"].removeprefix(PREFIX)
    return (await ada.get(f"{place}/clone", follow_redirects=True)).text


async def test_a_catalog_that_changes_between_the_check_and_the_submission_decides(
    ada: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fields = {"key": "c", "snapshot": DIGEST, "path": "train.py", "profile": "card"}
    run = (await ada.post("api/runs", json=body(profile="card"))).json()["id"]
    assert "has room for it now" in (await ada.post("new", data=fields | {"do": "check"})).text
    changed = yaml.safe_load(CATALOG.read_text())
    changed["profiles"] = [one for one in changed["profiles"] if one["name"] != "card"]
    (tmp_path / "catalog.yaml").write_text(yaml.safe_dump(changed))
    catalogs = CatalogFile(tmp_path / "catalog.yaml")
    core = replace(world.service.core, catalogs=catalogs)
    for part in (world.service, world.service.desk, world.service.desk._judge, world.service.board):
        monkeypatch.setattr(part, "core" if part is world.service else "_core", core)
    refused = await ada.post("new", data=fields)
    assert refused.status_code == 400
    assert "No workspace “card” is offered to you" in refused.text
    world.kube.end_for_test(run, succeeded=False)
    again = await ada.post(f"api/runs/{run}/retry", json={})
    assert (again.json()["reason"], len(world.kube.all_for_test("jobs"))) == ("unknown-profile", 1)
    assert (await ada.get(f"runs/{run}")).status_code == 200
    clone = await ada.get(f"runs/{run}/clone", follow_redirects=True)
    assert "not offered to you any more" in clone.text


async def test_an_answer_that_was_checked_is_shown_again(ada: httpx.AsyncClient) -> None:
    fields = {"key": "c", "snapshot": DIGEST, "path": "train.py", "profile": "card"}
    for answer in ("one", "four"):
        page = await ada.post("new", data=fields | {"choice:card:cards": answer, "do": "check"})
        assert f'<option value="{answer}" selected>' in page.text


async def test_without_the_store_what_runs_is_shown_and_can_be_ended(
    ada: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = (await ada.post("api/runs", json=body())).json()["id"]
    world.kube.pod_for_test(run)

    async def away(*_arguments: object, **_more: object) -> None:
        raise StoreError("no answer")

    for name in ("get", "list", "put"):
        monkeypatch.setattr(world.service.core.store, name, away)
    listed = (await ada.get("api/runs")).json()
    assert [one["id"] for one in listed["runs"]] == [run]
    assert "Runs that ended before are not shown" in listed["notice"]
    assert "Runs that ended before are not shown" in (await ada.get("")).text
    page = await ada.get(f"runs/{run}")
    assert page.status_code == 200
    assert "does not answer at the moment" in page.text
    assert "hello" in page.text, "the log is the pod's"
    ended = await ada.post(f"runs/{run}", data={"do": "cancel"})
    assert ended.status_code == 303
    assert world.kube.workload_for_test(run)["spec"]["active"] is False


# What pods ask


def token(world: World, run: str, **claims: str) -> dict[str, str]:
    whole = {"team": "nlp", "user": "ada", "run": run, "lineage": run, **claims}
    return {"X-Run-Token": token_for(world.service.core.secret, Claims(**whole))}


async def test_a_run_s_token_opens_its_own_folder_only(ada: httpx.AsyncClient, world: World) -> None:
    mine, other = "run-aaaaaaaaaaaaaaaa", "run-bbbbbbbbbbbbbbbb"
    headers = token(world, mine)
    assert (await ada.get(f"runner/{mine}/source/{DIGEST}", headers=headers)).content == SOURCE
    for path in (f"runner/{other}/source/{DIGEST}", f"runner/{other}/place?name=outputs/a"):
        assert (await ada.get(path, headers=headers)).status_code == 403
    forged = {"X-Run-Token": headers["X-Run-Token"][:-1] + "0"}
    assert (await ada.get(f"runner/{mine}/checkpoints", headers=forged)).status_code in {403}
    for name in ("outputs/../../x", "/etc/passwd", "other/a", "outputs", "outputs/\0"):
        answer = await ada.get(f"runner/{mine}/place", params={"name": name}, headers=headers)
        assert answer.status_code == 400, name
    # A token of a schedule is good for each of its runs.
    assert (await ada.get(f"runner/{mine}-29384756/checkpoints", headers=headers)).status_code == 200


async def test_half_an_upload_leaves_what_was_there(ada: httpx.AsyncClient, world: World, url: str) -> None:
    run = "run-aaaaaaaaaaaaaaaa"
    headers = token(world, run)
    place = f"runner/{run}/file?name=outputs/a.txt"
    assert (await ada.put(place, content=b"first", headers=headers)).status_code == 204
    host = httpx.URL(url)
    reader, writer = await asyncio.open_connection(host.host, host.port)
    lines = [f"PUT {PREFIX}{place} HTTP/1.1", f"Host: {host.host}", "Content-Length: 1000"]
    lines += [f"{key}: {value}" for key, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\nhalf").encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (
        await ada.put(f"runner/{run}/file?name=outputs/b", content=b"x", headers=headers)
    ).status_code == 204
    assert await world.store.get(f"nlp/ada/runs/{run}/outputs/a.txt") == b"first"
    del reader


@pytest.mark.parametrize(("full", "status"), [(True, 507), (False, 503)])
async def test_an_upload_that_the_store_gives_up_hears_why(
    ada: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch, full: bool, status: int
) -> None:
    async def give_up(_path: str, content: AsyncIterator[bytes]) -> bool:
        await anext(content)
        raise StoreError("No space left" if full else "no answer", fault="full" if full else None)

    monkeypatch.setattr(world.service.core.store, "put", give_up)
    run = "run-aaaaaaaaaaaaaaaa"
    answer = await ada.put(
        f"runner/{run}/file?name=outputs/a", content=b"x" * (12 * 2**20), headers=token(world, run)
    )
    assert answer.status_code == status


@pytest.mark.parametrize("pieces", [False, True])
async def test_an_upload_beyond_the_limit_is_refused_in_plain_words(
    ada: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch, pieces: bool
) -> None:
    settings = world.service.settings
    bounds = settings.bounds.model_copy(update={"source_packed": 2**20})
    monkeypatch.setattr(world.service, "settings", settings.model_copy(update={"bounds": bounds}))

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(12):
            yield b"x" * 2**20

    content = chunks() if pieces else b"x" * (12 * 2**20)
    answer = await ada.put(f"api/snapshots/{'0' * 64}", content=content)
    assert (answer.status_code, answer.json()["reason"]) == (413, "source-too-large")
    assert "1 MiB are allowed" in answer.json()["message"]


class Cuts(http.server.BaseHTTPRequestHandler):
    """A service whose connections break off in the middle of the first answers."""

    cuts: ClassVar[int]
    content: ClassVar[bytes]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        cut = type(self).cuts > 0
        type(self).cuts -= 1
        self.wfile.write(self.content[:-7] if cut else self.content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def cutting() -> Iterator[tuple[Service, type[Cuts]]]:
    kind: type[Cuts] = type("Once", (Cuts,), {"cuts": 1, "content": json.dumps(["x" * 100_000]).encode()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Service(f"http://127.0.0.1:{server.server_port}/", "t", "run-a"), kind
        server.shutdown()
        thread.join()


def test_a_download_that_was_cut_is_fetched_again(
    cutting: tuple[Service, type[Cuts]], tmp_path: Path
) -> None:
    service, kind = cutting
    service.get("checkpoint?name=a", tmp_path / "a", patience=30.0)
    assert (tmp_path / "a").read_bytes() == kind.content
    kind.cuts = 1
    assert service.ask("checkpoints", patience=30.0) == ["x" * 100_000]
    kind.cuts = 9
    with pytest.raises(OSError, match="of 100004 bytes came"):
        service.get("checkpoint?name=a", tmp_path / "a", patience=0.0)


class Pod:
    """The program in the pods, as a process of this machine."""

    def __init__(self, world: World, url: str, folder: Path) -> None:
        self.world, self.url, self.folder = world, url, folder

    async def start(self, run: str) -> asyncio.subprocess.Process:
        """Start the runner with what the run's Job says."""
        job = next(one for one in self.world.kube.all_for_test("jobs") if one["metadata"]["name"] == run)
        container = job["spec"]["template"]["spec"]["containers"][0]
        told = {one["name"]: one["value"].replace("$$", "$") for one in container["env"] if "value" in one}
        spec = json.loads(told["HANDOFF_SPEC"])
        spec["source"].pop("file", None)
        here = {
            "HANDOFF_SPEC": json.dumps(spec),
            "HANDOFF_URL": self.url,
            "HANDOFF_WORK": str(self.folder / "work"),
            "HANDOFF_TERMINATION": str(self.folder / "word"),
            "HOSTNAME": f"{run}-pod",
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
        }
        package = self.folder / "handoff"
        if not package.exists():
            package.symlink_to(RUNNER)
        command = container["command"][2].replace("'/opt'", repr(str(self.folder)))
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            command,
            env=told | here,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, run: str) -> SimpleNamespace:
        """Run it to its end."""
        process = await self.start(run)
        output, _ = await process.communicate()
        word = self.folder / "word"
        said = json.loads(word.read_text()) if word.exists() else {}
        return SimpleNamespace(code=process.returncode, output=output.decode(), said=said)


@pytest.fixture
def pod(world: World, url: str, tmp_path: Path) -> Pod:
    (tmp_path / "pod").mkdir()
    return Pod(world, url, tmp_path / "pod")


async def submitted(ada: httpx.AsyncClient, world: World, files: dict[str, str], **more: Any) -> str:
    digest = await world.upload(content=archive(files))
    answer = await ada.post("api/runs", json=body(source={"type": "snapshot", "sha256": digest}, **more))
    assert answer.status_code == 201, answer.text
    run: str = answer.json()["id"]
    return run


async def test_a_script_runs_in_its_files_and_leaves_results(
    ada: httpx.AsyncClient, world: World, pod: Pod
) -> None:
    script = (
        "import os, sys, pathlib\n"
        "print(sys.argv[1:], open('data.txt').read(), os.environ.get('HANDOFF_TOKEN'))\n"
        "pathlib.Path('outputs/deep').mkdir(); pathlib.Path('outputs/deep/r.txt').write_text('42')\n"
    )
    entry = {"type": "script", "path": "train.py", "arguments": ["a b", "$(id)", "--x=$HOME"]}
    run = await submitted(ada, world, {"train.py": script, "data.txt": "data"}, entry=entry)
    ended = await pod.run(run)
    assert ended.code == 0, ended.output
    assert "['a b', '$(id)', '--x=$HOME'] data None" in ended.output
    assert (await ada.get(f"api/runs/{run}/files")).json()["files"] == [{"name": "deep/r.txt", "size": 2}]
    file = await ada.get(f"api/runs/{run}/files/deep/r.txt")
    assert (file.content, file.headers["Content-Disposition"][:10]) == (b"42", "attachment")
    assert ended.said["reason"] == "succeeded"


async def test_a_container_that_is_started_again_does_not_begin_the_program_again(
    ada: httpx.AsyncClient, world: World, pod: Pod
) -> None:
    script = "open('begun', 'x')\nprint('was here')\nraise SystemExit(3)\n"
    run = await submitted(ada, world, {"train.py": script}, entry={"type": "script", "path": "train.py"})
    first, second = await pod.run(run), await pod.run(run)
    assert (first.code, first.said["reason"]) == (3, "program-failed")
    assert (second.code, second.said) == (first.code, first.said)
    assert "was here" in second.output
    assert "FileExistsError" not in second.output


@pytest.mark.parametrize(
    ("script", "reason", "code"),
    [
        ("raise SystemExit(3)", "program-failed", 3),
        ("raise RuntimeError('torch.OutOfMemoryError: CUDA out of memory. Tried')", "gpu-out-of-memory", 1),
        ("import os; os.kill(os.getpid(), 9)", "out-of-memory", 137),
    ],
)
async def test_why_a_program_ended(
    ada: httpx.AsyncClient, world: World, pod: Pod, script: str, reason: str, code: int
) -> None:
    run = await submitted(ada, world, {"train.py": script})
    ended = await pod.run(run)
    assert (ended.said["reason"], ended.code) == (reason, code)


async def test_a_run_that_is_ended_saves_a_checkpoint_and_goes_on_from_it(
    ada: httpx.AsyncClient, world: World, pod: Pod
) -> None:
    script = (
        "import os, pathlib, signal, sys, time\n"
        "place = pathlib.Path(os.environ['HANDOFF_WORK']) / 'checkpoints'\n"
        "step = place / 'step'\n"
        "if os.environ['RESUME'] == '1':\n"
        "    print('resumed at', step.read_text()); sys.exit()\n"
        "def end(*_):\n"
        "    step.write_text('7'); print('saved', flush=True); sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.1)\n"
    )
    run = await submitted(ada, world, {"train.py": script})
    process = await pod.start(run)
    assert process.stdout is not None
    while b"ready" not in await process.stdout.readline():
        pass
    process.terminate()
    await process.communicate()
    assert (process.returncode, json.loads((pod.folder / "word").read_text())["reason"]) == (
        143,
        "ended-by-cluster",
    )
    assert await world.store.get(f"nlp/ada/checkpoints/{run}/step") == b"7"
    again = await pod.run(run)
    assert "resumed at 7" in again.output


async def test_a_notebook_comes_back_executed(ada: httpx.AsyncClient, world: World, pod: Pod) -> None:
    """With its parameters as they were sent: read as YAML, `1e-05` is a text and an emoji two halves."""
    name = "-my {note}book.ipynb"
    sent = {"lr": 1e-05, "face": "😀 é \x7f", "date": "2026-01-01", "deep": [{"no": None}], "x": "$(id)"}
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    said = "import json; open('outputs/x', 'w').write('x'); print(json.dumps([lr, face, date, deep, x]))"
    cells = [
        {**cell, "id": "a", "metadata": {"tags": ["parameters"]}, "source": "lr = 1"},
        {**cell, "id": "b", "source": said},
        {**cell, "id": "c", "source": "assert lr < 1"},
    ]
    notebook = json.dumps(NOTEBOOK | {"cells": cells})
    entry = {"type": "notebook", "path": name, "parameters": sent}
    run = await submitted(ada, world, {name: notebook}, entry=entry)
    ended = await pod.run(run)
    assert ended.code == 0, ended.output
    names = {one["name"] for one in (await ada.get(f"api/runs/{run}/files")).json()["files"]}
    assert names == {name, "x"}
    executed = (await ada.get(f"api/runs/{run}/files/{quote(name)}")).json()
    (output,) = executed["cells"][2]["outputs"]
    assert json.loads("".join(output["text"])) == list(sent.values())
    progress = json.loads(await world.store.get(f"nlp/ada/runs/{run}/logs/progress.json") or b"{}")
    assert progress["done"] == progress["cells"] == 4


async def test_results_with_any_name_do_not_end_the_run(
    ada: httpx.AsyncClient, world: World, pod: Pod
) -> None:
    script = (
        "import os\n"
        "names = ['ünï 🙂.txt', '-rf', 'a b%2F.txt', 'line\\nfeed', 'x' * 200]\n"
        "for name in names:\n"
        "    open('outputs/' + name, 'w').write('x')\n"
        "open(b'outputs/caf\\xe9', 'w').write('x')\n"
        "os.symlink('/etc/passwd', 'outputs/link')\n"
        "os.mkfifo('outputs/pipe')\n"
    )
    run = await submitted(ada, world, {"train.py": script})
    ended = await pod.run(run)
    assert (ended.code, ended.said["reason"]) == (0, "results-not-kept"), ended.output
    names = {one["name"] for one in (await ada.get(f"api/runs/{run}/files")).json()["files"]}
    assert names == {"ünï 🙂.txt", "-rf", "a b%2F.txt", "x" * 200}
    for name in names:
        assert (await ada.get(f"api/runs/{run}/files/{quote(name)}")).content == b"x"
    assert "its name is no text" in ended.output
    world.kube.end_for_test(run)
    status = (await ada.get(f"api/runs/{run}")).json()["status"]
    assert (status["phase"], status["reason"]) == ("succeeded", "results-not-kept")
    assert "not all results could be kept" in status["text"]


@pytest.mark.parametrize(
    ("files", "entry", "reason"),
    [
        ({"train.py": "print('ran')", "outputs": "a file"}, {}, "succeeded"),
        ({"train.py": ""}, {"launcher": "torchrun"}, "launcher-missing"),
    ],
)
async def test_what_is_wrong_here_is_not_blamed_on_the_service(
    ada: httpx.AsyncClient, world: World, pod: Pod, files: dict[str, str], entry: dict[str, str], reason: str
) -> None:
    run = await submitted(ada, world, files, entry={"type": "script", "path": "train.py", **entry})
    ended = await pod.run(run)
    assert ended.said["reason"] == reason, ended.output


async def test_a_source_that_was_changed_on_the_way_is_not_run(
    ada: httpx.AsyncClient, world: World, pod: Pod
) -> None:
    run = await submitted(ada, world, {"train.py": "print('mine')"})
    (digest,) = [
        one.path
        for one in await world.store.list("_none/ada/snapshots")
        if one.path.endswith("gz") and DIGEST not in one.path
    ]
    await world.store.put(digest, archive({"train.py": "print('theirs')"}))
    ended = await pod.run(run)
    assert (ended.code, ended.said["reason"]) == (42, "source-lost")
    assert "theirs" not in ended.output.replace("print('theirs')", "")


async def test_a_large_notebook_is_neither_read_nor_sent_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outputs would take the memory of the program that makes them."""
    notebook, news = tmp_path / "executed.ipynb", tmp_path / "progress.json"
    cells = [{"cell_type": "code", "metadata": {"papermill": {"status": "completed"}}}]
    notebook.write_text(json.dumps({"cells": cells}))
    for name, place in (("NOTEBOOK", notebook), ("NEWS", news), ("LOG", tmp_path / "log")):
        monkeypatch.setattr(sending, name, place)
    monkeypatch.setattr(sending, "CHECKPOINTS", tmp_path / "checkpoints")
    assert sending.note_progress()
    assert json.loads(news.read_text()) == {"cells": 1, "done": 1}
    monkeypatch.setattr(sending, "LARGEST_READ", 10)
    monkeypatch.setattr(sending, "SLOWEST", 0.001)
    assert not sending.note_progress()
    sent: list[str] = []
    service = SimpleNamespace(put=lambda name, _file, _patience: sent.append(name))
    spec = {"notebook": True, "entry": {"path": "a.ipynb"}, "checkpoints": False, "fileSize": 10**9}
    sender = sending.Sender(spec, service, tmp_path, "pod")  # type: ignore[arg-type]
    for step in range(3):
        notebook.write_text(json.dumps({"cells": cells, "step": step}))
        sender.round()
    assert sent.count("outputs/a.ipynb") == 1
    sender.round(patience=1)
    assert sent.count("outputs/a.ipynb") == 2
