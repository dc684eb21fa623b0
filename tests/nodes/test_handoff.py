"""Runs on real nodes under the real Kueue, Trainer and KubeRay, with a real object store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.devcluster.addons.registry import Registry
from tests.devcluster.build import ensure_image
from tests.devcluster.cluster import Cluster
from tests.devcluster.object_store import ObjectStore, running_object_store
from tests.devcluster.waiting import until_met
from tests.nodes.acting import eventually
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
    return Registry(batch_cluster).publish(ensure_image("notebook-plain"), "tests/notebook")


def catalog_of(images: dict[str, str]) -> dict[str, Any]:
    """What runs are offered here; the team may have two CPUs at once."""
    small = {"cpu": {"request": "500m", "limit": 1}, "memory": "256Mi", "pool": "cpu"}
    tiny = {"cpu": {"request": "200m", "limit": 1}, "memory": "64Mi", "pool": "cpu"}
    everyone = {"access": {"everyone": True}, "version": 1}
    profiles = [
        {"name": "cpu", "displayName": "C", "images": ["base"], "resources": small},
        {"name": "tiny", "displayName": "T", "images": ["base"], "resources": tiny},
        {
            "name": "train",
            "displayName": "T",
            "images": ["base"],
            "resources": tiny,
            "jobs": {"kinds": ["trainjob"], "maxNodes": 2, "trainRuntime": "handoff-plain"},
        },
        {
            "name": "ray",
            "displayName": "R",
            "images": ["ray"],
            "resources": {
                "cpu": {"request": "300m", "limit": 1},
                "memory": {"request": "900Mi", "limit": "1800Mi"},
                "pool": "cpu",
            },
            "jobs": {"kinds": ["rayjob"], "maxNodes": 2, "rayVersion": "2.60.0"},
        },
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
        "profiles": [{"jobs": {}} | one | everyone for one in profiles if one["images"][0] in images],
    }


@pytest.fixture(scope="module")
def ray(batch_cluster: Cluster) -> str:
    """An image with Ray."""
    return Registry(batch_cluster).publish(ensure_image("ray"), "tests/ray")


@pytest.fixture(scope="module")
def runtime(batch_cluster: Cluster) -> Iterator[str]:
    """What an admin provides for training on several nodes.

    It says no `restartPolicy`, like Trainer's own: JobSet makes it `OnFailure`.
    """
    name = "handoff-plain"
    pod = {"automountServiceAccountToken": False, "containers": [{"name": "node", "image": "none.test/none"}]}
    replicated = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": pod}},
        },
    }
    batch_cluster.apply(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
            "spec": {
                "mlPolicy": {"numNodes": 1, "torch": {}},
                "template": {"spec": {"replicatedJobs": [replicated]}},
            },
        }
    )
    yield name
    batch_cluster.kubectl("delete", "clustertrainingruntime", name, "--wait=false")


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
        namespace=f"runs-{namespace[-6:]}",
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


STEPS = """
import os, pathlib, signal, sys, time
place = pathlib.Path(os.environ["CHECKPOINT_URI"].removeprefix("file://"))
step = place / "step"
if os.environ["RESUME"] == "1":
    print("resumed at", step.read_text())
    sys.exit()
def end(*_):
    step.write_text("7")
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


WAITING = """
import pathlib, time
while not pathlib.Path("/tmp/end").exists():
    time.sleep(0.1)
"""


def let_go(handoff: Handoff, run: str) -> None:
    """End a run of `WAITING`."""
    touch = ("exec", f"--namespace={handoff.namespace}", f"job/{run}", "--", "touch", "/tmp/end")
    eventually(handoff.cluster, lambda: handoff.cluster.kubectl(*touch), what="the run to take a command")


async def test_a_preempted_run_saves_a_checkpoint_and_goes_on_when_there_is_room(
    handoff: Handoff, tmp_path: Path
) -> None:
    script = {"type": "script", "path": "train.py"}
    low = await handoff.submit(folder_of(tmp_path, "low", {"train.py": STEPS}), script)
    await handoff.until(low, "running")

    async def is_ready() -> bool:
        return "ready" in await handoff.service.board.log(await handoff.seen(low))

    await until_met(is_ready, what="the program to have begun")  # before, it could not save anything
    urgent = folder_of(tmp_path, "urgent", {"train.py": WAITING})
    high = await handoff.submit(urgent, script, priority="urgent")
    preempted = await handoff.until(low, "preempted", "waiting-for-quota", "queued")
    assert preempted.status.phase.value == "queued"
    await handoff.until(high, "running")
    await asyncio.to_thread(let_go, handoff, high)
    await handoff.until(high, "succeeded")
    seen = await handoff.until(low, "succeeded")
    assert "resumed at 7" in await handoff.service.board.log(seen)
    assert seen.status.preemptions >= 1


async def test_a_run_that_uses_up_its_memory_says_so(handoff: Handoff, tmp_path: Path) -> None:
    greedy = "kept = []\nwhile True: kept.append(bytearray(8 * 1024 * 1024))\n"
    folder = folder_of(tmp_path, "greedy", {"train.py": greedy})
    run = await handoff.submit(folder, {"type": "script", "path": "train.py"}, profile="tiny")
    assert (await handoff.until(run, "failed")).status.reason == "out-of-memory"


async def test_training_on_two_nodes(runtime: str, handoff: Handoff, tmp_path: Path) -> None:
    script = (
        "import os, pathlib\n"
        "rank = os.environ['PET_NODE_RANK']\n"
        "print('rank', rank, 'of', os.environ['PET_NNODES'], flush=True)\n"
        "pathlib.Path('outputs/rank').write_text(rank)\n"
        "place = pathlib.Path(os.environ['CHECKPOINT_URI'].removeprefix('file://'))\n"
        "before = (place / 'steps').read_text() if os.environ['RESUME'] == '1' else ''\n"
        "print('before', repr(before), flush=True)\n"
        "(place / 'steps').write_text(before + 'x')\n"
        "raise SystemExit(0 if before or rank != '0' else 3)\n"
    )
    folder = folder_of(tmp_path, "two", {"train.py": script})
    entry = {"type": "script", "path": "train.py"}
    run = await handoff.submit(folder, entry, profile="train", nodes=2)
    assert (await handoff.until(run, "failed")).status.reason == "program-failed"
    again = await handoff.submit(folder, entry, profile="train", nodes=2, resumeFrom=run, key="again")
    seen = await handoff.until(again, "succeeded")
    assert "before 'x'" in await handoff.service.board.log(seen)
    assert await handoff.file(again, "rank") == b"0"


async def test_a_ray_job_runs_on_its_own_cluster(ray: str, handoff: Handoff, tmp_path: Path) -> None:
    script = (
        "import ray, helper\n"
        "ray.init()\n"
        "square = ray.remote(helper.square)\n"
        "open('outputs/sum', 'w').write(str(sum(ray.get([square.remote(n) for n in range(4)]))))\n"
    )
    folder = folder_of(tmp_path, "ray", {"train.py": script, "helper.py": "def square(n): return n * n\n"})
    run = await handoff.submit(folder, {"type": "script", "path": "train.py"}, profile="ray")
    await handoff.until(run, "succeeded")
    assert await handoff.file(run, "sum") == b"14"
