"""kubectl on a busy machine: what was not heard is said again, where that does no harm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.devcluster.errors import CommandFailedError, NotReadyError
from tests.devcluster.kube import KubeCluster

UNHEARD = "Unable to connect to the server: net/http: TLS handshake timeout"


def cluster(folder: Path, *answers: str) -> KubeCluster:
    """A cluster whose kubectl fails with these words, one after the other, and works from then on."""
    for number, words in enumerate(answers):
        (folder / f"answer-{number}").write_text(words)
    kubectl = folder / "kubectl"
    kubectl.write_text(
        f"#!/bin/sh\ncd {folder}\necho x >> runs\n"
        'answer=$(ls answer-* 2>/dev/null | head -n 1)\n[ -n "$answer" ] || { echo done; exit 0; }\n'
        'cat "$answer" >&2\nrm "$answer"\nexit 1\n'
    )
    kubectl.chmod(0o755)
    return KubeCluster("played", kubeconfig=folder / "none", kubectl=kubectl, env=os.environ)


def runs(folder: Path) -> int:
    return (folder / "runs").read_text().count("x")


def test_a_question_that_was_not_heard_is_asked_again(tmp_path: Path) -> None:
    assert cluster(tmp_path, UNHEARD, "etcdserver: request timed out").kubectl("get", "nodes") == "done\n"
    assert runs(tmp_path) == 3


@pytest.mark.parametrize(
    ("verb", "words"), [("get", 'pods "a" not found'), ("create", UNHEARD), ("delete", UNHEARD)]
)
def test_an_answer_is_one_and_what_could_happen_twice_is_said_once(
    tmp_path: Path, verb: str, words: str
) -> None:
    with pytest.raises(CommandFailedError) as error:
        cluster(tmp_path, words).kubectl(verb, "pod", "a")
    assert words in error.value.output
    assert runs(tmp_path) == 1


def test_a_wait_outlives_a_lost_connection_and_no_refusal(tmp_path: Path) -> None:
    early = 'Error from server (NotFound): pods "a" not found'
    cluster(tmp_path, early, "http2: client connection lost").wait_for("pod/a", "condition=Ready")
    with pytest.raises(NotReadyError, match="forbidden"):
        cluster(tmp_path, "forbidden").wait_for("pod/a", "condition=Ready")
