"""The object store is an S3: users, policies, multipart uploads and presigned URLs, and S3's own refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.devcluster.errors import CommandFailedError
from tests.devcluster.object_store import Keys, ObjectStore, running_object_store, user_may
from tests.devcluster.waiting import PATIENCE_SECONDS

BUCKET = "runs"
PART = 5 << 20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("store")) as store:
        store.make_bucket(BUCKET)
        yield store


@pytest.fixture(scope="module")
def ada(store: ObjectStore) -> Keys:
    """A user who may read and write below `ada/`."""
    keys = store.make_user("ada")
    store.allow(BUCKET, *user_may(keys, "GetObject", "PutObject", bucket=BUCKET, prefix="ada/"))
    return keys


def refusal(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_what_was_put_is_got(store: ObjectStore) -> None:
    s3 = store.client()
    s3.put_object(Bucket=BUCKET, Key="a/b", Body=b"content", Metadata={"run": "7"})
    found = s3.get_object(Bucket=BUCKET, Key="a/b")
    assert (found["Body"].read(), found["Metadata"]) == (b"content", {"run": "7"})
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=BUCKET, Key="a/c")
    assert refusal(error) == "NoSuchKey"


def test_a_user_may_what_the_policy_says_and_no_more(store: ObjectStore, ada: Keys) -> None:
    s3 = store.client(ada)
    s3.put_object(Bucket=BUCKET, Key="ada/notebook", Body=b"x")
    assert s3.get_object(Bucket=BUCKET, Key="ada/notebook")["Body"].read() == b"x"
    for forbidden in (
        lambda: s3.put_object(Bucket=BUCKET, Key="vera/notebook", Body=b"x"),
        lambda: s3.delete_object(Bucket=BUCKET, Key="ada/notebook"),
        lambda: s3.create_bucket(Bucket="mine"),
    ):
        with pytest.raises(ClientError) as error:
            forbidden()
        assert refusal(error) == "AccessDenied"


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        (Keys(access="nobody", secret="x" * 20), "InvalidAccessKeyId"),
        (Keys(access="root", secret="x" * 20), "SignatureDoesNotMatch"),
    ],
)
def test_who_cannot_sign_is_refused(keys: Keys, code: str, store: ObjectStore) -> None:
    with pytest.raises(ClientError) as error:
        store.client(keys).list_buckets()
    assert refusal(error) == code


def test_a_presigned_address_needs_no_keys(store: ObjectStore) -> None:
    s3 = store.client()
    s3.put_object(Bucket=BUCKET, Key="given", Body=b"given")
    params = {"Bucket": BUCKET, "Key": "given"}
    url = s3.generate_presigned_url("get_object", Params=params, ExpiresIn=3600)
    assert httpx.get(url, trust_env=False, timeout=PATIENCE_SECONDS).content == b"given"
    unsigned = url.partition("?")[0]
    assert httpx.get(unsigned, trust_env=False, timeout=PATIENCE_SECONDS).status_code == 403
    taken = httpx.put(url, content=b"taken", trust_env=False, timeout=PATIENCE_SECONDS)
    assert taken.status_code == 403


def test_large_objects_come_in_parts(store: ObjectStore) -> None:
    s3: Any = store.client()
    where = {"Bucket": BUCKET, "Key": "large"}
    upload = {**where, "UploadId": s3.create_multipart_upload(**where)["UploadId"]}
    parts = [
        {"PartNumber": n, "ETag": s3.upload_part(**upload, PartNumber=n, Body=bytes([n]) * size)["ETag"]}
        for n, size in ((1, PART), (2, 3))
    ]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    got = s3.get_object(**where, Range=f"bytes={PART - 1}-")["Body"].read()
    assert got == b"\1\2\2\2"


def test_a_name_is_a_user_once(store: ObjectStore, ada: Keys) -> None:
    with pytest.raises(CommandFailedError) as error:
        store.make_user(ada.access)
    assert ada.secret not in str(error.value)
    assert "--secret" not in str(error.value)
