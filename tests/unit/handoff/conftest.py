"""Runs without a cluster: the service on imitations of hub and cluster, and a real store in a folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyterhub.services.auth import HubOAuth
from prometheus_client import CollectorRegistry
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.selection_access import Person
from services.base import Context
from services.base.web import application
from services.hub import Hub
from services.job_handoff import places
from services.job_handoff.app import JobHandoff
from services.job_handoff.archive import inspect
from services.job_handoff.model import read_request
from services.job_handoff.plan import Plan, Scene, plan_run
from services.job_handoff.settings import HandoffSettings
from services.job_handoff.store import Store
from tests.devcluster.waiting import PATIENCE_SECONDS
from tests.fakes.batch import FakeBatch, queue_objects
from tests.fakes.hub import FakeHub

CATALOG = Path(__file__).parent / "catalog.yaml"
PREFIX = "/services/job-handoff/"
TODAY = date(2026, 11, 30)
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
ADA = Person(name="ada", groups=frozenset({"nlp"}))
SCOPES = ("list:users", "read:users:name", "read:users:groups", "read:servers", "delete:servers")
NOTEBOOK = {"metadata": {"kernelspec": {"name": "python3"}}, "cells": [], "nbformat": 4, "nbformat_minor": 5}


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """An archive with these files."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as opened,
    ):
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            opened.addfile(info, io.BytesIO(data))
    return packed.getvalue()


SOURCE = archive({"train.py": "print(1)", "train.ipynb": json.dumps(NOTEBOOK)})
DIGEST = hashlib.sha256(SOURCE).hexdigest()


def body(**changes: Any) -> dict[str, Any]:
    """A request that is accepted, with changes; None takes a key away."""
    whole = {
        "key": "k1",
        "profile": "cpu",
        "entry": {"type": "script", "path": "train.py"},
        "source": {"type": "snapshot", "sha256": DIGEST},
        **changes,
    }
    return {key: value for key, value in whole.items() if value is not None}


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog(CATALOG)


@pytest.fixture
def settings(tmp_path: Path) -> HandoffSettings:
    return HandoffSettings.model_validate(
        {
            "catalog": str(CATALOG),
            "namespace": "runs",
            "serverNamespaces": ["hub"],
            "store": {"url": f"file://{tmp_path}/store"},
            "runner": {"url": "http://proxy.hub/services/job-handoff/"},
        }
    )


@pytest.fixture
def scene(catalog: Catalog, settings: HandoffSettings) -> Scene:
    return Scene(catalog=catalog, settings=settings, person=ADA, today=TODAY)


@pytest.fixture
def plan(scene: Scene) -> Callable[..., Plan]:
    def make(**changes: Any) -> Plan:
        return plan_run(scene, read_request(body(**changes)), run="run-abcdefghijklmnop")

    return make


def claim_for_test(name: str, mode: str, *, volume: str = "", phase: str = "Bound") -> dict[str, Any]:
    """Make a claim in the namespace of runs."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "runs"},
        "spec": {"accessModes": [mode], **({"volumeName": volume} if volume else {})},
        "status": {"phase": phase, "accessModes": [mode]},
    }


class World:
    """The service with everything around it."""

    def __init__(self, settings: HandoffSettings) -> None:
        self.kube = FakeBatch(
            *queue_objects("runs", "nlp", cpu="64", memory="256Gi", nvidia__com="0"),
            *queue_objects("runs", "vision", cpu="8", memory="32Gi"),
            claim_for_test("homes", "ReadWriteMany"),
        )
        gpu = {"name": "nvidia.com/gpu", "nominalQuota": "4"}
        queue = next(
            one for one in self.kube.all_for_test("clusterqueues") if one["metadata"]["name"] == "nlp"
        )
        group = queue["spec"]["resourceGroups"][0]
        group["flavors"][0]["resources"][-1] = gpu
        group["coveredResources"][-1] = gpu["name"]
        self.kube.put_for_test(queue)
        self.hub = FakeHub()
        self.hub.add_user("ada", groups=["nlp"])
        self.hub.add_user("bob", groups=["vision"])
        self.hub.add_user("root", groups=[], admin=True)
        context = Context(
            name="job-handoff",
            prefix="/services/job-handoff/",
            hub_prefix="/hub/",
            address="127.0.0.1",
            port=0,
            token="service-token",
            api_url=FakeHub.URL,
        )
        client = Hub(FakeHub.URL, self.hub.token(*SCOPES), transport=self.hub.transport)
        self.registry = CollectorRegistry()
        self.service = JobHandoff(settings, context, client, self.registry)
        self.store = Store.open(settings.store)
        self.service.assemble(self.kube, self.store)  # type: ignore[arg-type]

    async def upload(self, user: str = "ada", content: bytes = SOURCE) -> str:
        """Put a source where an upload puts it."""
        digest = hashlib.sha256(content).hexdigest()
        found = inspect(io.BytesIO(content))
        await self.store.put(places.snapshot_path(user, digest), content)
        facts = {"files": list(found.files), "size": found.size, "kernels": dict(found.kernels)}
        await self.store.put(places.contents_path(user, digest), json.dumps(facts).encode())
        return digest


def start_for_test(world: World, schedule: str, name: str) -> None:
    """Make the Job of a schedule, as its controller does."""
    cron = next(one for one in world.kube.all_for_test("cronjobs") if one["metadata"]["name"] == schedule)
    template = cron["spec"]["jobTemplate"]
    owner = {"kind": "CronJob", "name": schedule, "uid": cron["metadata"]["uid"], "controller": True}
    metadata = template["metadata"] | {"name": name, "namespace": "runs", "ownerReferences": [owner]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}
    world.kube.put_for_test(job)


@pytest.fixture
async def world(settings: HandoffSettings) -> World:
    made = World(settings)
    await made.upload()
    return made


ACCESS = "access:services!service=job-handoff"


class Door(HubOAuth):
    """Stands for the hub's sign-in: the token is the user's name."""

    async def get_user(self, handler: Any, sync: bool = True) -> dict[str, Any] | None:
        _, _, name = handler.request.headers.get("Authorization", "").partition(" ")
        return (
            {
                "name": name,
                "kind": "user",
                "admin": name == "root",
                "scopes": [ACCESS],
            }
            if name
            else None
        )


def door() -> Door:
    """Make the sign-in of the service."""
    api = "http://127.0.0.1:9/hub/api"
    return Door(api_token="service-token", api_url=api, base_url=PREFIX, access_scopes={ACCESS})


@pytest.fixture
async def url(world: World) -> AsyncIterator[str]:
    """The service, on a port of this machine."""
    server = HTTPServer(
        application(
            world.service,
            (),
            door(),
        ),
        max_body_size=1024 * 1024,
    )  # type: ignore[arg-type]
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}{PREFIX}"
    server.stop()
    await server.close_all_connections()


@pytest.fixture
async def ada(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=url, headers={"Authorization": "token ada"}, timeout=PATIENCE_SECONDS
    ) as client:
        yield client
