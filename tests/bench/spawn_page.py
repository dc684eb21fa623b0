"""What the spawn page costs the hub: ours for 100 profiles on 1,000 nodes, and KubeSpawner's form.

Processor time of one page, in the median of many. Ours says for each profile what is free and how many more
the user may start; KubeSpawner's form shows as many profiles with the same choices and says neither.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from hub_ext.catalog.compose import compose
from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.cluster.hub import HubCluster
from hub_ext.cluster.kinds import Kind
from hub_ext.cluster.offer import Rules, summary
from hub_ext.cluster.state import ClusterState
from hub_ext.cluster.watch import ClusterWatch
from hub_ext.form.entries import Visit
from hub_ext.form.page import build_page
from hub_ext.form.render import render
from hub_ext.quota.demand import weights_of
from hub_ext.quota.usage import Owner
from hub_ext.selection_access import Person

POOLS = 10
CHOICES = 3
OPTIONS = 10
PAGES = 30


def large_catalog(profiles: int) -> Catalog:
    """A catalog of so many profiles in ten pools, each with three choices of ten options."""
    digest = "sha256:" + "a" * 64
    images = {
        f"image-{number}": {
            "ref": f"registry.example.com/i{number}@{digest}",
            "displayName": f"Image {number}",
        }
        for number in range(OPTIONS)
    }
    option_sets = {
        f"set-{choice}": {
            "displayName": f"Choice {choice}",
            "options": {
                f"option-{option}": {
                    "displayName": f"Option {option}",
                    "environment": {f"CHOICE_{choice}": str(option)},
                }
                for option in range(OPTIONS)
            },
        }
        for choice in range(CHOICES - 1)
    }
    pools = {
        f"pool-{number}": {
            "nodeSelector": {"pool": f"pool-{number}"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "gpu": {"product": "NVIDIA-H200", "sharing": "exclusive", "perNode": 8},
        }
        for number in range(POOLS)
    }
    listed = [
        {
            "name": f"profile-{number}",
            "version": 1,
            "displayName": f"Profile {number}",
            "description": "One card, with the libraries that most projects need.",
            "images": list(images),
            "resources": {
                "cpu": 4,
                "memory": "32Gi",
                "gpu": {"pool": f"pool-{number % POOLS}", "count": 1 + number // POOLS % 4},
            },
            "choices": {f"choice-{choice}": f"set-{choice}" for choice in range(CHOICES - 1)},
        }
        for number in range(profiles)
    ]
    return load_catalog(
        {
            "apiVersion": "gpu-workspaces/v1",
            "kind": "Catalog",
            "images": images,
            "pools": pools,
            "optionSets": option_sets,
            "teams": {"nlp": {"groups": ["nlp"], "quota": {"gpuEquivalents": 64}, "perUser": {"servers": 3}}},
            "profiles": listed,
        }
    )


def build_node(number: int) -> dict[str, Any]:
    """A node of one of the pools."""
    return {
        "metadata": {
            "name": f"node-{number}",
            "labels": {"pool": f"pool-{number % POOLS}", "nvidia.com/gpu.count": "8"},
            "creationTimestamp": "2026-11-30T00:00:00Z",
        },
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "128", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


class _Clock:
    """Goes on a second with each page, so that no answer of the page before is used again."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def our_page(profiles: int, nodes: int, *, shared: bool) -> Callable[[], object]:
    """Make the function that makes one page; `shared`: several pages in one second."""
    catalog = large_catalog(profiles)
    rules = Rules(catalog=catalog, weights=weights_of(catalog))
    state, clock = ClusterState(rules.weights), _Clock()
    state.seen(Kind.NODES)
    for number in range(nodes):
        state.put(Kind.NODES, build_node(number), clock.now)
    cluster = HubCluster(ClusterWatch(state, [], clock=clock), rules, clock=clock)
    person, owner = Person(name="ada", groups=frozenset({"nlp"})), Owner(user="ada", team="nlp")

    workspaces = {profile.key: compose(catalog, profile, {}) for profile in catalog.profiles}

    def page() -> object:
        if not shared:
            clock.now += timedelta(seconds=1)
        lines = {
            key: summary(cluster.offer(workspace, owner, namespace="hub"))
            for key, workspace in workspaces.items()
        }
        visit = Visit(
            person=person,
            server_name="",
            today=date(2026, 11, 30),
            last={},
            link=None,
            refused=None,
            hub_home=True,
        )
        return render(build_page(catalog, visit)), lines

    return page


async def stock_page(profiles: int) -> Callable[[], object]:
    """Make the function that renders KubeSpawner's form for as many profiles and choices."""
    from kubespawner import KubeSpawner

    def choices(number: int) -> dict[str, Any]:
        return {
            f"option-{option}": {
                "display_name": f"Option {option}",
                "kubespawner_override": {"environment": {f"CHOICE_{number}": str(option)}},
            }
            for option in range(OPTIONS)
        }

    listed = [
        {
            "display_name": f"Profile {number}",
            "slug": f"profile-{number}",
            "description": "One card, with the libraries that most projects need.",
            "profile_options": {
                f"choice-{choice}": {"display_name": f"Choice {choice}", "choices": choices(choice)}
                for choice in range(CHOICES)
            },
            "kubespawner_override": {"extra_resource_limits": {"nvidia.com/gpu": "1"}},
        }
        for number in range(profiles)
    ]
    user = SimpleNamespace(name="ada", id=1, url="/", escaped_name="ada")
    spawner = KubeSpawner(_mock=True, user=user, profile_list=listed)
    initialized = spawner._get_initialized_profile_list(listed)
    return lambda: spawner._render_options_form(initialized)


def median_seconds(page: Callable[[], object]) -> float:
    """Give the processor time of one page."""
    times = []
    for _ in range(PAGES):
        begun = time.process_time()
        page()
        times.append(time.process_time() - begun)
    return statistics.median(times)


async def measure(profiles: int, nodes: int) -> dict[str, float]:
    """Give the seconds of a page in each variant."""
    return {
        "stock": median_seconds(await stock_page(profiles)),
        "alone": median_seconds(our_page(profiles, nodes, shared=False)),
        "shared": median_seconds(our_page(profiles, nodes, shared=True)),
    }


if __name__ == "__main__":
    # KubeSpawner wants a KUBECONFIG and a running loop before it renders anything.
    print(json.dumps(asyncio.run(measure(int(sys.argv[1]), int(sys.argv[2])))))
