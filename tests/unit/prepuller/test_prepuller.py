"""The service's passes against an API server in memory that grants only what the prepuller declares."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hub_ext.catalog.model import Catalog
from hub_ext.cluster.kinds import Kind
from services.kube import ForbiddenError, UnavailableError
from services.prepuller.metrics import Metrics
from services.prepuller.prepuller import Prepuller
from services.prepuller.reasons import Hold, Reason, State
from services.prepuller.rights import RIGHTS
from services.prepuller.settings import Settings
from services.prepuller.store import Store
from tests.fakes.kube import FakeKube
from tests.unit.prepuller import world

GRANTED = [
    {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
    for rule in RIGHTS.rules
]
NAMESPACE = "gpu-workspaces-prepuller"
CATALOG = world.make_catalog(
    world.make_profile("one", ["base"]),
    world.make_profile("two", ["torch"]),
    images={
        "base": world.ref("base", "a"),
        "torch": {"ref": world.ref("torch", "b"), "pullSecrets": ["regcred"]},
    },
)


class Bench:
    """A prepuller whose watch is played by the test."""

    def __init__(self, nodes: int = 2, given: Settings | None = None, kube: FakeKube | None = None) -> None:
        self.kube = kube or FakeKube(rights=GRANTED)
        self.now = world.NOW
        self.woken = 0
        self.registry = CollectorRegistry()
        self.store = Store(self._wake)
        self.prepuller = Prepuller(
            given or world.settings(),
            store=self.store,
            kube=self.kube,
            metrics=Metrics(self.registry),
            clock=lambda: self.now,
        )
        for number in range(nodes):
            self.store.put(Kind.NODES, world.make_node(f"n{number}"), self.now)
        self.store.seen(Kind.NODES)
        for pod in self.kube.all_for_test("pods"):
            self.store.put(Kind.PODS, pod, self.now)
        self.store.seen(Kind.PODS, NAMESPACE)

    def _wake(self) -> None:
        self.woken += 1

    async def once(self, catalog: Catalog = CATALOG) -> list[tuple[str, str]]:
        """One pass; gives the calls that it made, by verb and name."""
        before = len(self.kube.calls)
        await self.prepuller.once(catalog)
        return self.kube.calls[before:]

    def pods(self) -> dict[str, Any]:
        return {pod["metadata"]["name"]: pod for pod in self.kube.all_for_test("pods")}

    def kubelet(self, **status: Any) -> None:
        """Have every pod that is under way become what `status` says, and the watch tell it."""
        for pod in self.pods().values():
            if "status" in pod:
                continue
            node = pod["metadata"]["annotations"]["gpu-workspaces.jupyter.org/prepull-node"]
            pod["spec"] |= {"nodeName": node}
            pod["metadata"]["creationTimestamp"] = self.now.isoformat()
            changed = self.kube.put_for_test({**pod, "status": status})
            self.store.put(Kind.PODS, changed, self.now)

    def come(self) -> None:
        ended = {"exitCode": 0, "startedAt": self.now.isoformat(), "finishedAt": self.now.isoformat()}
        self.kubelet(phase="Succeeded", containerStatuses=[{"name": "image", "state": {"terminated": ended}}])

    def refuse(self, message: str, reason: str = "ErrImagePull") -> None:
        waiting = {"reason": reason, "message": message}
        self.kubelet(phase="Pending", containerStatuses=[{"name": "image", "state": {"waiting": waiting}}])

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


async def test_passes_fetch_everything_and_then_do_nothing() -> None:
    bench = Bench()
    for _ in range(6):
        await bench.once()
        bench.come()
    assert len(bench.pods()) == 4
    woken = bench.woken
    for _ in range(50):
        assert await bench.once() == []
    assert bench.woken == woken
    assert bench.prepuller.last is not None
    assert {one.warm for one in bench.prepuller.last.summary.images} == {2}
    assert bench.value("gpu_workspaces_prepull_pins") == 4
    assert bench.value("gpu_workspaces_prepull_pulls_total", registry=world.REGISTRY, reason="") == 4


async def test_pods_carry_the_secrets_of_the_workspace() -> None:
    bench = Bench()
    await bench.once()
    secrets = {
        pod["spec"]["containers"][0]["image"]: pod["spec"].get("imagePullSecrets")
        for pod in bench.pods().values()
    }
    assert secrets == {
        CATALOG.images["base"].ref: None,
        CATALOG.images["torch"].ref: [{"name": "regcred"}],
    }


@pytest.mark.parametrize("kind", [Kind.NODES, Kind.PODS])
async def test_without_sight_nothing_is_done(kind: Kind) -> None:
    bench = Bench(given=world.settings(release={"after": "1s"}))
    await bench.once()
    bench.come()
    bench.store.lose(kind, NAMESPACE if kind is Kind.PODS else "")
    other = world.make_catalog(world.make_profile("p", ["x"]), images={"x": world.ref("x")})
    assert await bench.once(other) == []
    assert bench.prepuller.last is None


async def test_a_pod_counts_from_its_making_however_late_the_watch_is() -> None:
    bench = Bench(nodes=1)
    assert [verb for verb, _ in await bench.once()] == ["create"]
    assert await bench.once() == []


async def test_a_second_service_makes_no_second_pod() -> None:
    """Its watch was loaded before the first one's pods were there."""
    first = Bench()
    await first.once()
    made = first.pods()
    second = Bench(kube=FakeKube(rights=GRANTED))
    for pod in made.values():
        second.kube.put_for_test(pod)
    assert [verb for verb, _ in await second.once()] == ["create", "create"]
    assert second.pods().keys() == made.keys()
    assert second.value("gpu_workspaces_prepull_calls_total", verb="create", outcome="exists") == 2


