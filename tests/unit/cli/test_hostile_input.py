"""Every verb that reads files, with files that nobody would give it on purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hub_ext.cli import main

ROOT = Path(__file__).resolve().parents[3]
CATALOG = ROOT / "tests" / "demo" / "catalog.yaml"
FACTS = ROOT / "tests" / "golden" / "facts.yaml"
POD = {"kind": "Pod", "metadata": {"name": "\ud800"}}
FILES = {
    "nothing": None,
    "binary": bytes(range(256)) * 20,
    "utf-16": "a: 1".encode("utf-16"),
    "list": b"- a\n- b\n",
    "scalar": b"42\n",
    "empty": b"",
    "deep": b"[" * 3000,
    "long number": b'{"kind": ' + b"9" * 5000 + b"}",
    "aliases": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)),
    "inside itself": b"a: &a {b: *a}\n",
    "program": b'!!python/object/apply:os.system ["echo hi"]\n',
    "half an object": json.dumps(POD).encode(),
    "odd object": b'{"kind": ["Pod"], "metadata": null}',
}
VERBS = {
    "validate": ["validate", "FILE"],
    "diff": ["diff", "CATALOG", "FILE"],
    "render": ["render", "FILE", "--target", "z2jh"],
    "baseline": [
        "render",
        "CATALOG",
        "--target",
        "pod",
        "--user",
        "ada",
        "--groups",
        "nlp",
        "--baseline",
        "FILE",
    ],
    "explain": ["explain", "FILE", "--user", "ada"],
    "import": ["import", "FILE"],
    "quota": ["quota", "CATALOG", "--cluster", "FILE"],
    "phases": ["phases", "FILE"],
    "phases of a cluster": ["phases", "--cluster", "FILE"],
    "manifests": ["manifests", "FILE"],
    "preflight": ["preflight", "--offline", "--values", "FILE"],
    "preflight of a dump": ["preflight", "--cluster", "FILE"],
    "doctor": ["doctor", "--facts", "FILE"],
    "handoff": ["handoff", "check", "FILE"],
    "handoff by queue": ["handoff", "check", "JOB", "--queue", "FILE"],
    "prepull": ["prepull", "plan", "CATALOG", "--cluster", "FILE"],
    "prepull by settings": ["prepull", "plan", "CATALOG", "--cluster", "NODES", "--config", "FILE"],
    "prepull by starts": ["prepull", "plan", "CATALOG", "--cluster", "NODES", "--starts", "FILE"],
    "cull": ["cull", "judge", "FILE"],
    "cull by settings": ["cull", "replay", "FACTS", "--settings", "FILE"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_file_gets_a_sentence_and_none_a_trace(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in FILES.items():
        file = tmp_path / name.replace(" ", "-")
        if content is not None:
            file.write_bytes(content)
        nodes = tmp_path / "nodes.json"
        nodes.write_text('{"kind": "Node", "metadata": {"name": "n1"}}')
        job = tmp_path / "job.json"
        job.write_text('{"kind": "Job", "metadata": {"name": "j"}}')
        words = {
            "FILE": str(file),
            "CATALOG": str(CATALOG),
            "FACTS": str(FACTS),
            "NODES": str(nodes),
            "JOB": str(job),
        }
        arguments = [words.get(word, word) for word in VERBS[verb]]
        assert main(arguments) in {0, 1, 2}
        said = capsys.readouterr()
        status = main([*arguments, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert told["status"] == status
        assert "Traceback" not in said.err
        if status == 2:
            assert said.err.strip(), (name, "an error has a sentence")
            assert told.get("error") or told["findings"], (name, "in JSON too")


def command(*arguments: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-m", "hub_ext.cli", *arguments]


def environment(**changes: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **changes}  # no HOME


def test_any_locale_and_any_name_of_a_file(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.yaml"
    for arguments in ([name], [name, "--json"]):
        done = subprocess.run(
            command("validate", *arguments),
            capture_output=True,
            check=False,
            env=environment(LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        )
        assert done.returncode == 2, done.stderr
        assert b"caf\\udce9.yaml" in done.stdout + done.stderr
        assert b"Traceback" not in done.stderr


def test_who_reads_only_the_beginning_is_not_answered_with_a_trace() -> None:
    """As `gpu-workspaces … | head -1`: more than a pipe holds is written to nobody."""
    arguments = command("render", str(CATALOG), "--target", "workspacekind", "--json")
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 2


def test_ctrl_c_ends_it_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    import hub_ext.cli.validate

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt  # sent as a signal, it would not come where a shell runs this behind itself

    monkeypatch.setattr(hub_ext.cli.validate, "run", interrupted)
    assert main(["validate", str(CATALOG)]) == 130
