"""Names, worth and meaning of cards, slices and shares; drivers for CUDA."""

from fractions import Fraction

import pytest

from hub_ext.gpu.drivers import is_older, min_driver
from hub_ext.gpu.resources import is_accelerator, mig_resource, shared_resource
from hub_ext.gpu.sharing import Sharing, Strategy, semantics
from hub_ext.gpu.worth import share_worth, slice_worth


@pytest.mark.parametrize(
    ("name", "strategy", "resource"),
    [
        ("1g.18gb", Strategy.MIXED, "nvidia.com/mig-1g.18gb"),
        ("1g.18gb+me", Strategy.MIXED, "nvidia.com/mig-1g.18gb.me"),
        ("1g.24gb+me.all", Strategy.MIXED, "nvidia.com/mig-1g.24gb.me.all"),
        ("1g.24gb-me", Strategy.MIXED, "nvidia.com/mig-1g.24gb-me"),
        ("1g.18gb", Strategy.SINGLE, "nvidia.com/gpu"),
    ],
)
def test_names_of_slices(name: str, strategy: Strategy, resource: str) -> None:
    assert mig_resource(name, strategy) == resource


def test_names_of_shares() -> None:
    assert shared_resource(renamed=False) == "nvidia.com/gpu"
    assert shared_resource(renamed=True) == "nvidia.com/gpu.shared"
    assert shared_resource(renamed=True, resource_name="example.com/half") == "example.com/half"
    assert is_accelerator("amd.com/gpu")
    assert not is_accelerator("example.com/license")


def test_seven_small_slices_are_one_card() -> None:
    assert 7 * slice_worth("NVIDIA-H200", "1g.18gb") == 1
    assert 4 * slice_worth("NVIDIA-H200", "1g.35gb") == 1
    assert slice_worth("NVIDIA-H200", "7g.141gb") == 1
    assert 4 * slice_worth("NVIDIA-A30", "1g.6gb") == 1
    assert slice_worth("some-new-card", "2g.99gb") == Fraction(2, 7)
    assert 4 * share_worth(4) == 1


@pytest.mark.parametrize("sharing", list(Sharing))
@pytest.mark.parametrize("count", [1, 2])
def test_the_words_say_what_may_be_relied_on(sharing: Sharing, count: int) -> None:
    meaning = semantics(sharing, count=count, slice_name="1g.18gb", replicas=4)
    walled = sharing in {Sharing.EXCLUSIVE, Sharing.MIG}
    assert meaning.own_faults is walled
    assert ("one crash can end everybody's work" in meaning.text) is not walled
    assert ("not be twice the GPU" in meaning.text) is sharing.is_share
    assert meaning.title


@pytest.mark.parametrize(
    ("have", "cuda", "old"),
    [
        ("580.65.06", "13.0", False),
        ("570.133.20", "13.0", True),
        ("570", "13.0", True),
        ("580", "13.0", False),
        ("525.60.13", "12.4", False),
        ("525", "12.4", False),
        ("525.60", "12.4", True),
        ("470.57.02", "12.4", True),
    ],
)
def test_drivers_for_cuda(have: str, cuda: str, old: bool) -> None:
    need = min_driver(cuda)
    assert need is not None
    assert is_older(have, need) is old


def test_an_unknown_cuda_needs_no_known_driver() -> None:
    assert min_driver("99.0") is None
