"""From a profile and picks to one workspace; expansion, grants, worth."""

from fractions import Fraction
from typing import Any

import pytest

from hub_ext.catalog.compose import combinations, compose, default_option
from hub_ext.catalog.gpus import equivalents, grant, resources_of
from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog, ExclusiveGpu, MigGpu, TimeSlicedGpu
from hub_ext.errors import SelectionError, SelectionReason

from .conftest import Edit, changed

DIGEST = "sha256:" + "9" * 64


@pytest.fixture(scope="module")
def catalog(clean: dict[str, Any]) -> Catalog:
    return load_catalog(clean)


def make(clean: dict[str, Any], edit: Edit) -> Catalog:
    return load_catalog(changed(clean, edit))


def test_what_is_not_picked_is_what_is_preselected(catalog: Catalog) -> None:
    workspace = compose(catalog, catalog.by_key["cpu", 1], {})
    assert workspace.picks == {"size": "small"}
    assert workspace.memory.limit == 8 * 1024**3
    assert workspace.pool_name == "cpu"
    assert workspace.gpu is None


def test_an_option_replaces_what_it_writes_and_leaves_the_rest(catalog: Catalog) -> None:
    profile = catalog.by_key["cpu", 1]
    large = compose(catalog, profile, {"size": "large"})
    assert large.cpu.request == 8000
    assert large.price is not None
    assert str(large.price.per_hour) == "0.4"
    assert large.storage is profile.storage
    assert compose(catalog, profile, {}) == compose(catalog, profile, {"size": "small"})


def test_a_slice_takes_the_place_of_a_card(clean: dict[str, Any]) -> None:
    """A choice of another GPU never adds to the profile's own: one pod asks for one kind."""
    made = make(
        clean,
        {
            "profiles.3.resources.gpu": {"pool": "gpu-full"},
            "profiles.3.choices.slice.options.medium.resources": {
                "gpu": {"pool": "gpu-mig", "slice": "1g.18gb"}
            },
        },
    )
    workspace = compose(made, made.by_key["gpu-part", 1], {"slice": "medium"})
    assert workspace.gpu is not None
    assert workspace.pool is not None
    assert workspace.pool.gpu is not None
    assert grant(workspace.pool.gpu, workspace.gpu).resource == "nvidia.com/mig-1g.18gb"


def test_an_option_can_take_the_gpu_away(catalog: Catalog) -> None:
    workspace = compose(catalog, catalog.by_key["gpu-share", 1], {"gpu": "none", "image": "base"})
    assert workspace.gpu is None
    assert workspace.pool_name == "cpu"
    assert workspace.image_key == "base"


def test_options_that_do_not_go_together_are_refused_with_what_does(catalog: Catalog) -> None:
    with pytest.raises(SelectionError, match="A share of a GPU goes only with Image: PyTorch") as caught:
        compose(catalog, catalog.by_key["gpu-share", 1], {"gpu": "share", "image": "base"})
    assert caught.value.reason is SelectionReason.CONFLICTING_OPTIONS
    assert caught.value.field == "gpu"


@pytest.mark.parametrize(
    ("picks", "reason", "field"),
    [
        ({"sise": "small"}, SelectionReason.UNKNOWN_CHOICE, "sise"),
        ({"size": "medium"}, SelectionReason.UNKNOWN_OPTION, "size"),
        ({"size": "custom:r.io/x"}, SelectionReason.UNKNOWN_OPTION, "size"),
    ],
)
def test_unknown_picks_are_refused_with_what_is_offered(
    catalog: Catalog, picks: dict[str, str], reason: SelectionReason, field: str
) -> None:
    with pytest.raises(SelectionError) as caught:
        compose(catalog, catalog.by_key["cpu", 1], picks)
    assert (caught.value.reason, caught.value.field) == (reason, field)
    assert caught.value.allowed


def test_the_combinations_are_those_that_compose(catalog: Catalog) -> None:
    profile = catalog.by_key["gpu-share", 1]
    found = list(combinations(profile))
    assert found == [
        {"image": "torch", "gpu": "share"},
        {"image": "torch", "gpu": "none"},
        {"image": "base", "gpu": "none"},
    ]
    for picks in found:
        compose(catalog, profile, picks)


def test_a_requirement_on_the_image_holds_where_there_is_one_image_only(clean: dict[str, Any]) -> None:
    made = make(clean, {"profiles.4.images": ["torch"]})
    assert [picks["gpu"] for picks in combinations(made.by_key["gpu-share", 1])] == ["share", "none"]


