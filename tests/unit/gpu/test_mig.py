"""MIG profiles, and what fits on one card."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.errors import NameRuleError
from hub_ext.gpu.mig import MigLayout, MigProfile, compute_slices, fits, max_count, nearest
from hub_ext.gpu.products import CARDS, cards_with, find_card, split_product


def layout(product_label: str) -> MigLayout:
    card = find_card(product_label)
    assert card is not None
    assert card.mig is not None
    return card.mig


# mig-parted v0.15.0, config-default.yaml: how many of each a card holds by itself.
NUMBERS = {
    "NVIDIA-A100-SXM4-40GB": "1g.5gbx7 1g.5gb+mex1 1g.10gbx4 2g.10gbx3 3g.20gbx2 4g.20gbx1 7g.40gbx1",
    "NVIDIA-A100-80GB-PCIe": "1g.10gbx7 1g.10gb+mex1 1g.20gbx4 2g.20gbx3 3g.40gbx2 4g.40gbx1 7g.80gbx1",
    "NVIDIA-A30": "1g.6gbx4 1g.6gb+mex1 2g.12gbx2 2g.12gb+mex1 4g.24gbx1",
    "NVIDIA-H100-80GB-HBM3": "1g.10gbx7 1g.10gb+mex1 1g.20gbx4 2g.20gbx3 3g.40gbx2 4g.40gbx1 7g.80gbx1",
    "NVIDIA-H100-NVL": "1g.12gbx7 1g.12gb+mex1 1g.24gbx4 2g.24gbx3 3g.47gbx2 4g.47gbx1 7g.94gbx1",
    "NVIDIA-GH200-480GB": "1g.12gbx7 1g.24gbx4 2g.24gbx3 3g.48gbx2 4g.48gbx1 7g.96gbx1",
    "NVIDIA-H200": "1g.18gbx7 1g.18gb+mex1 1g.35gbx4 2g.35gbx3 3g.71gbx2 4g.71gbx1 7g.141gbx1",
    "NVIDIA-GH200-144G-HBM3e": "1g.18gbx7 1g.36gbx4 2g.36gbx3 3g.72gbx2 4g.72gbx1 7g.144gbx1",
    "NVIDIA-B200": "1g.23gbx7 1g.23gb+mex1 1g.45gbx4 2g.45gbx3 3g.90gbx2 4g.90gbx1 7g.180gbx1",
    "NVIDIA-GB200": "1g.23gbx7 1g.47gbx4 2g.47gbx3 3g.93gbx2 3g.95gbx2 4g.93gbx1 7g.186gbx1 7g.189gbx1",
    "NVIDIA-B300-SXM6-AC": "1g.34gbx7 1g.67gbx4 2g.67gbx3 3g.135gbx2 4g.135gbx1 7g.269gbx1",
    "NVIDIA-GB300": "1g.35gbx7 1g.70gbx4 2g.70gbx3 3g.139gbx2 4g.139gbx1 7g.278gbx1",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": "1g.24gbx4 1g.24gb+gfxx4 1g.24gb-mex4 1g.24gb+me.allx1 "
    "2g.48gbx2 2g.48gb+gfxx2 2g.48gb-mex2 2g.48gb+me.allx1 4g.96gbx1 4g.96gb+gfxx1",
}
CASES = [
    (card, name, int(number))
    for card, row in NUMBERS.items()
    for name, _, number in (size.rpartition("x") for size in row.split())
]

BALANCED = {
    "NVIDIA-A100-SXM4-40GB": {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
    "NVIDIA-A30": {"1g.6gb": 2, "2g.12gb": 1},
    "NVIDIA-H200": {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1},
    "NVIDIA-B300-SXM6-AC": {"1g.34gb": 2, "2g.67gb": 1, "3g.135gb": 1},
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": {"1g.24gb": 2, "2g.48gb": 1},
}


@pytest.mark.parametrize(("card", "name", "number"), CASES)
def test_a_card_holds_as_many_as_its_maker_says(card: str, name: str, number: int) -> None:
    assert max_count(layout(card), name) == number


@pytest.mark.parametrize(("card", "geometry"), BALANCED.items())
def test_the_balanced_layouts_of_the_maker_fit(card: str, geometry: dict[str, int]) -> None:
    assert fits(layout(card), geometry)


@pytest.mark.parametrize(
    ("geometry", "fit"),
    [
        ({"3g.71gb": 1, "1g.18gb": 4}, True),
        ({"3g.71gb": 2, "1g.18gb": 1}, False),
        ({"4g.71gb": 1, "3g.71gb": 1}, True),
        ({"4g.71gb": 1, "2g.35gb": 1, "1g.18gb": 1}, True),
        ({"1g.18gb+me": 1, "1g.18gb": 6}, True),
        ({"1g.18gb+me": 2}, False),
        ({"1g.35gb": 3, "1g.18gb": 2}, True),
        ({"1g.35gb": 4, "1g.18gb": 1}, False),
        ({"1g.35gb": 2, "1g.18gb": 3}, True),
        ({"1g.18gb": 8}, False),
        ({"1g.18gb": 0}, True),
        ({"1g.10gb": 1}, False),
    ],
)
def test_compute_slices_alone_do_not_decide(geometry: dict[str, int], fit: bool) -> None:
    h200 = layout("NVIDIA-H200")
    assert fits(h200, geometry) is fit
    assert _brute(h200, geometry) is fit


def _brute(card: MigLayout, geometry: dict[str, int]) -> bool:
    """Try every combination of places for every slice, without any cleverness."""
    wanted: list[MigProfile] = []
    for name, count in geometry.items():
        profile = card.find(name)
        if profile is None:
            return False
        wanted += [profile] * count
    if sum(p.compute for p in wanted) > card.compute_slices or sum(p.media for p in wanted) > card.media:
        return False
    for starts in product(*(profile.starts for profile in wanted)):
        used = Counter(
            place
            for profile, start in zip(wanted, starts, strict=True)
            for place in range(start, start + profile.size)
        )
        if all(number == 1 for number in used.values()) and all(p < card.memory_slices for p in used):
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_placement_agrees_with_trying_everything(data: st.DataObject) -> None:
    card = data.draw(st.sampled_from([card.mig for card in CARDS if card.mig is not None]))
    names = data.draw(st.lists(st.sampled_from(card.names), max_size=5))
    geometry = dict(Counter(names))
    assert fits(card, geometry) is _brute(card, geometry)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1g.10gb", "1g.18gb"),
        ("2g.36gb", "2g.35gb"),
        ("3g.72gb", "3g.71gb"),
        ("1g.20gb", "1g.18gb"),
        ("1g.18GB", "1g.18gb"),
        ("18gb", "1g.18gb"),
        ("1g.18gb.me", "1g.18gb+me"),
        ("mig-2g.35gb", "2g.35gb"),
        ("half", ""),
    ],
)
def test_a_wrong_name_is_answered_with_the_closest(written: str, meant: str) -> None:
    h200 = layout("NVIDIA H200 141GB")
    assert h200.find(written) is None
    assert nearest(h200, written) == meant


def test_a_name_of_another_card_is_recognized() -> None:
    assert [card.name for card in cards_with("2g.36gb")] == ["GH200 144GB"]


@pytest.mark.parametrize(
    "name", ["1g", "18gb", "1g.18GB", "1c.2g.35gb", "1g.18gb+foo", "0g.5gb", "1g.018gb", ""]
)
def test_what_is_no_mig_profile(name: str) -> None:
    with pytest.raises(NameRuleError) as caught:
        compute_slices(name)
    assert caught.value.code == "bad-mig-profile"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("NVIDIA-H100-PCIe", "H100 80GB"),
        ("NVIDIA-H800", "H100 80GB"),
        ("NVIDIA-H100-96GB-HBM3", "H100 96GB"),
        ("NVIDIA-A100-PCIE-40GB-MIG-1g.5gb", "A100 40GB"),
        ("A100-SXM4-80GB", "A100 80GB"),
        ("NVIDIA-H200-NVL", "H200"),
        ("NVIDIA-H20", "H20"),
        ("Tesla-T4-SHARED", "T4"),
        ("NVIDIA-L40S", "L40S"),
        ("NVIDIA-L4", "L4"),
        ("Tesla-V100-SXM2-16GB", "V100 16GB"),
        ("NVIDIA-H20-3e", None),
        ("AMD-MI300X", None),
        ("", None),
    ],
)
def test_cards_are_known_by_their_label(label: str, name: str | None) -> None:
    card = find_card(label)
    assert (card.name if card else None) == name


def test_every_card_has_one_name_and_few_are_cut() -> None:
    names = [card.name for card in CARDS]
    assert len(names) == len(set(names))
    for label in ("NVIDIA-L40S", "Tesla-T4", "NVIDIA-L4", "NVIDIA-A10G"):
        card = find_card(label)
        assert card is not None
        assert card.mig is None
        assert not card.mig_unknown


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("NVIDIA-H200", ("NVIDIA-H200", "")),
        ("NVIDIA-L40S-SHARED", ("NVIDIA-L40S", "-SHARED")),
        ("NVIDIA-H200-MIG-1g.18gb", ("NVIDIA-H200", "-MIG-1g.18gb")),
        ("NVIDIA-H200-MIG-1g.18gb-SHARED", ("NVIDIA-H200", "-MIG-1g.18gb-SHARED")),
        ("NVIDIA-A100-SXM4-80GB-MIG-INVALID", ("NVIDIA-A100-SXM4-80GB", "-MIG-INVALID")),
    ],
)
def test_what_feature_discovery_adds_is_told_from_the_card(label: str, parts: tuple[str, str]) -> None:
    assert split_product(label) == parts
