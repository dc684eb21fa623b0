"""Runs on real nodes under the real Kueue, Trainer and KubeRay, with a real object store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image
from tests.devcluster.cluster import Cluster
from tests.devcluster.object_store import ObjectStore, running_object_store
from tests.nodes.handoff import BUCKET, Handoff, running_handoff

NODES = {"devcluster.test/pool": "cpu"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("store")) as found:
        found.make_bucket(BUCKET)
        yield found


@pytest.fixture(scope="module")
def base(batch_cluster: Cluster) -> str:
    """An image with Python and nothing else."""
    return Registry(batch_cluster).publish(ensure_image("base"), "tests/base")


@pytest.fixture(scope="module")
def notebook(batch_cluster: Cluster) -> str:
    """The image that workspaces have."""
    return Registry(batch_cluster).publish(ensure_image("notebook"), "tests/notebook")


def catalog_of(images: dict[str, str]) -> dict[str, Any]:
    """What runs are offered here; the team may have two CPUs at once."""
    small = {"cpu": {"request": "500m", "limit": 1}, "memory": "256Mi", "pool": "cpu"}
    tiny = {"cpu": {"request": "200m", "limit": 1}, "memory": "64Mi", "pool": "cpu"}
    everyone = {"access": {"everyone": True}, "version": 1}
    profiles = [
        {"name": "cpu", "displayName": "C", "images": ["base"], "resources": small},
        {"name": "tiny", "displayName": "T", "images": ["base"], "resources": tiny},
        {
            "name": "notebook",
            "displayName": "N",
            "images": ["notebook"],
            "resources": small | {"memory": "512Mi"},
        },
    ]
    return {
        "apiVersion": "gpu-workspaces/v1",
        "kind": "Catalog",
        "images": {name: {"ref": ref, "displayName": name} for name, ref in images.items()},
        "pools": {"cpu": {"nodeSelector": NODES}},
        "teams": {"nlp": {"groups": ["nlp"], "quota": {"cpu": "900m"}}},
        "jobs": {
            "priorities": {
                "normal": {"displayName": "Normal", "value": 0, "default": True},
                "urgent": {"displayName": "Urgent", "value": 100},
            }
        },
        "profiles": [one | everyone | {"jobs": {}} for one in profiles if one["images"][0] in images],
    }


@pytest.fixture
async def handoff(
    request: pytest.FixtureRequest,
    batch_cluster: Cluster,
    store: ObjectStore,
    base: str,
    namespace: str,
    tmp_path: Path,
) -> AsyncIterator[Handoff]:
    others = {"notebook", "ray"} & set(request.fixturenames)
    images = {"base": base} | {name: request.getfixturevalue(name) for name in others}
    async with running_handoff(
        batch_cluster,
        store,
        namespace=f"{namespace}-runs",
        folder=tmp_path,
        catalog=catalog_of(images),
    ) as running:
        yield running


def folder_of(tmp_path: Path, name: str, files: dict[str, str]) -> Path:
    folder = tmp_path / name
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


async def test_a_script_runs_and_its_results_come_back(handoff: Handoff, tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        "first",
        {
            "lib/words.py": "WORD = 'hello'",
            "train.py": "import os, sys\nsys.path.insert(0, 'lib')\nimport words\n"
            "print(words.WORD, *sys.argv[1:], os.environ['RESUME'], 'HANDOFF_TOKEN' in os.environ)\n"
            "open('outputs/result.txt', 'w').write(words.WORD)\n",
        },
    )
    run = await handoff.submit(folder, {"type": "script", "path": "train.py", "arguments": ["$HOME", "a b"]})
    seen = await handoff.until(run, "succeeded")
    assert await handoff.file(run, "result.txt") == b"hello"
    assert "hello $HOME a b 0 False" in await handoff.service.board.log(seen)
    assert [step.text for step in seen.steps][:2] == ["Submitted", "Waiting in the queue"]


NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "cells": [
        {
            "id": "a",
            "cell_type": "code",
            "metadata": {"tags": ["parameters"]},
            "source": "lr = 1",
            "outputs": [],
            "execution_count": None,
        },
        {
            "id": "b",
            "cell_type": "code",
            "metadata": {},
            "source": "print('rate', lr * 2)",
            "outputs": [],
            "execution_count": None,
        },
        {
            "id": "c",
            "cell_type": "code",
            "metadata": {},
            "source": "assert lr < 3, 'too fast'",
            "outputs": [],
            "execution_count": None,
        },
    ],
}


@pytest.mark.parametrize(("rate", "phase"), [(2, "succeeded"), (5, "failed")])
async def test_an_executed_notebook_comes_back_even_when_it_failed(
    notebook: str, handoff: Handoff, tmp_path: Path, rate: int, phase: str
) -> None:
    folder = folder_of(tmp_path, f"notebook-{rate}", {"train.ipynb": json.dumps(NOTEBOOK)})
    entry = {"type": "notebook", "path": "train.ipynb", "parameters": {"lr": rate}}
    run = await handoff.submit(folder, entry, profile="notebook", kernels=["python3"])
    seen = await handoff.until(run, phase)
    executed = json.loads(await handoff.file(run, "train.ipynb"))
    printed = [out["text"] for cell in executed["cells"] for out in cell.get("outputs", []) if "text" in out]
    assert any(f"rate {rate * 2}" in "".join(text) for text in printed)
    assert seen.status.reason == {"succeeded": "succeeded", "failed": "program-failed"}[phase]
