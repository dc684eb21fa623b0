"""What errors of the object store are taken for, and what users are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from services.job_handoff.settings import StoreSettings
from services.job_handoff.store import Store, StoreError, refusal
from services.job_handoff.store_faults import Fault, fault_of

ANSWERED = (
    "Error performing PUT http://127.0.0.1:9000/runs/{path} in {took}"
    " - Server returned non-2xx status code: {said}"
)


def answer(said: str, *, path: str = "a", took: str = "1.93ms") -> str:
    return f"Generic S3 error: {path}: " + ANSWERED.format(path=path, took=took, said=said)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (GenericError("Generic LocalFileSystem error: No space left on device (os error 28)"), "full"),
        (GenericError("Unable to copy data to file: Disk quota exceeded (os error 122)"), "full"),
        (OSError(28, "No space left on device"), "full"),
        (GenericError(answer("507 Insufficient Storage: ")), "full"),
        (GenericError(answer("507 : <Error><Code>XMinioStorageFull</Code></Error>")), "full"),
        (PermissionDeniedError(answer("403 Forbidden: <Error><Code>QuotaExceeded</Code></Error>")), "full"),
        (GenericError("Unable to open file /runs/x: Read-only file system (os error 30)"), "denied"),
        (OSError(13, "Permission denied"), "denied"),
        (
            GenericError(answer('403 Forbidden: <?xml version="1.0"?> <Error><Code>AccessDenied</Code>')),
            "denied",
        ),
        (GenericError(answer("401 Unauthorized")), "denied"),
        (GenericError(answer("500 Internal Server Error")), None),
        (GenericError("Generic S3 error: error sending request: operation timed out"), None),
    ],
)
def test_what_an_error_means(error: Exception, fault: Fault | None) -> None:
    assert fault_of(error, "a") == fault


@pytest.mark.parametrize("took", ["507.076µs", "403.2ms", "507s", "28ms"])
def test_a_duration_is_no_status(took: str) -> None:
    assert fault_of(GenericError(answer("500 Internal Server Error", took=took)), "a") is None
    assert fault_of(PermissionDeniedError(answer("403 Forbidden", took=took)), "a") == "denied"


@pytest.mark.parametrize(
    "path",
    [
        "507/No space left on device.ipynb",
        "QuotaExceeded AccessDenied Permission denied",
        "(os error 28)",
        "Server returned non-2xx status code: 507",
        "<Error><Code>AccessDenied</Code>",
    ],
)
def test_the_name_of_a_file_is_no_fault(path: str) -> None:
    assert fault_of(GenericError(answer("500 Internal Server Error", path=path)), path) is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [(OSError(28, "No space left on device"), "store-full"), (OSError(5, "I/O error"), "store-unavailable")],
)
async def test_a_full_store_is_told_from_one_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, reason: str
) -> None:
    store = Store.open(StoreSettings.model_validate({"url": f"file://{tmp_path}"}))

    async def fail(*_arguments: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr("services.job_handoff.store.obstore.put_async", fail)
    with pytest.raises(StoreError) as caught:
        await store.put("a", b"x")
    assert refusal(caught.value).reason == reason
