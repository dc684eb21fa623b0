"""Rules around runs: queues, homes, controllers, limits, retention, tokens, costs, the form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from hub_ext.catalog.model import Catalog, RunKind
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import weights_of
from hub_ext.quota.policy import limits_for
from hub_ext.quota.usage import Holding, Owner
from hub_ext.quota.words import named
from services.job_handoff.census import holding_of
from services.job_handoff.cost import cost_of
from services.job_handoff.form import fields_of, request_of
from services.job_handoff.home import judge_home
from services.job_handoff.ids import Claims, read_token, token_for
from services.job_handoff.installed import Installed, read_trainer, unavailable
from services.job_handoff.limits import judge_limits, openable, usage_of
from services.job_handoff.model import read_request
from services.job_handoff.places import group_of, owner_prefix, record_path
from services.job_handoff.plan import Plan
from services.job_handoff.queue import When, forecast, uncovered
from services.job_handoff.queue_facts import read_queue
from services.job_handoff.record import record_of
from services.job_handoff.retention import Fate, is_orphan, is_over, judge_object
from services.job_handoff.settings import HandoffSettings, Keeping
from services.job_handoff.verdicts import RunRefusedError

from .conftest import CATALOG, NOW

Make = Callable[..., Plan]


# Queues


def queue_of(*resources: tuple[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    names = [name for name, _ in resources]
    quotas = [{"name": name, "nominalQuota": amount} for name, amount in resources]
    flavors = [{"name": "f", "resources": quotas}]
    usage = [{"name": "f", "resources": [{"name": n, "total": a} for n, a in (used or {}).items()]}]
    return {
        "metadata": {"name": "team"},
        "spec": {"resourceGroups": [{"coveredResources": names, "flavors": flavors}], **spec},
        "status": {"flavorsReservation": usage},
    }


GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.18gb"
ONE = Resources({"cpu": 4000, "memory": 2**34, GPU: 1})
SLICE = Resources({"cpu": 4000, "memory": 2**34, MIG: 1})


@pytest.mark.parametrize(
    ("asked", "excluded", "missing"),
    [
        (ONE, (), ("cpu", "memory")),
        (SLICE, (), ("cpu", "memory", MIG)),
        (ONE, ("cpu", "memory"), ()),
        (SLICE, ("cpu", "memory"), (MIG,)),
    ],
)
def test_what_a_queue_does_not_count_is_named_before_a_run_waits_for_ever(
    asked: Resources, excluded: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    queue = read_queue(queue_of((GPU, "8")), {})
    assert uncovered(queue.covered, asked, excluded) == missing
    seen = forecast(queue, asked, selector={}, excluded=excluded)
    if missing:
        assert (seen.when, seen.reason) == (When.NEVER, "queue-uncovered")
        assert all(named(name) in seen.text and name in seen.help for name in missing)
        assert "coveredResources" in seen.help
    else:
        assert seen.when is When.NOW


WHOLE = (("cpu", "16"), ("memory", "64Gi"), (GPU, "4"))


@pytest.mark.parametrize(
    ("used", "asked", "waiting", "when", "words"),
    [
        ({}, {GPU: 1}, 0, When.NOW, "has room"),
        ({GPU: "3"}, {GPU: 1}, 0, When.NOW, "has room"),
        ({GPU: "4"}, {GPU: 1}, 0, When.WAIT, "4 of 4 GPUs in use. Nobody waits before it."),
        ({GPU: "4"}, {GPU: 1}, 2, When.WAIT, "2 runs wait before it."),
        ({}, {GPU: 1}, 1, When.WAIT, "1 run waits before it."),
        ({}, {GPU: 5}, 0, When.NEVER, "5 GPUs"),
        ({}, {"cpu": 17_000}, None, When.NEVER, "17 CPU cores"),
    ],
)
def test_a_forecast_says_now_later_or_never(
    used: dict[str, str], asked: dict[str, int], waiting: int | None, when: When, words: str
) -> None:
    queue = read_queue(queue_of(*WHOLE, used=used), {}, waiting=waiting)
    seen = forecast(queue, Resources(asked), selector={})
    assert seen.when is when
    assert words in seen.text
    assert "workspace" not in seen.text


def test_what_may_be_borrowed_without_bound_is_never_called_impossible() -> None:
    spec = queue_of(*WHOLE, cohortName="all")
    assert forecast(read_queue(spec, {}), Resources({GPU: 9}), selector={}).when is When.WAIT
    for group in spec["spec"]["resourceGroups"]:
        for flavor in group["flavors"]:
            for one in flavor["resources"]:
                one["borrowingLimit"] = "0"
    assert forecast(read_queue(spec, {}), Resources({GPU: 9}), selector={}).when is When.NEVER


def test_queues_that_are_missing_stopped_or_of_other_nodes() -> None:
    assert forecast(None, ONE, selector={}).reason == "queue-missing"
    stopped = read_queue(queue_of(*WHOLE, stopPolicy="Hold"), {})
    assert forecast(stopped, ONE, selector={}).when is When.WAIT
    flavor = {"f": {"metadata": {"name": "f"}, "spec": {"nodeLabels": {"pool": "a"}}}}
    elsewhere = forecast(read_queue(queue_of(*WHOLE), flavor), ONE, selector={"pool": "b"})
    assert elsewhere.when is When.NEVER


# Homes


@pytest.mark.parametrize(
    ("mode", "running", "mount"),
    [
        ("ReadWriteOnce", True, False),
        ("ReadWriteOncePod", True, False),
        ("ReadWriteMany", True, True),
        ("ReadWriteOnce", False, True),
        ("ReadWriteOncePod", False, True),
        ("ReadWriteOnce", None, False),
        ("ReadOnlyMany", None, True),
    ],
)
def test_a_home_is_mounted_only_where_it_can_be(mode: str, running: bool | None, mount: bool) -> None:
    verdict = judge_home(mode, running=running)
    assert verdict.mount is mount
    assert bool(verdict.text) is not mount
    assert judge_home(mode, running=running, reachable=False).mount is False


# Controllers

BOTH = frozenset({"v1beta1", "v1beta2"})
NEW = frozenset({"v1beta2"})
OLD_TRAINER = {"trainer": True, "trainer_patches": True, "trainer_grace": False}
NEW_TRAINER = {"trainer": True, "trainer_patches": True, "trainer_grace": True}


@pytest.mark.parametrize(
    ("installed", "kinds"),
    [
        (Installed(kueue=BOTH, ray=True, **OLD_TRAINER), set()),
        (Installed(kueue=NEW, ray=True, **NEW_TRAINER), set()),
        (Installed(kueue=BOTH, ray=True, **NEW_TRAINER), {RunKind.TRAIN_JOB}),
        (Installed(kueue=NEW, ray=True, **OLD_TRAINER), {RunKind.TRAIN_JOB}),
        (Installed(kueue=BOTH, ray=False, trainer=False), {RunKind.TRAIN_JOB, RunKind.RAY_JOB}),
        (Installed(kueue=BOTH, ray=True, trainer=True, trainer_patches=False), {RunKind.TRAIN_JOB}),
        (Installed(kueue=frozenset({"v1beta1"})), set(RunKind)),
        (Installed(kueue=frozenset()), set(RunKind)),
        (Installed(kueue=None), set()),
    ],
)
def test_controllers_that_do_not_fit_are_found(installed: Installed, kinds: set[RunKind]) -> None:
    found = unavailable(installed)
    assert set(found) == kinds
    assert all(text.endswith(".") for text in found.values())


def test_the_schema_tells_the_version_of_trainer() -> None:
    def schema(**pod: Any) -> dict[str, Any]:
        inner: dict[str, Any] = {"properties": {"serviceAccountName": {}, **pod}}
        for name in ("spec", "template", "spec", "template"):
            inner = {"properties": {name: inner}}
        inner = {"properties": {"replicatedJobs": {"items": inner}}}
        for name in ("spec", "template", "trainingRuntimeSpec"):
            inner = {"properties": {name: inner}}
        spec = {"properties": {"runtimePatches": {"items": inner}}}
        return {"components": {"schemas": {"io.x.v1alpha1.TrainJob": {"properties": {"spec": spec}}}}}

    assert read_trainer(schema()) == (True, False)
    assert read_trainer(schema(terminationGracePeriodSeconds={})) == (True, True)
    assert read_trainer({}) == (False, False)


# Limits


def holding(user: str, gpus: int, name: str = "x") -> Holding:
    taken = Resources({GPU: gpus, "gpuEquivalents": Fraction(gpus)})
    return Holding(key=f"run:{name}", owner=Owner(user=user, team="nlp"), taken=taken)


@pytest.mark.parametrize(
    ("taken", "asked", "held", "never"),
    [
        (0, 2, False, False),
        (1, 1, False, False),
        (1, 2, True, False),
        (0, 3, False, True),
        (2, 0, False, False),
    ],
)
def test_a_member_s_limit_holds_a_run_back_and_refuses_what_never_fits(
    catalog: Catalog, taken: int, asked: int, held: bool, never: bool
) -> None:
    limits = limits_for(catalog, "nlp")
    mine = holding("ada", asked)
    verdict = judge_limits(
        mine.taken, usage_of([holding("ada", taken), holding("eve", 1)], mine.owner), limits
    )
    assert (verdict.held, verdict.never) == (held, never)
    if verdict.refusal:
        assert "this run needs" in verdict.refusal.text.lower()


def test_held_runs_go_on_first_come_first_served_for_each_member(catalog: Catalog) -> None:
    limits = limits_for(catalog, "nlp")
    held = [
        ("a1", holding("ada", 2, "a1")),
        ("a2", holding("ada", 1, "a2")),
        ("e1", holding("eve", 1, "e1")),
        ("e2", holding("eve", 1, "e2")),
        ("e3", holding("eve", 1, "e3")),
    ]
    bounds = [limits] * len(held)
    assert openable(held, [holding("ada", 1)], bounds) == ("e1", "e2")
    assert openable(held, [], bounds) == ("a1", "e1", "e2")


def test_a_run_counts_with_all_its_pods(catalog: Catalog, plan: Make) -> None:
    made = plan(profile="card", kind="trainjob", nodes=3, choices={"cards": "four"})
    found = holding_of(record_of(made, submitted=NOW), weights_of(catalog))
    assert (found.taken[GPU], found.taken["gpuEquivalents"], found.taken["servers"]) == (12, 12, 0)
    slices = holding_of(record_of(plan(profile="slice"), submitted=NOW), weights_of(catalog))
    assert slices.taken["gpuEquivalents"] == Fraction(1, 7)


# Keeping


@pytest.mark.parametrize(
    ("ended", "canceled", "fate"),
    [
        (None, True, Fate.KEEP),
        (timedelta(0), False, Fate.KEEP),
        (timedelta(days=2), False, Fate.REMOVE),
        (timedelta(0), True, Fate.REMOVE),
    ],
)
def test_an_object_goes_when_its_time_is_over(ended: timedelta | None, canceled: bool, fate: Fate) -> None:
    moment = None if ended is None else NOW - ended
    assert judge_object(moment, canceled=canceled, keep=Keeping(), now=NOW) is fate


def test_files_of_unknown_age_stay() -> None:
    keep = Keeping(files="1d")
    assert is_over(NOW - timedelta(days=1), keep=keep, now=NOW)
    assert not is_over(NOW, keep=keep, now=NOW)
    assert not is_over(None, keep=keep, now=NOW)
    assert not is_orphan(None, now=NOW)
    assert not is_orphan(NOW, now=NOW)
    assert is_orphan(NOW - timedelta(hours=2), now=NOW)


def test_files_of_a_run_stay_together() -> None:
    assert group_of("nlp/ada/runs/r/outputs/a/b") == group_of("nlp/ada/runs/r/log.txt") == "nlp/ada/runs/r"
    assert group_of("nlp/ada/records/r.json") == "nlp/ada/records/r.json"


# Places and tokens


@pytest.mark.parametrize("user", ["../../vision/bob", "a/b", "Ada", "", "x" * 200, "bob--aaaaaaaaaa"])
def test_no_name_leads_into_another_s_folder(user: str) -> None:
    parts = owner_prefix("nlp", user).split("/")
    assert len(parts) == 2
    assert parts[1] not in {"..", "."}
    assert owner_prefix("nlp", user) != owner_prefix("nlp", user + "x")
    assert record_path("", user, "r").startswith("_none/")


def test_tokens_of_runs_are_sealed() -> None:
    claims = Claims(team="nlp", user="ada/ü", run="run-aaaaaaaaaaaaaaaa", lineage="run-bbbbbbbbbbbbbbbb")
    token = token_for(b"secret", claims)
    assert read_token(b"secret", token, claims.run) == claims
    assert read_token(b"other", token, claims.run) is None
    assert read_token(b"secret", token, "run-cccccccccccccccc") is None
    payload, _, seal = token.partition(".")
    for forged in ("", ".", token + "0", payload, f"{payload}x.{seal}", f".{seal}", "é.é"):
        assert read_token(b"secret", forged, claims.run) is None


# Costs


def test_a_run_costs_what_its_pods_cost_while_they_run(plan: Make) -> None:
    record = record_of(plan(profile="card", kind="trainjob", nodes=2), submitted=NOW)
    assert cost_of(record, timedelta(minutes=30)) == {"amount": "2.40", "currency": "EUR", "text": "2.40 EUR"}
    assert cost_of(record, timedelta(0)) == {"amount": "0.00", "currency": "EUR", "text": "0.00 EUR"}
    assert cost_of(replace(record, price_per_hour=""), timedelta(hours=1)) is None


# Settings


def test_runs_do_not_share_a_namespace_with_servers() -> None:
    told = {
        "catalog": str(CATALOG),
        "namespace": "hub",
        "serverNamespaces": ["hub"],
        "store": {"url": "file:///x"},
        "runner": {"url": "http://x/"},
    }
    with pytest.raises(ValueError, match="share a namespace"):
        HandoffSettings.model_validate(told)


# The form


def test_a_form_becomes_the_request_of_the_interface() -> None:
    fields = {
        "key": "k",
        "path": "a.ipynb",
        "snapshot": "0" * 64,
        "profile": "card",
        "parameters": "lr = 0.1\nname = ada\nlist = [1, 2]\n",
        "choice:card:cards": "four",
        "choice:cpu:size": "large",
        "server": "",
        "image": "server",
        "release": "on",
        "retries": "2",
        "cron": "",
    }
    request = read_request(request_of(fields))
    assert request.entry.parameters == {"lr": 0.1, "name": "ada", "list": [1, 2]}  # type: ignore[union-attr]
    assert (request.choices, request.image, request.release) == ({"cards": "four"}, "server", True)
    assert (request.retries, request.schedule) == (2, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "a.ipynb", "parameters": "{broken"},
        {"path": "a.ipynb", "parameters": "no equals sign"},
        {"path": "a.py", "arguments": "'open"},
        {"path": "a.py", "profile": "card", "nodes:card": "-1"},
        {"path": "a.py", "retries": "99999"},
    ],
)
def test_a_form_that_makes_no_sense_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(RunRefusedError) as error:
        request_of(fields)
    assert error.value.reason == "bad-request"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"server": "", "image": "server", "release": True},
        {"server": "b", "image": "profile", "release": False},
        {"entry": {"type": "script", "path": "a.sh", "arguments": [], "launcher": "bash"}},
        {
            "entry": {
                "type": "notebook",
                "path": "a.ipynb",
                "parameters": {"lr": 0.1, "text": " a = b\n\u2028", "list": [1, None], "number": "7"},
                "kernel": "py",
            }
        },
    ],
)
def test_the_form_of_a_request_gives_the_request_again(more: dict[str, Any]) -> None:
    request = {
        "key": "k",
        "name": "A name",
        "profile": "card",
        "team": "nlp",
        "kind": "trainjob",
        "entry": {
            "type": "script",
            "path": "a.py",
            "arguments": ["--lr", "a b", "", "it's"],
            "launcher": "torchrun",
        },
        "source": {"type": "snapshot", "sha256": "a" * 64},
        "priority": "normal",
        "maxDuration": "4h",
        "resumeFrom": "run-abcdefghijklmnop",
        "choices": {"cards": "four"},
        "nodes": 3,
        "retries": 0,
        "schedule": {"cron": "0 6 * * 1-5", "timeZone": "Europe/Berlin"},
        **more,
    }
    assert request_of(fields_of(request)) == request


def test_a_form_has_today_s_version_of_a_profile() -> None:
    fields = fields_of({"profile": "card@1", "nodes": 2, "kind": None, "schedule": None, "server": None})
    assert fields == {"profile": "card", "nodes:card": "2"}
