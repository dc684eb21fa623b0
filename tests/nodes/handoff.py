"""Job-handoff on a real cluster: the service with the rights that it declares, a real store, a hub in memory.

Shell: talks to the cluster, listens.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from hub_ext.catalog.load import load_catalog
from hub_ext.render.documents import thaw
from hub_ext.render.kueue import render_kueue
from hub_ext.rights import Where
from services.base import Context
from services.base.web import application, sign_in
from services.hub import Hub
from services.job_handoff import places
from services.job_handoff.app import JobHandoff
from services.job_handoff.archive import inspect
from services.job_handoff.board import Seen
from services.job_handoff.packing import pack
from services.job_handoff.rights import RIGHTS
from services.job_handoff.settings import HandoffSettings
from services.job_handoff.store import Store
from services.kube import Kube
from tests.devcluster.cluster import Cluster
from tests.devcluster.object_store import ObjectStore
from tests.devcluster.waiting import until_met
from tests.fakes.hub import FakeHub

ACCOUNT = "job-handoff"
RUNNER_ACCOUNT = "handoff-runner"
BUCKET = "runs"
SCOPES = ("list:users", "read:users:name", "read:users:groups", "read:servers", "delete:servers")


def build_rights(namespace: str, servers: str) -> list[dict[str, Any]]:
    """Build account, roles and bindings that say what the service declares, and no more."""
    where = {Where.JOBS: namespace, Where.WORKSPACES: servers}
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        for name in (ACCOUNT, RUNNER_ACCOUNT)
    ]
    for place in (*where, Where.CLUSTER):
        rules = [
            {"apiGroups": [r.group], "resources": list(r.resources), "verbs": list(r.verbs)}
            for r in RIGHTS.rules
            if r.where is place
        ]
        documents += _granted(where.get(place), f"{ACCOUNT}-{namespace}", rules, namespace)
    return documents


def _granted(
    place: str | None, name: str, rules: list[dict[str, Any]], namespace: str
) -> list[dict[str, Any]]:
    kind = "ClusterRole" if place is None else "Role"
    metadata = {"name": name} if place is None else {"name": name, "namespace": place}
    api = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": api, "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": api,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    ]


def kubeconfig_of(cluster: Cluster, namespace: str, folder: Path) -> Path:
    """Write a kubeconfig of the service's own account."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    token = cluster.kubectl("create", "token", ACCOUNT, f"--namespace={namespace}", "--duration=2h").strip()
    for user in config["users"]:
        user["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def build_namespace(name: str) -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


@dataclass
class Handoff:
    """The running service, and what tests do with it as a user."""

    service: JobHandoff
    hub: FakeHub
    cluster: Cluster
    namespace: str
    folder: Path

    async def upload(self, folder: Path, user: str = "ada") -> str:
        """Pack a folder and put it where an upload puts it."""
        packed = await asyncio.to_thread(pack, folder)
        content = packed.file.read()
        packed.file.seek(0)
        contents = inspect(packed.file)
        packed.close()
        digest = hashlib.sha256(content).hexdigest()
        await self.service.core.store.put(places.snapshot_path(user, digest), content)
        facts = {"files": list(contents.files), "size": contents.size, "kernels": dict(contents.kernels)}
        await self.service.core.store.put(places.contents_path(user, digest), json.dumps(facts).encode())
        return digest

    async def submit(self, folder: Path, entry: dict[str, Any], **more: Any) -> str:
        """Hand in a run of a folder; gives its name."""
        digest = await self.upload(folder)
        body = {"key": folder.name, "profile": "cpu", "entry": entry, **more}
        result = await self.service.desk.submit(
            "ada", body | {"source": {"type": "snapshot", "sha256": digest}}
        )
        assert result.created
        return result.record.id

    async def seen(self, run: str) -> Seen:
        """Look at a run as its owner."""
        person = (await self.service_asker()).person
        return await self.service.board.one(person, run)

    async def service_asker(self) -> Any:
        from services.job_handoff.people import ask_hub

        return await ask_hub(self.service.hub, "ada")

    async def until(self, run: str, *wanted: str) -> Seen:
        """Wait until a run's phase, or its reason, is one of these; the periodic work goes on meanwhile."""
        found: list[Seen] = []

        async def there() -> bool:
            self.cluster.check()
            await self.service.keeper.open_gates()
            await self.service.keeper.tend()
            seen = await self.seen(run)
            if {seen.status.phase.value, seen.status.reason} & set(wanted):
                found.append(seen)
            elif seen.status.phase.has_ended:
                log = await self.service.board.log(seen)
                raise AssertionError(f"{run}: {seen.status} instead of {wanted}\n{log}")
            return bool(found)

        await until_met(there, what=f"{run} to be {' or '.join(wanted)}")
        return found[0]

    async def file(self, run: str, name: str) -> bytes:
        """Read a result of a run."""
        seen = await self.seen(run)
        _, pieces = await self.service.board.open(seen.record, name)
        return b"".join([piece async for piece in pieces])


@asynccontextmanager
async def running_handoff(
    cluster: Cluster,
    store: ObjectStore,
    *,
    namespace: str,
    folder: Path,
    catalog: dict[str, Any],
    keys: Iterable[str] = (),
    **settings: Any,
) -> AsyncIterator[Handoff]:
    """Run the service on the host, where pods reach it; its queues are those of the catalog."""
    servers = f"{namespace}-servers"
    file = folder / "catalog.yaml"
    file.write_text(yaml.safe_dump(catalog))
    cluster.apply(build_namespace(servers), build_namespace(namespace), *build_rights(namespace, servers))
    queues = render_kueue(load_catalog(file), jobs_namespace=namespace)
    cluster.apply(*(thaw(document) for document in queues.documents))
    context = Context(
        name="job-handoff",
        prefix="/services/job-handoff/",
        hub_prefix="/hub/",
        address=cluster.host_address,
        port=0,
        token="the-services-own",
        api_url=FakeHub.URL,
    )
    (sockets,) = [bind_sockets(0, cluster.host_address)]
    port = sockets[0].getsockname()[1]
    made = HandoffSettings.model_validate(
        {
            "catalog": str(file),
            "namespace": namespace,
            "serverNamespaces": [servers],
            "store": {"url": f"s3://{BUCKET}/{namespace}", "endpoint": store.url, "allowHttp": True},
            "runner": {"url": f"http://{cluster.host_address}:{port}/services/job-handoff/"},
            "grace": "20s",
            **settings,
        }
    )
    os.environ.update(store.environment(store.root))
    hub = FakeHub()
    hub.add_user("ada", groups=["nlp"])
    client = Hub(FakeHub.URL, hub.token(*SCOPES), transport=hub.transport)
    kube = await Kube.connect({"KUBECONFIG": str(kubeconfig_of(cluster, namespace, folder))})
    async with client, kube:
        service = JobHandoff(made, context, client, CollectorRegistry())
        service.assemble(kube, Store.open(made.store))
        server = HTTPServer(application(service, (), sign_in(context)))
        server.add_sockets(sockets)
        try:
            yield Handoff(service, hub, cluster, namespace, folder)
        finally:
            server.stop()
            await server.close_all_connections()
            cluster.kubectl("delete", "namespace", namespace, servers, "--wait=false")
            for document in reversed(queues.documents):
                if "namespace" not in document["metadata"]:
                    cluster.kubectl("delete", document["kind"], document["metadata"]["name"], "--wait=false")
