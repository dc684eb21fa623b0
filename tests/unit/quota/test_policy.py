"""Limits per user, team and for all; weights; the texts of refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog, Quota
from hub_ext.quota import texts
from hub_ext.quota.arithmetic import Resources
from hub_ext.quota.demand import holding_of, weights_of
from hub_ext.quota.policy import Limit, check, limits_for, room, with_fits
from hub_ext.quota.refusals import Answer, explain
from hub_ext.quota.usage import Holding, Observed, Owner, Usage, server_key, share_of
from hub_ext.quota.verdicts import Reason, Refusal, Scope

GPU = "nvidia.com/gpu"
SLICE = "nvidia.com/mig-1g.18gb"
ALICE = Owner(user="alice", team="nlp")


def limit(scope: Scope, **bound: Any) -> Limit:
    return Limit(scope=scope, bound={key.replace("gpus", GPU): amount for key, amount in bound.items()})


def asked(**amounts: Any) -> Resources:
    return Resources({key.replace("gpus", GPU): amount for key, amount in amounts.items()})


def test_what_fits_exactly_may_start_and_one_more_may_not() -> None:
    limits = [limit(Scope.USER, gpus=2)]
    assert check(asked(gpus=1), Usage(user=asked(gpus=1)), limits) is None
    refusal = check(asked(gpus=1), Usage(user=asked(gpus=2)), limits)
    assert refusal is not None
    assert refusal.reason is Reason.USER_LIMIT
    (shortage,) = refusal.shortages
    assert (shortage.asked, shortage.used, shortage.limit, shortage.left) == (1, 2, 2, 0)
    assert refusal.text == (
        "You have 2 of 2 GPUs in use, and this workspace needs 1 GPU. "
        "Stop one of your workspaces or pick a smaller one."
    )


def test_a_limit_does_not_touch_what_asks_for_nothing_of_it() -> None:
    usage = Usage(user=asked(gpus=5))
    assert check(asked(cpu=1000), usage, [limit(Scope.USER, gpus=2)]) is None


def test_the_narrowest_limit_is_reported_first() -> None:
    usage = Usage(user=asked(servers=3), team=asked(gpus=4), cluster=asked(gpus=9))
    limits = [limit(Scope.USER, servers=3), limit(Scope.TEAM, gpus=4), limit(Scope.CLUSTER, gpus=9)]
    reasons = []
    for number in range(3):
        refusal = check(asked(servers=1, gpus=1), usage, limits[number:])
        reasons.append(refusal.reason if refusal else None)
    assert reasons == [Reason.USER_LIMIT, Reason.TEAM_LIMIT, Reason.CLUSTER_LIMIT]


def test_more_than_the_limit_itself_says_so_instead_of_advising_to_wait() -> None:
    refusal = check(asked(gpus=4), Usage(), [limit(Scope.TEAM, gpus=2)])
    assert refusal is not None
    assert refusal.text == (
        "This workspace needs 4 GPUs, but your team may have 2 GPUs at the same time. "
        "Pick a smaller one, or ask an administrator."
    )
    none = check(asked(gpus=1), Usage(), [limit(Scope.TEAM, gpus=0)])
    assert none is not None
    assert "your team may have no GPUs at the same time" in none.text
    nothing = check(asked(memory=1), Usage(), [limit(Scope.TEAM, memory=0)])
    assert nothing is not None
    assert "your team may have no memory at the same time" in nothing.text


def test_what_would_fit_instead_is_named() -> None:
    usage, limits = Usage(user=asked(gpus=1)), [limit(Scope.USER, gpus=2)]
    plain = check(asked(gpus=2), usage, limits)
    assert plain is not None
    assert with_fits(plain, ()) is plain
    refusal = with_fits(plain, ("CPU only", "One GPU"))
    assert refusal.text == (
        "You have 1 of 2 GPUs in use, and this workspace needs 2 GPUs. What would fit now: CPU only, One GPU."
    )
    assert refusal.as_dict()["fits"] == ["CPU only", "One GPU"]
    assert refusal.as_dict()["shortages"] == [{"resource": GPU, "asked": 2, "used": 1, "limit": 2, "left": 1}]


def test_what_would_fit_is_named_beside_the_containers_that_ask() -> None:
    containers = {"notebook": asked(gpus=1), "monitor": asked(gpus=1)}
    plain = check(asked(gpus=2), Usage(), [limit(Scope.USER, gpus=1)], containers=containers)
    assert plain is not None
    text = with_fits(plain, ("CPU only",)).text
    assert text.endswith("What would fit now: CPU only. 2 of its containers ask for GPUs: notebook, monitor.")


def test_what_is_not_about_a_limit_names_nothing_instead() -> None:
    other = explain(Answer(code=503))
    assert with_fits(other, ("CPU only",)) is other


def test_sidecars_that_ask_too_are_named() -> None:
    containers = {"notebook": asked(gpus=1), "monitor": asked(gpus=1)}
    refusal = check(asked(gpus=2), Usage(), [limit(Scope.USER, gpus=1)], containers=containers)
    assert refusal is not None
    assert refusal.text.endswith("2 of its containers ask for GPUs: notebook, monitor.")


def test_how_many_more_fit_per_scope() -> None:
    usage = Usage(user=asked(gpus=1), team=asked(gpus=4, memory=10), cluster=asked(gpus=4))
    limits = [limit(Scope.USER, gpus=4), limit(Scope.TEAM, gpus=8, memory=16)]
    left = room(asked(gpus=2, memory=3), usage, limits)
    assert (left.user, left.team, left.cluster, left.least) == (1, 2, None, 1)
    assert room(asked(gpus=2), Usage(user=asked(gpus=9)), limits[:1]).user == 0
    assert room(asked(cpu=1), usage, limits).least is None


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        (GPU, 1, "1 GPU"),
        (GPU, 0, "0 GPUs"),
        (f"requests.{GPU}", 4, "4 GPUs"),
        (SLICE, 2, "2 1g.18gb GPU slices"),
        ("nvidia.com/gpu.shared", 1, "1 GPU share"),
        ("amd.com/gpu", 2, "2 AMD GPUs"),
        ("example.com/dongle", 2, "2 example.com/dongle"),
        ("requests.ephemeral-storage", 10 * 1024**3, "10 GiB of disk space"),
        ("hugepages-2Mi", 512 * 1024**2, "512 MiB of huge pages"),
        ("persistentvolumeclaims", 1, "1 volume"),
        ("gold.storageclass.storage.k8s.io/requests.storage", 1024**4, "1 TiB of storage"),
        ("gpuEquivalents", Fraction(2, 7), "0.29 GPU equivalents"),
        ("gpuEquivalents", 1, "1 GPU equivalent"),
        ("servers", 3, "3 running workspaces"),
        ("cpu", 1000, "1 CPU core"),
        ("limits.cpu", 500, "0.5 CPU cores"),
        ("requests.memory", 64 * 1024**3, "64 GiB of memory"),
        ("memory", 0, "0 of memory"),
        ("count/pods", 20, "20 pods"),
    ],
)
def test_amounts_are_written_with_their_unit(resource: str, value: Any, text: str) -> None:
    assert texts.amount(resource, value) == text


def test_every_reason_of_the_api_server_has_a_text_that_says_what_next() -> None:
    own = {Reason.USER_LIMIT, Reason.TEAM_LIMIT, Reason.CLUSTER_LIMIT, Reason.NAMESPACE_QUOTA}
    for reason in set(Reason) - own:
        text = texts.refused(reason, "thing")
        assert text.endswith(("Please tell an administrator.", "It is tried again by itself."))
    ended = texts.gave_up(texts.refused(Reason.WEBHOOK_UNREACHABLE, "mpod.example.org"))
    assert ended == (
        "A part of the cluster that must approve each start (mpod.example.org) does not answer. "
        "It did not get better in time; please try again later."
    )


@pytest.fixture
def catalog() -> Catalog:
    return load_catalog(
        {
            "apiVersion": "gpu-workspaces/v1",
            "kind": "Catalog",
            "images": {
                "base": {"ref": "registry.example.com/base@sha256:" + "a" * 64, "displayName": "Base"}
            },
            "pools": {
                "whole": {"gpu": {"product": "NVIDIA-H200", "sharing": "exclusive", "weight": 2}},
                "mig": {
                    "gpu": {
                        "product": "NVIDIA-H200",
                        "sharing": "mig",
                        "geometry": {"1g.18gb": 7},
                        "weight": 2,
                    }
                },
                "turns": {"gpu": {"product": "NVIDIA-L40S", "sharing": "time-slicing", "replicas": 4}},
            },
            "quota": {"servers": 100},
            "teams": {
                "nlp": {
                    "groups": ["nlp"],
                    "quota": {"gpuEquivalents": 6, GPU: 4},
                    "perUser": {"servers": 3, "gpuEquivalents": 2, "memory": "64Gi", "cpu": 16},
                }
            },
            "profiles": [
                {
                    "name": "cpu",
                    "version": 1,
                    "displayName": "CPU",
                    "images": ["base"],
                    "resources": {"cpu": 1, "memory": "2Gi"},
                }
            ],
        }
    )


def test_limits_come_from_the_team_and_from_what_bounds_all(catalog: Catalog) -> None:
    limits = limits_for(catalog, "nlp")
    assert [(one.scope, dict(one.bound)) for one in limits] == [
        (
            Scope.USER,
            {"servers": 3, "cpu": 16000, "memory": 64 * 1024**3, "gpuEquivalents": Fraction(2)},
        ),
        (Scope.TEAM, {"gpuEquivalents": Fraction(6), GPU: 4}),
        (Scope.CLUSTER, {"servers": 100}),
    ]
    assert [one.scope for one in limits_for(catalog, "unknown")] == [Scope.CLUSTER]
    open_to_all = catalog.model_copy(update={"quota": Quota()})
    assert limits_for(open_to_all, "unknown") == ()


def test_weights_say_what_a_slice_and_a_share_are_worth(catalog: Catalog) -> None:
    weights = weights_of(catalog)
    assert weights.of(GPU, "whole") == 2
    assert weights.of(GPU, "turns") == Fraction(1, 4)
    assert weights.of(SLICE, "mig") == Fraction(2, 7)
    assert weights.of(GPU) == 2, "a pod that names no pool is charged the dearest"
    assert weights.of("nvidia.com/mig-3g.71gb") == Fraction(3, 7), "a slice that no pool lists"
    assert weights.of("nvidia.com/mig-1g.18gb.me") == Fraction(1, 7)
    assert weights.of("amd.com/gpu") == 1
    assert weights.worth(Resources({"cpu": 9000, SLICE: 7}), "mig") == 2


def test_slices_count_against_equivalents_but_not_against_a_name_they_do_not_have(catalog: Catalog) -> None:
    """A quota on whole cards alone leaves slices unbounded; equivalents do not."""
    weights = weights_of(catalog)
    used = Resources({GPU: 2, SLICE: 12, "gpuEquivalents": weights.worth(Resources({GPU: 2, SLICE: 12}))})
    more = Resources({SLICE: 2, "gpuEquivalents": weights.worth(Resources({SLICE: 2}))})
    usage = Usage(team=used)
    assert check(more, usage, [limit(Scope.TEAM, gpus=2)]) is None
    refusal = check(more, usage, [limit(Scope.TEAM, gpuEquivalents=6)])
    assert refusal is not None
    (shortage,) = refusal.shortages
    assert shortage.used == Fraction(4) + Fraction(24, 7)
    assert shortage.asked + shortage.used == Fraction(8)


def pod(
    user: str, server: str = "", *, team: str = "nlp", pool: str = "whole", **extra: Any
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"jupyter-{user}--{server}",
            "namespace": "hub",
            "labels": {
                "component": "singleuser-server",
                "gpu-workspaces.jupyter.org/team": team,
                "gpu-workspaces.jupyter.org/pool": pool,
                **extra,
            },
            "annotations": {"hub.jupyter.org/username": user, "hub.jupyter.org/servername": server},
        },
        "spec": {"containers": [{"name": "notebook", "resources": {"limits": {GPU: "1", "cpu": "2"}}}]},
        "status": {"phase": "Running"},
    }


def test_a_pod_says_whom_it_is_charged_to(catalog: Catalog) -> None:
    holding = holding_of(pod("alice", "train"), weights_of(catalog))
    assert holding.key == server_key("hub", "alice", "train")
    assert holding.owner == ALICE
    assert holding.taken == Resources({"servers": 1, "cpu": 2000, GPU: 1, "gpuEquivalents": 2})


def test_a_job_takes_resources_but_is_no_server(catalog: Catalog) -> None:
    holding = holding_of(pod("alice", component="job"), weights_of(catalog))
    assert holding.taken["servers"] == 0
    assert holding.taken[GPU] == 1
    assert holding.owner == ALICE
    assert holding.key.startswith("pod:")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b/c", ""), ("a", "b", "c")),
        (("n", "x%2Fy", ""), ("n", "x/y", "")),
        (("n", "u", ""), ("n", "", "u")),
    ],
)
def test_keys_of_different_servers_differ(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert server_key(*one) != server_key(*other)


def test_sums_follow_the_cluster(catalog: Catalog) -> None:
    weights = weights_of(catalog)
    observed = Observed()
    observed.put("1", holding_of(pod("alice"), weights))
    observed.put("2", holding_of(pod("bob"), weights))
    observed.put("3", holding_of(pod("carol", team="vision"), weights))
    usage = observed.usage(ALICE)
    assert (usage.user[GPU], usage.team[GPU], usage.cluster[GPU]) == (1, 2, 3)
    observed.put("1", None)
    observed.put("1", None)
    observed.put("4", None)
    usage = observed.usage(ALICE)
    assert (usage.user[GPU], usage.team[GPU], usage.cluster[GPU]) == (0, 1, 2)
    assert len(observed) == 2
    assert not observed.of(server_key("hub", "alice"))


def test_no_team_is_not_a_team() -> None:
    one = Holding(key="x", owner=Owner(user="alice"), taken=asked(gpus=1))
    usage = share_of(one, Owner(user="bob"))
    assert not usage.team
    assert Observed([("1", one)]).usage(Owner(user="bob")).team == Resources()


def test_a_refusal_never_shows_fractions_with_a_tail_of_digits() -> None:
    refusal = check(
        Resources({"gpuEquivalents": Fraction(2, 7)}),
        Usage(user=Resources({"gpuEquivalents": Fraction(6, 7)})),
        [limit(Scope.USER, gpuEquivalents=1)],
    )
    assert isinstance(refusal, Refusal)
    assert refusal.text.startswith("You have 0.86 of 1 GPU equivalent in use, and this workspace needs 0.29")