async def test_a_restart_goes_on_where_the_first_service_was() -> None:
    first = Bench()
    await first.once()
    first.come()
    await first.once()
    second = Bench(kube=first.kube)
    assert await second.once() == [], "all that may be under way is under way"
    second.come()
    assert await second.once() == []
    assert second.value("gpu_workspaces_prepull_pulls_total", registry=world.REGISTRY, reason="") == 2


async def test_a_failure_is_noted_counted_and_its_pod_removed_once(caplog: Any) -> None:
    bench = Bench(nodes=1)
    await bench.once()
    bench.refuse("rpc error: code = NotFound desc = x: not found")
    calls = await bench.once()
    assert [verb for verb, _ in calls] == ["delete"]
    assert "reason=image-not-found" in caplog.text
    labels = {"registry": world.REGISTRY, "reason": "image-not-found"}
    assert bench.value("gpu_workspaces_prepull_pulls_total", **labels) == 1
    assert await bench.once() == [], "it is going; its place is not free before the watch says so"


async def test_the_first_word_about_a_failure_stays_when_the_kubelet_only_backs_off() -> None:
    bench = Bench(nodes=1)
    await bench.once()
    bench.refuse("rpc error: code = NotFound desc = x: not found")
    (pod,) = bench.pods().values()
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    pod["status"]["containerStatuses"][0]["state"] = {"waiting": waiting}
    bench.store.put(Kind.PODS, pod, bench.now)
    await bench.once()
    assert bench.prepuller.last is not None
    assert [one.reason for _, one in bench.prepuller.last.failed] == [Reason.IMAGE_NOT_FOUND]


