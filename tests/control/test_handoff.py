"""Runs on a real API server: what it accepts, and that nothing is lost or doubled when all goes wrong."""

from __future__ import annotations

import asyncio
import collections
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from hub_ext.catalog.load import load_catalog
from hub_ext.errors import BadValueError
from hub_ext.render.documents import thaw
from hub_ext.render.kueue import render_kueue
from hub_ext.rights import Where
from services.job_handoff.cron import read_cron
from services.job_handoff.manifest.build import build_run
from services.job_handoff.manifest.place import build_place
from services.job_handoff.manifest.site import Site
from services.job_handoff.model import read_request
from services.job_handoff.plan import Scene, plan_run
from services.job_handoff.rights import RIGHTS
from services.job_handoff.schedules import zone_of
from services.job_handoff.settings import HandoffSettings
from services.kube import InvalidError, Kube, api_path
from tests.devcluster import build
from tests.devcluster.addons.controllers import kind_of, name_of, split
from tests.devcluster.kube import KubeCluster
from tests.devcluster.ports import free_port
from tests.devcluster.rules import until_served
from tests.devcluster.waiting import until_met
from tests.fakes.hub import FakeHub
from tests.unit.handoff.conftest import ADA, CATALOG, DIGEST, NOW, SOURCE, TODAY, body

GOLDEN = Path(__file__).parents[1] / "golden/handoff"
USERS = 50
RUNS = int(os.environ.get("HANDOFF_RUNS", "100"))
"""Set it to 1000 for the load that the service is built for."""
KINDS = {
    "job": ("batch/v1", "jobs", {}),
    "cronjob": ("batch/v1", "cronjobs", {"schedule": {"cron": "0 6 * * *", "timeZone": "Europe/Berlin"}}),
    "trainjob": (
        "trainer.kubeflow.org/v1alpha1",
        "trainjobs",
        {"profile": "card", "kind": "trainjob", "nodes": 2},
    ),
    "rayjob": ("ray.io/v1", "rayjobs", {"profile": "ray", "nodes": 3}),
}


@pytest.fixture(scope="module")
def schemas(cluster: KubeCluster) -> Iterator[None]:
    """The kinds of Kueue, Trainer and KubeRay without their controllers and webhooks."""
    texts: list[str] = []
    for name in ("kueue", "trainer", "kuberay"):
        texts += [
            t for t in split(build.manifest(name).read_text()) if kind_of(t) == "CustomResourceDefinition"
        ]
    plain = []
    for text in texts:
        if "\n  conversion:" in text:
            document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            del document["spec"]["conversion"]
            text = json.dumps(document)  # noqa: PLW2901
        plain.append(text)
    flags = ("--server-side", "--force-conflicts", "--validate=ignore", "--filename=-")
    cluster.kubectl("apply", *flags, input="\n---\n".join(plain))
    names = [name_of(text) for text in texts]
    until_served(cluster, names)
    yield
    others = [name for name in names if not name.endswith("kueue.x-k8s.io")]
    cluster.kubectl("delete", "crd", "--wait=false", *others)


@pytest.fixture
async def kube(cluster: KubeCluster) -> AsyncIterator[Kube]:
    async with await Kube.connect({"KUBECONFIG": str(cluster.kubeconfig)}) as client:
        yield client


def settings_of(namespace: str, folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "catalog": str(CATALOG),
        "namespace": namespace,
        "store": {"url": f"file://{folder}/store"},
        "runner": {"url": "http://proxy.hub/services/job-handoff/"},
        **more,
    }


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("name", KINDS)
async def test_every_kind_is_accepted_whole_by_the_api_server(
    cluster: KubeCluster, kube: Kube, namespace: str, tmp_path: Path, name: str
) -> None:
    version, plural, changes = KINDS[name]
    settings = HandoffSettings.model_validate(settings_of(namespace, tmp_path))
    catalog = load_catalog(CATALOG)
    scene = Scene(catalog=catalog, settings=settings, person=ADA, today=TODAY)
    plan = plan_run(scene, read_request(body(**changes)), run="run-abcdefghijklmnop")
    site = Site(settings=settings, runner_map="runner", token="t", submitted=NOW, source_map="source")
    obj = build_run(catalog, plan, site)
    strict = ("create", "--dry-run=server", "--validate=strict", "--filename=-")
    cluster.kubectl(*strict, input=json.dumps(obj))
    made = await kube.create(api_path(version, plural, namespace=namespace), obj)
    assert dropped(made["spec"], obj["spec"]) == []


