"""What the service adds to the creation of a Job: submissions against bare creates of the same object.

Run `python -m tests.bench.handoff`; it starts a cluster of size `control`. Prints medians in milliseconds and
their ratio.
"""

from __future__ import annotations

import asyncio
import copy
import json
import statistics
import tempfile
import time
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry

from hub_ext.catalog.load import load_catalog
from hub_ext.render.documents import thaw
from hub_ext.render.kueue import render_kueue
from services.job_handoff.settings import HandoffSettings
from services.kube import Kube, api_path
from tests.devcluster import build
from tests.devcluster.addons.controllers import kind_of, name_of, split
from tests.devcluster.client import running
from tests.devcluster.cluster import Cluster
from tests.unit.handoff.conftest import CATALOG, World, body

NAMESPACE = "runs"
COUNT = 60


def prepare(cluster: Cluster) -> None:
    """Apply Kueue's kinds and the queues of the catalog."""
    texts = [
        t for t in split(build.manifest("kueue").read_text()) if kind_of(t) == "CustomResourceDefinition"
    ]
    documents = []
    for text in texts:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        document["spec"].pop("conversion", None)
        documents.append(json.dumps(document))
    cluster.kubectl(
        "apply", "--server-side", "--validate=ignore", "--filename=-", input="\n---\n".join(documents)
    )
    for text in texts:
        cluster.wait_for(f"crd/{name_of(text)}", "condition=Established")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.apply(*(thaw(d) for d in render_kueue(load_catalog(CATALOG), jobs_namespace=NAMESPACE).documents))


async def measure(cluster: Cluster, folder: Path) -> dict[str, float]:
    """Time submissions and bare creates, one by one and in turns."""
    settings = HandoffSettings.model_validate(
        {
            "catalog": str(CATALOG),
            "namespace": NAMESPACE,
            "store": {"url": f"file://{folder}"},
            "runner": {"url": "http://proxy.hub/services/job-handoff/"},
            "bounds": {"runsPerUser": 10_000},
        }
    )
    world = World(settings)
    await world.upload()
    submitted: list[float] = []
    bare: list[float] = []
    async with await Kube.connect({"KUBECONFIG": str(cluster.kubeconfig)}) as kube:
        world.service.registry = CollectorRegistry()
        world.service.assemble(kube, world.store)
        path = api_path("batch/v1", "jobs", namespace=NAMESPACE)
        for number in range(COUNT):
            begun = time.perf_counter()
            result = await world.service.desk.submit("ada", body(key=f"k{number}"))
            submitted.append(time.perf_counter() - begun)
            found = await kube.get(f"{path}/{result.record.id}")
            job = {"metadata": {"name": f"bare-{number}"}, "spec": copy.deepcopy(found["spec"])}
            for name in ("selector", "manualSelector"):
                job["spec"].pop(name, None)
            labels = job["spec"]["template"]["metadata"]["labels"]
            for name in [one for one in labels if one.endswith(("controller-uid", "job-name"))]:
                del labels[name]
            job["metadata"]["annotations"] = found["metadata"]["annotations"]
            begun = time.perf_counter()
            await kube.create(path, job)
            bare.append(time.perf_counter() - begun)
    half = COUNT // 4
    return {
        "submit_ms": 1000 * statistics.median(submitted[half:]),
        "create_ms": 1000 * statistics.median(bare[half:]),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running("control", like="bench-handoff") as cluster:
        prepare(cluster)
        found = asyncio.run(measure(cluster, Path(folder)))
    print(json.dumps(found | {"ratio": found["submit_ms"] / found["create_ms"]}, indent=2))


if __name__ == "__main__":
    main()
