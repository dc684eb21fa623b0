"""`gpu-workspaces prepull` from files, and against a service that answers as ours does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.cli import main
from services.prepuller.wants import mark_of
from tests.unit.prepuller import world

IMAGE = world.ref("torch")


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    file = tmp_path / "catalog.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "gpu-workspaces/v1",
                "kind": "Catalog",
                "images": {
                    "torch": {"ref": IMAGE, "displayName": "Torch"},
                    "old": {
                        "ref": "registry.example.org/old:1",
                        "allowTag": True,
                        "displayName": "Old",
                        "architectures": ["arm64"],
                    },
                },
                "profiles": [world.make_profile("p", ["torch"]), world.make_profile("q", ["old"])],
            }
        )
    )
    return str(file)


@pytest.fixture
def nodes(tmp_path: Path) -> str:
    file = tmp_path / "nodes.json"
    items = [
        {"apiVersion": "v1", "kind": "Node", **world.make_node(f"n{number}", images={"pause:1": 1})}
        for number in range(2)
    ]
    file.write_text(json.dumps({"kind": "List", "items": items}))
    return str(file)


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main(["prepull", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_plan_from_files(capsys: pytest.CaptureFixture[str], catalog: str, nodes: str) -> None:
    code, told = called(capsys, "plan", catalog, "--cluster", nodes, "--now", "2026-11-30T08:00:00+00:00")
    assert [(one["node"], one["image"]) for one in told["result"]["fetch"]] == [("n0", IMAGE)]
    assert [(one["node"], one["hold"]) for one in told["result"]["wait"]] == [("n1", "canary")]
    assert {one["code"] for one in told["findings"]} == {"moving-tag", "wrong-architecture"}
    assert code == 0


def test_a_plan_for_people(capsys: pytest.CaptureFixture[str], catalog: str, nodes: str) -> None:
    assert main(["prepull", "plan", catalog, "--cluster", nodes]) == 0
    told = capsys.readouterr()
    assert "n0: fetch registry.example.org/torch@aaaaaaaaaaaa" in told.out
    assert "1 node: registry.example.org/torch@aaaaaaaaaaaa waits: another node tries first" in told.out
    assert "moving-tag" in told.err


def test_a_status_from_files(capsys: pytest.CaptureFixture[str], catalog: str, nodes: str) -> None:
    code, told = called(capsys, "status", catalog, "--cluster", nodes)
    (torch, old) = told["result"]["images"]
    assert (code, torch["states"], old["nodes"]) == (0, {"absent": 2}, 0)


def test_settings_come_from_the_services_own_file(
    capsys: pytest.CaptureFixture[str], catalog: str, nodes: str, tmp_path: Path
) -> None:
    config = tmp_path / "prepuller.yaml"
    config.write_text("catalog: /srv/catalog.yaml\nlimits: {canary: false}\n")
    _, told = called(capsys, "plan", catalog, "--cluster", nodes, "--config", str(config))
    assert len(told["result"]["fetch"]) == 2
    config.write_text("limits: {canari: false}\n")
    assert main(["prepull", "plan", catalog, "--cluster", nodes, "--config", str(config)]) == 2
    assert "limits.canari" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["plan"],
        ["gate"],
        ["plan", "--cluster", "NODES"],
        ["plan", "CATALOG", "--cluster", "EMPTY"],
        ["plan", "CATALOG", "--cluster", "NODES", "--now", "2026-11-30T08:00:00"],
        ["gate", "--url", "http://127.0.0.1:9/services/prepuller"],
    ],
)
def test_what_makes_no_sense_is_not_a_finding(
    arguments: list[str], catalog: str, nodes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"kind": "List", "items": []}')
    names = {"CATALOG": catalog, "NODES": nodes, "EMPTY": str(empty)}
    assert main(["prepull", *(names.get(word, word) for word in arguments)]) == 2
    assert capsys.readouterr().err


class _Service(BaseHTTPRequestHandler):
    """Answers one status after the other; the last one again and again."""

    answers: list[dict[str, Any]]

    def do_GET(self) -> None:
        if self.headers["Authorization"] != "token right":
            self.send_error(403)
            return
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if self.path == "/services/prepuller/api/plan":
            wait = {"image": IMAGE, "node": "n1", "hold": "canary", "text": "another node tries first"}
            answer = {"fetch": [], "wait": [wait], "letGo": [], "wouldFree": []}
        else:
            assert self.path == "/services/prepuller/api/status"
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def status(warm: int) -> dict[str, Any]:
    one = {"image": IMAGE, "pool": "gpu", "profiles": ["p@1"], "required": True, "warm": warm, "nodes": 2}
    return {
        "catalog": "its own",
        "images": [{**one, "away": 0, "blocked": 0, "states": {"pulled": warm}, "usualSeconds": 90}],
        "problems": [],
    }


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    _Service.answers = [status(0), status(1), status(2)]
    server = HTTPServer(("127.0.0.1", 0), _Service)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "right")
    monkeypatch.setattr("services.prepuller.verb._POLL", 0.01)
    yield f"http://127.0.0.1:{server.server_port}/services/prepuller/"
    server.shutdown()
    server.server_close()


def test_the_gate_waits_until_enough_is_warm(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["prepull", "gate", "--url", url, "--least", "90%", "--timeout", "1m", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["result"]["outcome"] == "ready"
    assert [line.partition(": warm on ")[2] for line in printed.err.splitlines()] == [
        "0 of 2 nodes",
        "1 of 2 nodes",
    ], "a pipeline's log shows that something happens"


def test_the_gate_waits_for_the_catalog_that_is_released(
    capsys: pytest.CaptureFixture[str], url: str, catalog: str
) -> None:
    _Service.answers = [status(2), {**status(2), "catalog": mark_of(load_catalog(Path(catalog)))}]
    arguments = ["gate", "--url", url, "--catalog", catalog]
    code, told = called(capsys, *arguments)
    assert (code, "taken over" in told["result"]["missing"][0]) == (1, True)
    assert called(capsys, *arguments, "--timeout", "1m")[0] == 0


PROBLEM = {"subject": IMAGE, "node": "n1", "text": "t", "detail": ""}


@pytest.mark.parametrize(
    ("reason", "exit_code"), [("registry-busy", 0), ("no-room", 0), ("image-not-found", 1)]
)
def test_what_heals_by_itself_is_no_error(
    capsys: pytest.CaptureFixture[str], url: str, reason: str, exit_code: int
) -> None:
    _Service.answers = [{**status(1), "problems": [{**PROBLEM, "reason": reason}]}]
    code, told = called(capsys, "status", "--url", url)
    assert (code, told["findings"][0]["code"]) == (exit_code, reason)


@pytest.mark.parametrize("action", ["status", "gate"])
@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"images": [{}], "problems": []},
        {**status(1), "problems": [{**PROBLEM, "reason": "of-later"}]},
    ],
    ids=["list", "empty", "lacking", "unknown-word"],
)
def test_answers_in_other_words_are_told_as_such(
    capsys: pytest.CaptureFixture[str], url: str, action: str, answer: Any
) -> None:
    _Service.answers = [answer]
    assert main(["prepull", action, "--url", url]) == 2
    assert "answers in words that are not known here" in capsys.readouterr().err


def test_names_that_the_catalog_does_not_have_are_told(
    capsys: pytest.CaptureFixture[str], catalog: str, nodes: str, tmp_path: Path
) -> None:
    config = tmp_path / "prepuller.yaml"
    config.write_text("schedule: [{profile: pp, at: '09:00', seats: 3}]\n")
    code, told = called(capsys, "plan", catalog, "--cluster", nodes, "--config", str(config))
    found = [one for one in told["findings"] if one["code"] == "unknown-name"]
    assert (code, [(one["path"], one["help"]) for one in found]) == (
        1,
        [("schedule[0].profile", "Did you mean p?")],
    )


def test_the_gate_without_time_answers_at_once(capsys: pytest.CaptureFixture[str], url: str) -> None:
    code, told = called(capsys, "gate", "--url", url)
    assert (code, told["result"]["outcome"]) == (1, "waiting")
    assert told["findings"][0]["code"] == "gate-waiting"


def test_a_status_from_the_service(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["prepull", "status", "--url", url]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2:] == ["0/2", "0", "0", "0", "0", "2", "min"]


def test_a_plan_from_the_service(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["prepull", "plan", "--url", url]) == 0
    assert "1 node: registry.example.org/torch@aaaaaaaaaaaa waits" in capsys.readouterr().out


def test_a_wrong_token_is_told(
    capsys: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "wrong")
    assert main(["prepull", "status", "--url", url]) == 2
    assert "JUPYTERHUB_API_TOKEN" in capsys.readouterr().err