def dropped(whole: Any, part: Any, place: str = "") -> list[str]:
    """Name what is in `part` and not in `whole`."""
    if isinstance(part, dict):
        missing = [f"{place}.{key}" for key in part if not isinstance(whole, dict) or key not in whole]
        return missing + [
            found
            for key, value in part.items()
            if isinstance(whole, dict) and key in whole
            for found in dropped(whole[key], value, f"{place}.{key}")
        ]
    if isinstance(part, list):
        same = isinstance(whole, list) and len(whole) == len(part)
        return (
            [f for w, p in zip(whole, part, strict=True) for f in dropped(w, p, place + "[]")]
            if same
            else [place]
        )
    return []


def is_schedule(cron: str, zone: str) -> bool:
    try:
        read_cron(cron)
        zone_of(zone)
    except BadValueError:
        return False
    return True


async def test_what_is_a_schedule_here_is_one_to_the_api_server(kube: Kube, namespace: str) -> None:
    """The rules are written anew in `cron`: what only one of the two took would start unsaid, or never."""
    lines = {one["cron"] for one in json.loads((GOLDEN / "cron.json").read_text(encoding="utf-8"))}
    asked = [(cron, "Etc/UTC") for cron in sorted(lines)]
    asked += [
        ("0 6 * * *", zone) for zone in ("Europe/Berlin", "Middle/Earth", "Local", "europe", "Europe", "UTC")
    ]
    container = {"name": "main", "image": "registry.example.com/none"}
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    for cron, zone in asked:
        spec = {"schedule": cron, "timeZone": zone, "jobTemplate": template}
        obj = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}
        try:
            await kube.create(api_path("batch/v1", "cronjobs", namespace=namespace), obj, dry_run=True)
            taken = True
        except InvalidError:
            taken = False
        assert is_schedule(cron, zone) is taken, (cron, zone)


# Nothing lost, nothing doubled


class _Hub(RequestHandler):
    """The hub over HTTP: `FakeHub`, and whose token it is that somebody shows to the service."""

    def initialize(self, fake: FakeHub) -> None:
        self.fake = fake

    def get(self) -> None:
        _, _, token = self.request.headers.get("Authorization", "").partition(" ")
        if self.request.path.endswith("/user"):
            access = ["access:services!service=job-handoff"]
            self.finish({"name": token, "kind": "user", "admin": False, "groups": ["nlp"], "scopes": access})
            return
        asked = httpx.Request("GET", f"http://hub{self.request.uri}", headers=dict(self.request.headers))
        answer = self.fake.answer(asked)
        self.set_status(answer.status_code)
        self.finish(answer.json())


@asynccontextmanager
async def hub_of(fake: FakeHub) -> AsyncIterator[str]:
    server = HTTPServer(Application([("/hub/api/.*", _Hub, {"fake": fake})]))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}/hub/api"
    server.stop()
    await server.close_all_connections()


class Process:
    """The service as a process that can be killed and started again."""

    def __init__(self, config: Path, environment: dict[str, str], log: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/services/job-handoff/"
        self._command = [sys.executable, "-m", "services.job_handoff", "--config", str(config)]
        self._env = os.environ | environment | {"JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{self.port}"}
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=self._env, stdout=log, stderr=log
            )
        async with httpx.AsyncClient() as client:
            await until_met(lambda: self._answers(client), what="the service to answer")

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, self._log.read_text()
        try:
            return (await client.get(f"{self.url}health")).is_success
        except httpx.TransportError:
            return False

    async def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


def build_account(cluster: KubeCluster, namespace: str, folder: Path) -> Path:
    """An account with the rights that the service declares; gives its kubeconfig."""
    api = "rbac.authorization.k8s.io/v1"
    subject = {"kind": "ServiceAccount", "name": "job-handoff", "namespace": namespace}
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": n, "namespace": namespace}}
        for n in ("job-handoff", "handoff-runner")
    ]
    for place, kind in ((Where.JOBS, "Role"), (Where.CLUSTER, "ClusterRole")):
        metadata = {"name": f"handoff-{namespace}"} | ({"namespace": namespace} if kind == "Role" else {})
        rules = [
            {"apiGroups": [r.group], "resources": list(r.resources), "verbs": list(r.verbs)}
            for r in RIGHTS.rules
            if r.where is place
        ]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]}
        documents += [
            {"apiVersion": api, "kind": kind, "metadata": metadata, "rules": rules},
            {
                "apiVersion": api,
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": reference,
                "subjects": [subject],
            },
        ]
    cluster.apply(*documents)
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    token = cluster.kubectl("create", "token", "job-handoff", f"--namespace={namespace}", "--duration=1h")
    for user in config["users"]:
        user["user"] = {"token": token.strip()}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


