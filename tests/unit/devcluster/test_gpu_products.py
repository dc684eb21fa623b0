"""The imitated cards against what real ones say of themselves."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.devcluster.gpu.config import MAX_GPU_INSTANCES, driver_config, mig_minors
from tests.devcluster.gpu.products import PRODUCTS, SHAPES, MigProfile, place
from tests.devcluster.gpu.setup import GpuSetup, install


def profiles(product: str, *names: str) -> tuple[MigProfile, ...]:
    found = [PRODUCTS[product].profile(name) for name in names]
    assert None not in found, names
    return tuple(profile for profile in found if profile)


@pytest.mark.parametrize(
    ("product", "names"),
    [
        ("H200", "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
        ("H100-80GB", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("A100-80GB", "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
        ("A100-40GB", "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
        ("L40S", ""),
        ("T4", ""),
    ],
)
def test_profiles_have_the_names_that_the_driver_gives_them(product: str, names: str) -> None:
    assert [profile.name for profile in PRODUCTS[product].profiles] == names.split()


def test_a_profile_s_memory_fits_the_slices_it_is_named_for() -> None:
    for product in PRODUCTS.values():
        for profile in product.profiles:
            slices = product.memory_mib * profile.shape.memory_slices / 8
            assert slices * 0.88 < profile.engines.memory_mib < slices, profile.name


@pytest.mark.parametrize(
    ("names", "starts"),
    [
        (["1g.18gb"] * 7, (0, 1, 2, 3, 4, 5, 6)),
        (["3g.71gb", "4g.71gb"], (4, 0)),
        (["1g.18gb", "3g.71gb", "2g.35gb"], (0, 4, 2)),
        (["1g.35gb"] * 4, (0, 2, 4, 6)),
        (["1g.18gb"] * 8, None),
        (["4g.71gb", "4g.71gb"], None),
        (["7g.141gb", "1g.18gb"], None),
        (["2g.35gb", "2g.35gb", "3g.71gb", "1g.18gb"], None),
    ],
)
def test_instances_begin_only_where_the_hardware_lets_them(
    names: list[str], starts: tuple[int, ...] | None
) -> None:
    assert place(profiles("H200", *names)) == starts


def test_a_number_of_cards_means_whole_ones() -> None:
    setup = GpuSetup.model_validate({"product": "T4", "cards": 2})
    assert [card.mig for card in setup.cards] == [None, None]


@pytest.mark.parametrize(
    ("product", "cards", "complaint"),
    [
        ("H300", 1, "no product 'H300'; there are H200, "),
        ("H200", [{"mig": ["2g.36gb"]}], "cards[0].mig: NVIDIA H200 has no profile '2g.36gb'"),
        ("H200", [{"mig": ["2g.36gb"]}], "the closest is '2g.35gb'"),
        ("H200", [{}, {"mig": ["1g.18gb+me"] * 2}], "cards[1].mig: 1g.18gb+me, 1g.18gb+me do not fit"),
        ("L40S", [{"mig": []}], "NVIDIA L40S cannot be cut by MIG"),
        ("T4", 0, "at least 1 item"),
        ("T4", [{"slices": 2}], "Extra inputs are not permitted"),
    ],
)
def test_hardware_that_cannot_be_is_refused(product: str, cards: object, complaint: str) -> None:
    with pytest.raises(ValidationError) as error:
        GpuSetup.model_validate({"product": product, "cards": cards})
    assert complaint in str(error.value)


def test_the_same_machine_has_the_same_cards_and_no_other_has_them() -> None:
    setup = GpuSetup.model_validate(
        {"product": "H200", "cards": [{}, {"mig": ["1g.18gb", "1g.18gb", "3g.71gb"]}]}
    )
    here, again, elsewhere = (install(setup, seed=seed) for seed in ("a/gpu-1", "a/gpu-1", "a/gpu-2"))
    assert here == again
    identities = [
        uuid
        for cards in (here, elsewhere)
        for card in cards
        for uuid in (card.uuid, *(instance.uuid for instance in card.instances))
    ]
    assert len(set(identities)) == len(identities) == 10
    assert [instance.gi for instance in here[1].instances] == [7, 8, 1]


def test_the_driver_is_told_of_each_card_profile_and_instance() -> None:
    setup = GpuSetup.model_validate({"product": "H200", "cards": [{}, {"mig": ["3g.71gb"]}]})
    cards = install(setup, seed="a")
    rows = driver_config(setup, cards).splitlines()
    assert rows[0] == "driver;580.159.04;13000"
    assert rows[1] == f"card;{cards[0].uuid};NVIDIA H200;143771;9;0;233510de;10;0"
    assert rows[2 : 2 + len(SHAPES)] == rows[3 + len(SHAPES) : -1], "both cards have the same profiles"
    assert rows[2 + len(SHAPES)].endswith(";11;1")
    assert rows[-1] == f"instance;{cards[1].instances[0].uuid};2;1"


def test_capabilities_are_numbered_as_by_the_kernel_driver() -> None:
    lines = mig_minors(2).splitlines()
    assert lines[:4] == ["config 1", "monitor 2", "gpu0/gi0/access 3", "gpu0/gi0/ci0/access 4"]
    assert "gpu0/gi1/access 12" in lines
    assert len(lines) == 2 + 2 * MAX_GPU_INSTANCES * 9