async def test_pods_that_the_api_server_refuses_are_tried_later_and_keep_nothing_else_back() -> None:
    bench = Bench(nodes=3, given=world.settings(limits={"canary": False}))
    torch = CATALOG.images["torch"].ref

    def judge(path: str, pod: dict[str, Any]) -> tuple[int, str, str] | None:
        bad = pod["spec"]["containers"][0]["image"] == torch
        return (403, "Forbidden", 'pod rejected: RuntimeClass "nvidia" not found') if bad else None

    bench.kube.admission_for_test(judge)
    for _ in range(5):
        await bench.once()
        bench.come()
    assert len(bench.pods()) == 3
    creates = [call for call in bench.kube.calls if call[0] == "create"]
    assert len(creates) == 4, "one refusal is enough to know"
    assert bench.prepuller.last is not None
    (problem,) = bench.prepuller.last.summary.problems
    assert (problem.trouble.reason, problem.subject) == (Reason.POD_REFUSED, torch)
    assert {wait.hold for wait in bench.prepuller.last.plan.waits.values()} == {Hold.BACKOFF}


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (403, "exceeded quota: few, requested: pods=1, used: pods=5, limited: pods=5", Reason.QUOTA_FULL),
        (403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest": why', Reason.PULLS_REFUSED),
        (404, 'namespaces "gpu-workspaces-prepuller" not found', Reason.PULLS_REFUSED),
    ],
    ids=["quota", "policy", "namespace"],
)
async def test_what_is_refused_for_all_is_asked_for_once_told_once_and_heals(
    status: int, message: str, reason: Reason
) -> None:
    bench = Bench(nodes=5, given=world.settings(limits={"canary": False}))
    word = {403: "Forbidden", 404: "NotFound"}[status]
    bench.kube.admission_for_test(lambda path, pod: (status, word, message))
    for _ in range(3):
        await bench.once()
    assert [verb for verb, _ in bench.kube.calls] == ["create"], "ten pods would be refused alike"
    assert bench.prepuller.last is not None
    (problem,) = bench.prepuller.last.summary.problems
    assert (problem.trouble.reason, problem.subject) == (reason, "all images")
    bench.kube.admission_for_test(lambda path, pod: None)
    bench.now += timedelta(minutes=1)
    assert len(await bench.once()) == 1, "one tries"
    bench.come()
    assert len(await bench.once()) == 5
    assert bench.prepuller.last.summary.problems == ()


async def test_pins_that_may_not_be_deleted_keep_nothing_from_being_fetched() -> None:
    rules = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "delete"]} for rule in GRANTED]
    bench = Bench(nodes=2, kube=FakeKube(rights=rules))
    await bench.once()
    bench.refuse("not found")
    good = world.make_catalog(world.make_profile("p", ["x"]), images={"x": world.ref("x", "c")})
    bench.store.put(Kind.NODES, world.make_node("new"), bench.now)
    with pytest.raises(ForbiddenError):
        await bench.once(good)
    made = [pod["spec"]["containers"][0]["image"] for pod in bench.pods().values()]
    assert made.count(good.images["x"].ref) == 1
    assert bench.value("gpu_workspaces_prepull_calls_total", verb="delete", outcome="refused") == 2