@pytest.fixture
async def process(cluster: KubeCluster, namespace: str, tmp_path: Path) -> AsyncIterator[Process]:
    fake = FakeHub()
    for number in range(USERS):
        fake.add_user(f"user-{number}", groups=["nlp"])
    queues = render_kueue(load_catalog(CATALOG), jobs_namespace=namespace)
    cluster.apply(*(thaw(document) for document in queues.documents))
    config = tmp_path / "settings.yaml"
    config.write_text(yaml.safe_dump(settings_of(namespace, tmp_path, bounds={"runsPerUser": 100})))
    token = fake.token("list:users", "read:users:name", "read:users:groups", "read:servers", "delete:servers")
    async with hub_of(fake) as api:
        environment = {
            "JUPYTERHUB_API_TOKEN": token,
            "JUPYTERHUB_API_URL": api,
            "JUPYTERHUB_SERVICE_NAME": "job-handoff",
            "JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:services!service=job-handoff"]',
            "KUBECONFIG": str(build_account(cluster, namespace, tmp_path)),
        }
        running = Process(config, environment, tmp_path / "service.log")
        await running.start()
        yield running
        await running.kill()


async def persistently(client: httpx.AsyncClient, method: str, path: str, **more: Any) -> httpx.Response:
    """Send as a client that does not give up: until there is an answer that is none of a broken service."""
    answers: list[httpx.Response] = []

    async def answered() -> bool:
        try:
            answer = await client.request(method, path, **more)
        except httpx.TransportError:
            return False
        answers.append(answer)
        return answer.status_code < 500

    await until_met(answered, what=f"an answer to {method} {path}")
    return answers[-1]


@pytest.mark.usefixtures("schemas")
async def test_no_run_is_lost_and_none_is_doubled(process: Process, kube: Kube, namespace: str) -> None:
    """Many users submit at once, each submission more than once, while the service is killed twice."""
    chance = random.Random(8)
    answers: dict[str, list[tuple[int, str]]] = collections.defaultdict(list)
    reached = {RUNS // 3: asyncio.Event(), RUNS // 2: asyncio.Event()}
    gate = asyncio.Semaphore(40)

    async def submit(client: httpx.AsyncClient, number: int) -> None:
        user = f"user-{number % USERS}"
        request = body(key=f"key-{number}", name=f"run {number}")
        headers = {"Authorization": f"token {user}"}
        for _ in range(chance.choice([1, 2, 3])):
            async with gate:
                answer = await persistently(client, "POST", "api/runs", json=request, headers=headers)
            assert answer.status_code in {200, 201}, answer.text
            answers[request["key"]].append((answer.status_code, answer.json()["id"]))
            for number_of_answers, event in reached.items():
                if len(answers) >= number_of_answers:
                    event.set()

    async def killer() -> None:
        for event in reached.values():
            await event.wait()
            await process.kill()
            await process.start()

    async with httpx.AsyncClient(base_url=process.url, timeout=120) as client:
        for number in range(USERS):
            headers = {"Authorization": f"token user-{number}"}
            sent = await client.put(f"api/snapshots/{DIGEST}", content=SOURCE, headers=headers)
            assert sent.status_code == 201, sent.text
        async with asyncio.TaskGroup() as group:
            group.create_task(killer())
            for number in range(RUNS):
                group.create_task(submit(client, number))

    jobs = {
        one["metadata"]["name"]: one
        for one in await kube.list(api_path("batch/v1", "jobs", namespace=namespace))
    }
    assert len(answers) == len(jobs) == RUNS
    for key, given in answers.items():
        assert len({run for _, run in given}) == 1, key
        assert sum(1 for status, _ in given if status == 201) <= 1, key
        assert given[0][1] in jobs


async def test_what_would_run_beside_the_queues_is_refused(
    cluster: KubeCluster, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    settings = HandoffSettings.model_validate(settings_of(namespace, tmp_path))
    documents = build_place(settings)
    cluster.apply(*documents)
    path = api_path("batch/v1", "jobs", namespace=namespace)
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none.test/none"}]}
    job = {"metadata": {"name": "free"}, "spec": {"suspend": True, "template": {"spec": pod}}}
    queued = {"metadata": {"name": "q", "labels": {"kueue.x-k8s.io/queue-name": "nlp"}}, "spec": job["spec"]}

    async def refusal() -> str:
        try:
            await kube.create(path, job, dry_run=True)
        except InvalidError as error:
            return error.what
        return ""

    await until_met(refusal, what="the new policy to be taken up")
    assert "waits in a queue" in await refusal()
    await kube.create(path, queued, dry_run=True)
    for document in documents[-2:]:
        cluster.kubectl("delete", document["kind"], document["metadata"]["name"], "--wait=false")
