"""What becomes of feature discovery's file."""

from __future__ import annotations

from tests.devcluster.gpu.labels import OWNED_ANNOTATION, label_patch, parse_labels

FILE = """\
# made by a test

nvidia.com/gpu.product=NVIDIA-H200
nvidia.com/gpu.sharing-strategy=
nvidia.com/gpu.present
"""


def test_a_features_file_names_labels_with_or_without_a_value() -> None:
    assert parse_labels(FILE) == {
        "nvidia.com/gpu.product": "NVIDIA-H200",
        "nvidia.com/gpu.sharing-strategy": "",
        "nvidia.com/gpu.present": "true",
    }


def test_the_patch_remembers_whose_labels_they_are() -> None:
    patch = label_patch({"b": "2", "a": "1"}, {})
    assert patch == {
        "metadata": {"labels": {"b": "2", "a": "1"}, "annotations": {OWNED_ANNOTATION: "a,b"}},
    }


def test_labels_that_are_no_longer_found_are_taken_away_and_others_left_alone() -> None:
    patch = label_patch({"a": "1"}, {OWNED_ANNOTATION: "a,gone", "other": "x"})
    assert patch["metadata"]["labels"] == {"gone": None, "a": "1"}
