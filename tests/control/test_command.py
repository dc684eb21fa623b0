"""`python -m tests.devcluster`: what a person types, with its exit codes, and without any privilege."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.devcluster import claims
from tests.devcluster.client import ROOT, stop
from tests.devcluster.record import runs_dir

NAME = "test-command"
UNPRIVILEGED = (
    ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--") if os.geteuid() == 0 else ()
)
"""Root without capabilities may not do more than anybody else."""


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [*UNPRIVILEGED, sys.executable, "-m", "tests.devcluster", *arguments]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=250)


@pytest.fixture
def cluster_file(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / f"{NAME}.yaml"
    file.write_text("size: control\n")
    yield str(file)
    if claims.is_claimed(NAME):
        stop(NAME)


def test_a_cluster_goes_up_and_down_without_privileges(cluster_file: str) -> None:
    up = command("up", cluster_file)
    assert up.returncode == 0, up.stderr
    assert "API server is ready" in up.stderr
    kubeconfig = command("kubeconfig", "--name", NAME).stdout.strip()
    assert up.stdout.startswith(f"export KUBECONFIG={kubeconfig}\nalias kubectl=/")
    # A person types what follows `eval "$(… up)"` on lines of their own; only then an alias counts.
    told = subprocess.run(
        ["sh", "-e"],
        input=f"{up.stdout}kubectl get --raw=/readyz\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "ok"
    assert Path(kubeconfig).stat().st_mode & 0o077 == 0

    status = command("status", NAME)
    assert status.returncode == 0
    assert status.stdout.startswith(f"{NAME}: ready\n")
    assert "kube-scheduler " in status.stdout

    again = command("up", cluster_file)
    assert again.returncode == 1
    assert f"cluster '{NAME}' is up already" in again.stderr
    assert f"down {NAME}" in again.stderr

    down = command("down", NAME)
    assert (down.returncode, down.stdout) == (0, f"{NAME}: stopped, nothing is left but its logs\n")
    assert command("status", NAME).returncode == 3
    assert "etcd" in command("logs", "--name", NAME).stdout
    assert command("logs", "etcd", "--name", NAME).stdout.strip()


def test_a_program_that_dies_is_named_with_its_last_lines(cluster_file: str) -> None:
    assert command("up", cluster_file).returncode == 0
    killed = command("process", "kill", "kube-scheduler", "--name", NAME)
    assert "stopped" in killed.stdout
    assert command("status", NAME).stdout.startswith(f"{NAME}: ready\n")
    started = command("process", "start", "kube-scheduler", "--name", NAME)
    assert "runs" in started.stdout
    unknown = command("process", "kill", "kube-shceduler", "--name", NAME)
    assert unknown.returncode == 1
    assert "there are: etcd, kube-apiserver" in unknown.stderr


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("size: huge\n", ["size: Input should be 'control' or 'nodes'"]),
        (
            "size: nodes\nnodes: [{name: A_b}]\naddon: []\n",
            ["nodes[0].name: String should match", "addon: Extra inputs are not permitted"],
        ),
        ("size: nodes\n", ["size `nodes` needs at least one entry in `nodes`"]),
        ("- a\n", ["a cluster file is a mapping that begins with `size: control` or `size: nodes`"]),
        ("size: [\n", ["expected the node content"]),
    ],
)
def test_a_wrong_cluster_file_is_refused_with_all_its_problems(
    tmp_path: Path, text: str, problems: list[str]
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    refused = command("up", str(file))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"{file}:\n")
    for problem in problems:
        assert problem in refused.stderr
    assert not (runs_dir() / "wrong").exists()


def test_an_unknown_name_lists_those_there_are() -> None:
    refused = command("up", "contorl")
    assert refused.returncode == 1
    assert "shipped are: control, " in refused.stderr