def test_part_of_an_option_set(clean: dict[str, Any]) -> None:
    made = make(clean, {"profiles.0.choices.size": {"optionSet": "sizes", "only": ["large"]}})
    choice = made.by_key["cpu", 1].questions["size"]
    assert list(choice.options) == ["large"]
    assert default_option(choice) == "large"
    other = make(clean, {"profiles.0.choices.size": {"optionSet": "sizes", "default": "large"}})
    assert default_option(other.by_key["cpu", 1].questions["size"]) == "large"


def test_the_preselected_profile_has_its_own_name(clean: dict[str, Any]) -> None:
    ref = load_catalog(changed(clean, {"defaults.profile": "llm"})).defaults.profile
    assert str(ref) == "gpu-full@latest"


def test_defaults_are_replaced_key_by_key(clean: dict[str, Any]) -> None:
    made = make(
        clean,
        {
            "defaults.storage.mounts": {"a": {"claim": "a", "mountPath": "/a"}},
            "defaults.environment": {"A": "1", "B": "1"},
            "profiles.0.storage": {"home": None, "mounts": {"b": {"claim": "b", "mountPath": "/b"}}},
            "profiles.0.session": {"idleTimeout": "10m", "warnBefore": []},
            "profiles.0.environment": {"B": "2"},
        },
    )
    cpu, gpu = made.by_key["cpu", 1], made.by_key["gpu-full", 3]
    assert cpu.storage.home is None
    assert set(cpu.storage.mounts) == {"a", "b"}
    assert cpu.session.max_duration == gpu.session.max_duration
    assert cpu.session.warn_before == ()
    assert cpu.environment == {"A": "1", "B": "2"}
    assert gpu.storage.home is not None
    assert cpu.access is not None
    assert cpu.access.everyone


CUSTOM = {
    "displayName": "Image",
    "options": {"base": {"displayName": "Base", "image": "base"}},
    "custom": {"registries": ["registry.example.com/nlp"], "pullSecrets": ["nlp"]},
}


def test_a_typed_image_within_bounds(clean: dict[str, Any]) -> None:
    made = make(clean, {"profiles.0.choices.image": CUSTOM})
    ref = f"registry.example.com/nlp/mine@{DIGEST}"
    workspace = compose(made, made.by_key["cpu", 1], {"image": f"custom: {ref}"})
    assert str(workspace.reference) == ref
    assert workspace.image.pull_secrets == ("nlp",)
    assert workspace.image_key == ""


@pytest.mark.parametrize(
    "text",
    [
        "registry.example.com/nlp/mine:1",
        f"registry.example.com/nlpx/mine@{DIGEST}",
        f"evil.example.com/registry.example.com/nlp/mine@{DIGEST}",
        "registry.example.com/nlp/mine:1 --privileged",
        f"registry.example.com/nlp/../x@{DIGEST}",
        "",
    ],
)
def test_a_typed_image_out_of_bounds(clean: dict[str, Any], text: str) -> None:
    made = make(clean, {"profiles.0.choices.image": CUSTOM})
    with pytest.raises(SelectionError) as caught:
        compose(made, made.by_key["cpu", 1], {"image": f"custom:{text}"})
    assert caught.value.reason is SelectionReason.BAD_IMAGE


def test_worth_is_exact(catalog: Catalog) -> None:
    full, mig, shared = (catalog.pools[name].gpu for name in ("gpu-full", "gpu-mig", "gpu-shared"))
    assert isinstance(full, ExclusiveGpu)
    assert isinstance(mig, MigGpu)
    assert isinstance(shared, TimeSlicedGpu)
    two_cards = equivalents(full, "", 2)
    assert two_cards + equivalents(mig, "1g.18gb", 12) + equivalents(mig, "1g.18gb", 2) == 4
    assert equivalents(shared, "", 1) == Fraction(1, 4)
    assert equivalents(shared.model_copy(update={"weight": "0.5"}), "", 1) == Fraction(1, 8)


def test_a_pool_names_what_it_offers(catalog: Catalog) -> None:
    mig = catalog.pools["gpu-mig"].gpu
    assert mig is not None
    assert resources_of(mig) == ("nvidia.com/mig-1g.18gb", "nvidia.com/mig-2g.35gb", "nvidia.com/mig-3g.71gb")


def test_a_pool_of_claims_loads_and_offers_nothing(clean: dict[str, Any]) -> None:
    claims = {"gpu": {"via": "dra", "deviceClass": "gpu.nvidia.com", "sharing": "exclusive"}}
    gpu = make(clean, {"pools.claims": claims}).pools["claims"].gpu
    assert gpu is not None
    assert resources_of(gpu) == ()


def test_a_profile_is_the_same_after_another_was_composed(catalog: Catalog) -> None:
    cpu = catalog.by_key["cpu", 1]
    before = compose(catalog, cpu, {})
    compose(catalog, catalog.by_key["gpu-full", 3], {})
    assert compose(catalog, cpu, {}) == before