async def test_a_pin_that_somebody_deleted_is_made_anew() -> None:
    bench = Bench(nodes=1)
    for _ in range(3):
        await bench.once()
        bench.come()
    (name, *_) = bench.pods()
    bench.kube.drop_for_test(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
    bench.store.drop(Kind.PODS, f"{NAMESPACE}/{name}")
    assert [verb for verb, _ in await bench.once()] == ["create"]
    assert name in bench.pods()


async def test_what_is_out_of_sight_is_told_nobody() -> None:
    bench = Bench()
    await bench.once()
    labels = {"pool": "", "image": CATALOG.images["base"].ref, "state": "unknown"}
    assert bench.value("gpu_workspaces_prepull_nodes", **labels) == 2
    bench.store.lose(Kind.NODES)
    assert bench.prepuller.last is None, "also before the next pass"
    await bench.once()
    assert bench.value("gpu_workspaces_prepull_nodes", **labels) is None


async def test_a_service_whose_clock_is_ahead_of_the_api_servers_gives_up_nothing() -> None:
    """A pod that was made a moment ago is two minutes old by the API server's clock."""
    bench = Bench(nodes=1)
    await bench.once()
    (pod,) = bench.pods().values()
    pod["metadata"]["creationTimestamp"] = (bench.now - timedelta(minutes=2)).isoformat()
    bench.store.put(Kind.PODS, pod, bench.now)
    assert await bench.once() == []
    bench.now += timedelta(seconds=61)
    assert [verb for verb, _ in await bench.once()] == ["delete"]


async def test_a_clock_that_is_set_back_ends_no_backoff_late() -> None:
    bench = Bench(nodes=1)
    bench.now += timedelta(days=1)
    await bench.once()
    bench.refuse("rpc error: code = NotFound desc = x: not found")
    await bench.once()
    (name,) = bench.pods() or [""]
    bench.store.drop(Kind.PODS, f"{NAMESPACE}/{name}")
    for key in list(bench.store._pods):
        bench.store.drop(Kind.PODS, key)
    bench.now -= timedelta(days=1)
    await bench.once()
    assert {wait.until for wait in _waits(bench) if wait.hold is Hold.BACKOFF} == {
        bench.now + timedelta(seconds=30)
    }


def _waits(bench: Bench) -> list[Any]:
    assert bench.prepuller.last is not None
    return list(bench.prepuller.last.plan.waits.values())


async def test_an_image_that_the_kubelet_removed_is_not_warm_though_it_was_there_before_its_pin() -> None:
    """Under disk pressure a kubelet removes ended containers, and then the images that they pinned."""
    bench = Bench(nodes=1)
    catalog = world.make_catalog(world.make_profile("one", ["base"]), images={"base": world.ref("base")})
    await bench.once(catalog)
    bench.come()
    (pod,) = bench.pods().values()
    told = event_of(pod, 'Container image "x" already present on machine', bench.now)
    bench.store.put(Kind.EVENTS, told, bench.now)
    listed = {world.ref("base"): 5, "pause:1": 1}
    bench.store.put(Kind.NODES, world.make_node("n0", images=listed), bench.now)
    bench.now += timedelta(hours=1)
    assert await bench.once(catalog) == []
    bench.store.put(Kind.NODES, world.make_node("n0", images={"pause:1": 1}), bench.now)
    assert [verb for verb, _ in await bench.once(catalog)] == ["delete"]


async def test_names_that_mean_nothing_are_logged_once_for_each_catalog(caplog: Any) -> None:
    bench = Bench(given=world.settings(skip=["onne"]))
    for _ in range(3):
        await bench.once()
    assert caplog.text.count("setting without effect: key=skip name=onne") == 1


async def test_an_api_server_that_does_not_answer_ends_the_pass_and_not_the_service() -> None:
    bench = Bench(nodes=1)
    bench.kube.fail_for_test(UnavailableError("no answer", kind="pods"))
    with pytest.raises(UnavailableError):
        await bench.once()
    assert [verb for verb, _ in await bench.once()] == ["create"]


async def test_a_pod_that_was_replaced_meanwhile_is_not_deleted() -> None:
    bench = Bench(nodes=1)
    await bench.once()
    bench.refuse("not found")
    (pod,) = bench.pods().values()
    bench.kube.drop_for_test(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
    pod["metadata"].pop("uid")
    bench.kube.put_for_test(pod)
    await bench.once()
    assert len(bench.pods()) == 1
    assert bench.value("gpu_workspaces_prepull_calls_total", verb="delete", outcome="gone") == 1


def event_of(pod: dict[str, Any], message: str, now: datetime) -> dict[str, Any]:
    metadata = pod["metadata"]
    return {
        "metadata": {"name": f"e-{message[:5]}", "uid": message, "namespace": NAMESPACE},
        "involvedObject": {
            "kind": "Pod",
            "uid": metadata["uid"],
            "name": metadata["name"],
            "fieldPath": "spec.containers{image}",
        },
        "reason": "Pulled",
        "message": message,
        "firstTimestamp": now.isoformat(),
        "lastTimestamp": now.isoformat(),
    }


async def test_what_events_tell_of_a_pull_stays_when_the_pod_changes() -> None:
    bench = Bench(nodes=1)
    await bench.once()
    bench.come()
    (pod,) = bench.pods().values()
    told = 'Successfully pulled image "x" in 12s (12s including waiting). Image size: 1000 bytes.'
    bench.store.put(Kind.EVENTS, event_of(pod, told, bench.now), bench.now)
    pod["metadata"]["labels"]["touched"] = "yes"
    bench.store.put(Kind.PODS, pod, bench.now)
    await bench.once()
    assert bench.prepuller.last is not None
    first = bench.prepuller.last.summary.images[0]
    assert (first.usual_seconds, first.bytes, first.pulls) == (12, 1000, 1)


async def test_heartbeats_wake_nobody() -> None:
    bench = Bench()
    await bench.once()
    woken = bench.woken
    node = world.make_node("n0")
    node["status"]["conditions"][0]["lastHeartbeatTime"] = world.at(60)
    node["metadata"]["resourceVersion"] = "99"
    bench.store.put(Kind.NODES, node, bench.now)
    assert bench.woken == woken
    node["status"]["images"] = [{"names": ["pause:1"], "sizeBytes": 1}]
    bench.store.put(Kind.NODES, node, bench.now)
    assert bench.woken == woken + 1


async def test_a_new_node_is_warmed_without_being_asked() -> None:
    bench = Bench(nodes=1)
    for _ in range(3):
        await bench.once()
        bench.come()
    bench.store.put(Kind.NODES, world.make_node("new"), bench.now)
    calls = await bench.once()
    assert [verb for verb, _ in calls] == ["create"]
    bench.store.drop(Kind.NODES, "/new")
    assert [verb for verb, _ in await bench.once()] == ["delete"], "its node went while it was fetching"


async def test_a_new_day_retires_versions() -> None:
    until = {"state": "deprecated", "until": "2026-11-30", "replacedBy": 2}
    catalog = world.make_catalog(
        world.make_profile("p", ["base"], **until),
        world.make_profile("p", ["torch"]) | {"version": 2},
        images={key: CATALOG.images[key].ref for key in ("base", "torch")},
    )
    bench = Bench(nodes=1, given=world.settings(release={"keepPrevious": 0, "after": "1h"}))
    bench.store.put(Kind.PODS, _pin(bench, catalog.images["base"].ref), bench.now)
    await bench.once(catalog)
    for hours in (16, 17):
        bench.now = world.NOW + timedelta(hours=hours)
        bench.come()
        calls = await bench.once(catalog)
    assert [verb for verb, _ in calls] == ["delete"]


def _pin(bench: Bench, image: str) -> dict[str, Any]:
    from services.prepuller.manifest import build_pull_pod
    from services.prepuller.settings import Settings
    from services.prepuller.wants import make_want

    pod = build_pull_pod(make_want(image), "n0", settings=Settings())
    ended = {"exitCode": 0, "finishedAt": bench.now.isoformat()}
    pod["status"] = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "image", "state": {"terminated": ended}}],
    }
    pod["spec"]["nodeName"] = "n0"
    return bench.kube.put_for_test(pod)


