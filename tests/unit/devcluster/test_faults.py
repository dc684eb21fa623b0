"""Which requests a fault meets, and what it answers them."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from tests.devcluster.addons.faults import Fault, FaultBook, Kind, parse_path, refusal

BLOB = "/v2/ai/torch/blobs/sha256:0123"
MANIFEST = "/v2/ai/torch/manifests/1.0"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (BLOB, ("ai/torch", Kind.BLOBS)),
        (MANIFEST + "?ns=registry.test", ("ai/torch", Kind.MANIFESTS)),
        ("/v2/torch/manifests/1.0", ("torch", Kind.MANIFESTS)),
        ("/v2/", None),
        ("/v2/ai/torch/tags/list", None),
        ("/v2/ai/torch/blobs/uploads/0a1b", None),
        ("/faults", None),
    ],
)
def test_repository_and_kind_are_read_off_the_path(path: str, target: tuple[str, Kind] | None) -> None:
    assert parse_path(path) == target


def test_a_fault_meets_its_kind_and_repository_only() -> None:
    book = FaultBook([Fault(kind=Kind.BLOBS, repository="ai/torch", status=503)])
    assert book.take(BLOB) is not None
    assert book.take(MANIFEST) is None
    assert book.take(BLOB.replace("torch", "jax")) is None


def test_a_fault_for_some_times_is_gone_afterwards() -> None:
    book = FaultBook([Fault(kind=Kind.BLOBS, status=503, times=2), Fault(kind=Kind.BLOBS, status=500)])
    met = [book.take(BLOB) for _ in range(3)]
    assert [fault.status for fault in met if fault] == [503, 503, 500]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"status": 503, "hang": True},
        {"hang": True, "bytes_per_second": 1},
        {"status": 200},
        {"bytes_per_second": 0},
    ],
)
def test_a_fault_does_one_thing(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Fault.model_validate({"kind": "blobs", **fields})


def test_a_refusal_is_a_registry_s_error() -> None:
    raw = refusal(Fault(kind=Kind.MANIFESTS, status=429, message="slow down"), head=False)
    head, _, body = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"Retry-After: 1" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert json.loads(body) == {"errors": [{"code": "TOOMANYREQUESTS", "message": "slow down"}]}


def test_a_refusal_to_head_has_no_body() -> None:
    assert refusal(Fault(kind=Kind.MANIFESTS, status=401), head=True).endswith(b"\r\n\r\n")
