"""Catalogs of all kinds, for tests that must hold for any of them.

What is drawn may break rules of the catalog that concern several entries; callers keep what validates.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

DIGEST = "sha256:" + "0123456789abcdef" * 4
API_VERSION = "gpu-workspaces/v1"

names = st.from_regex(r"\A[a-z]([a-z0-9-]{0,12}[a-z0-9])?\Z")
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(str.strip)
label_values = st.from_regex(r"\A[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?\Z")
environments = st.dictionaries(st.from_regex(r"\A[A-Z_][A-Z0-9_]{0,12}\Z"), st.text(max_size=20), max_size=3)


def amounts(unit: str, most: int) -> st.SearchStrategy[dict[str, str]]:
    """A request, and a limit that is not below it."""
    pairs = st.tuples(st.integers(1, most), st.none() | st.integers(0, most))
    return pairs.map(
        lambda pair: (
            {"request": f"{pair[0]}{unit}"}
            | ({} if pair[1] is None else {"limit": f"{pair[0] + pair[1]}{unit}"})
        )
    )


gpus = st.sampled_from(
    [
        {"sharing": "exclusive", "product": "NVIDIA-H200"},
        {"sharing": "exclusive", "resourceName": "amd.com/gpu"},
        {"sharing": "mig", "product": "NVIDIA-H200", "geometry": {"1g.18gb": 7}},
        {"sharing": "mig", "product": "NVIDIA-H200", "strategy": "single", "geometry": {"3g.71gb": 2}},
        {"sharing": "mig", "product": "NVIDIA-H200", "geometry": {"1g.18gb+me": 1}},
        {"sharing": "time-slicing", "product": "NVIDIA-L40S", "replicas": 4, "renameByDefault": True},
        {"sharing": "time-slicing", "product": "NVIDIA-L40S", "replicas": 2},
        {"sharing": "mps", "product": "NVIDIA-L40S", "replicas": 3, "renameByDefault": True},
    ]
)

tolerations = st.fixed_dictionaries(
    {"key": st.sampled_from(["nvidia.com/gpu", "team", "spot.example.com/pool"])},
    optional={"effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])},
).flatmap(
    lambda t: st.one_of(
        st.just(t | {"operator": "Exists"}), label_values.map(lambda value: t | {"value": value})
    )
)

mounts = st.fixed_dictionaries(
    {"claim": names, "mountPath": st.just("/data")},
    optional={"readOnly": st.booleans(), "subPath": st.sampled_from(["public", "{team}/{user}"])},
)

storages = st.fixed_dictionaries(
    {},
    optional={
        "home": st.fixed_dictionaries(
            {"size": st.just("10Gi")},
            optional={"class": names, "accessMode": st.sampled_from(["ReadWriteOnce", "ReadWriteMany"])},
        ),
        "scratch": st.fixed_dictionaries({"sizeLimit": st.just("5Gi")}, optional={"class": names}),
        "datasets": mounts,
        "sharedMemory": st.just("64Mi"),
        "checkpoints": st.just({"uri": "s3://bucket/{team}/{user}/{server}/"}),
        "workDir": st.sampled_from(["/home/jovyan/work", "/scratch"]),
    },
)

securities = st.fixed_dictionaries(
    {},
    optional={
        "runAsUser": st.integers(0, 70_000),
        "runAsGroup": st.integers(0, 70_000),
        "fsGroup": st.integers(0, 70_000),
        "allowPrivilegeEscalation": st.booleans(),
        "serviceAccountToken": st.booleans(),
        "networkProfile": label_values,
    },
)


@st.composite
def catalogs(draw: st.DrawFn) -> dict[str, Any]:
    """A catalog as it is written."""
    pools = draw(st.dictionaries(names, st.none() | gpus, min_size=1, max_size=3))
    written = {
        name: {
            "nodeSelector": {"pool.example.com/name": name},
            "tolerations": draw(st.lists(tolerations, max_size=2)),
            **({"gpu": gpu} if gpu else {}),
        }
        for name, gpu in pools.items()
    }
    images = {
        "tagged": {"ref": "registry.example.com:5000/ai/base:7e10", "displayName": "A", "allowTag": True},
        "pinned": {"ref": f"registry.example.com/ai/cuda@{DIGEST}", "displayName": "B", "cuda": "12.4"},
    }
    profiles = [
        draw(_profiles(name, pools)) for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "Catalog",
        "images": images,
        "pools": written,
        "teams": {"nlp": {"groups": ["nlp"], "costCenter": draw(label_values)}},
        "profiles": profiles,
    }


@st.composite
def _profiles(draw: st.DrawFn, name: str, pools: dict[str, Any]) -> dict[str, Any]:
    resources: dict[str, Any] = {"cpu": draw(amounts("m", 4000)), "memory": draw(amounts("Mi", 8000))}
    pool = draw(st.none() | st.sampled_from(sorted(pools)))
    if pool is not None:
        resources |= {"gpu": {"pool": pool}} if pools[pool] else {"pool": pool}
    options = {
        f"o{number}": {"displayName": draw(texts), "resources": {"memory": draw(amounts("Mi", 8000))}}
        for number in range(draw(st.integers(0, 2)))
    }
    choices = {"size": {"displayName": draw(texts), "options": options}} if options else {}
    return {
        "name": name,
        "version": draw(st.integers(1, 9)),
        "displayName": draw(texts),
        "images": draw(st.sampled_from([["pinned"], ["tagged"], ["pinned", "tagged"]])),
        "resources": resources,
        "choices": choices,
        "storage": draw(storages),
        "security": draw(securities),
        "environment": draw(environments),
        "labels": draw(st.dictionaries(st.just("example.com/tier"), label_values, max_size=1)),
        "access": {"everyone": True},
    }