async def test_states_are_told_as_metrics() -> None:
    bench = Bench()
    await bench.once()
    bench.come()
    await bench.once()
    base = CATALOG.images["base"].ref
    found = {
        state: bench.value("gpu_workspaces_prepull_nodes", pool="", image=base, state=state.value)
        for state in State
    }
    assert found == dict.fromkeys(State, 0) | {State.PULLED: 1, State.UNKNOWN: 1}
    assert bench.value("gpu_workspaces_prepull_in_flight", registry=world.REGISTRY) is None


async def test_a_node_whose_clock_is_behind_ends_a_row_of_failures_all_the_same() -> None:
    bench = Bench(nodes=3, given=world.settings(limits={"firstRetry": "10s"}))
    await bench.once()
    bench.refuse("429 Too Many Requests")
    names = list(bench.pods())
    assert len(names) == 2
    await bench.once()
    assert [trouble.count for _, trouble in bench.prepuller.judge.troubles] == [1], "one incident"
    for name in names:
        bench.store.drop(Kind.PODS, f"{NAMESPACE}/{name}")
    bench.now += timedelta(minutes=1)
    assert len(await bench.once()) == 1, "one tries"
    (pod,) = bench.pods().values()
    long_ago = (bench.now - timedelta(hours=1)).isoformat()
    ended = {"exitCode": 0, "startedAt": long_ago, "finishedAt": long_ago}
    node = pod["metadata"]["annotations"]["gpu-workspaces.jupyter.org/prepull-node"]
    pod["spec"]["nodeName"] = node
    status = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "image", "state": {"terminated": ended}}],
    }
    bench.store.put(Kind.PODS, bench.kube.put_for_test({**pod, "status": status}), bench.now)
    assert len(await bench.once()) > 1
    assert list(bench.prepuller.judge.troubles) == []


async def test_problems_of_what_is_gone_are_not_told() -> None:
    bench = Bench(nodes=1)
    await bench.once()
    bench.refuse("not found")
    await bench.once()
    assert bench.prepuller.last is not None
    assert len(bench.prepuller.last.summary.problems) == 1
    other = world.make_catalog(world.make_profile("p", ["x"]), images={"x": world.ref("x")})
    await bench.once(other)
    assert bench.prepuller.last.summary.problems == ()
    bench.now += timedelta(days=2)
    await bench.once(other)
    assert not bench.prepuller.judge.troubles
