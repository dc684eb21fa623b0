"""Fixtures for tests on a development cluster.

A tier's `conftest.py` imports what it needs and says which cluster its tests run on:

    from tests.devcluster.pytest_plugin import control_cluster, namespace
    @pytest.fixture(scope="session")
    def cluster(control_cluster): return control_cluster

`GPU_WORKSPACES_KUBECONFIG=<file>` makes the tests of size `control` run on the cluster of that file instead
of starting one. It is asked for by this name, not taken from `KUBECONFIG`, so that nobody's everyday cluster
is tested by accident. `DEVCLUSTER_KUBERNETES=1.34` starts the control plane of that version.

Shell: starts clusters.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.devcluster import build
from tests.devcluster.client import running
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import SpecError
from tests.devcluster.kube import KubeCluster
from tests.devcluster.spec import ClusterSpec, load, parse

KUBECONFIG_VARIABLE = "GPU_WORKSPACES_KUBECONFIG"
VERSION_VARIABLE = "DEVCLUSTER_KUBERNETES"

CUT_CONNECTIONS = (
    pytest.mark.filterwarnings("ignore:unclosed transport <_SelectorSocketTransport:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket .*raddr:ResourceWarning"),
)
"""For tests that end watches: a TLS connection that is cut when its event loop ends cannot say goodbye. The
garbage collector closes it, at some later time and in whichever test that falls."""


def control_spec() -> ClusterSpec:
    """The shipped cluster file of size `control`, in the version that the environment asks for."""
    _, spec = load("control")
    version = os.environ.get(VERSION_VARIABLE, spec.kubernetes)
    try:
        return parse(spec.model_dump() | {"kubernetes": version}, source=f"{VERSION_VARIABLE}={version}")
    except SpecError as error:
        raise pytest.UsageError(str(error)) from None


def foreign_cluster(kubeconfig: Path) -> KubeCluster:
    """The cluster of a kubeconfig file, spoken to with our kubectl and the developer's environment."""
    if not kubeconfig.is_file():
        raise pytest.UsageError(f"{KUBECONFIG_VARIABLE}={kubeconfig}: there is no such file")
    kubectl = build.ensure(["kubectl"])["kubectl"]
    return KubeCluster("foreign", kubeconfig=kubeconfig, kubectl=kubectl, env=os.environ)


@pytest.fixture(scope="session")
def control_cluster() -> Iterator[KubeCluster]:
    """A cluster for tests that end at the API; the same for the whole run."""
    if kubeconfig := os.environ.get(KUBECONFIG_VARIABLE):
        yield foreign_cluster(Path(kubeconfig))
        return
    with running(control_spec(), like="test-control") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def nodes_cluster() -> Iterator[Cluster]:
    """A cluster with real nodes of each kind; the same for the whole run."""
    with running("nodes", like="test-nodes") as cluster:
        yield cluster


@pytest.fixture
def namespace(cluster: KubeCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; what is in it is deleted afterwards."""
    cluster.check()
    name = namespace_name(request.node.name)
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        # A controller makes it, too; but until then the API server refuses every pod.
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
    )
    yield name
    cluster.check()
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def namespace_name(test: str) -> str:
    """A valid name that says which test it is of and was never used before."""
    words = re.sub(r"[^a-z0-9]+", "-", test.removeprefix("test_").lower()).strip("-")
    return f"{words[:50].rstrip('-')}-{secrets.token_hex(3)}"
