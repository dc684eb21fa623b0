"""The rendered queues against Kueue's own schemas and rules (CEL), on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hub_ext.catalog.load import load_catalog
from hub_ext.render.documents import thaw
from hub_ext.render.kueue import render_kueue
from tests.devcluster import build
from tests.devcluster.kube import KubeCluster
from tests.devcluster.rules import until_served

CATALOG = Path(__file__).parents[1] / "golden" / "catalog.yaml"
GROUP = "kueue.x-k8s.io"


@pytest.fixture(scope="module")
def schemas(cluster: KubeCluster) -> Iterator[None]:
    """Kueue's kinds without Kueue: no conversion, which would need its webhook."""
    documents = yaml.safe_load_all(build.manifest("kueue").read_text(encoding="utf-8"))
    crds = [d for d in documents if d and d["kind"] == "CustomResourceDefinition"]
    for crd in crds:
        crd["spec"].pop("conversion", None)
    cluster.apply(*crds)
    names = [crd["metadata"]["name"] for crd in crds]
    until_served(cluster, names)
    yield
    # Without waiting: the API server at times takes minutes to see that the last object of a kind is gone.
    cluster.kubectl("delete", "crd", "--wait=false", *names)


@pytest.fixture
def documents(namespace: str) -> list[dict[str, Any]]:
    """The queues of the golden catalog, the teams' namespaces replaced by the test's own."""
    text = CATALOG.read_text(encoding="utf-8")
    for name in ("team-nlp", "team-vision"):
        text = text.replace(name, namespace)
    return [thaw(document) for document in render_kueue(load_catalog(yaml.safe_load(text))).documents]


@pytest.mark.usefixtures("schemas")
def test_every_object_is_accepted_and_nothing_of_it_is_dropped(
    cluster: KubeCluster, namespace: str, documents: list[dict[str, Any]]
) -> None:
    cluster.apply(*documents)
    for document in documents:
        place = f"/namespaces/{namespace}" if "namespace" in document["metadata"] else ""
        kind = f"{document['kind'].lower()}s"
        kept = cluster.get(f"/apis/{GROUP}/v1beta2{place}/{kind}/{document['metadata']['name']}")
        assert contains(kept.get("spec", {}), document.get("spec", {})), document["metadata"]["name"]


def contains(whole: Any, part: Any) -> bool:
    """Whether everything in `part` is in `whole`, which may have defaults besides."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and contains(whole[k], v) for k, v in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)
