"""The files of runs in a real S3 store: in pieces, signed, kept apart by team; and a store that is dead."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from services.job_handoff import places
from services.job_handoff.kept import Kept
from services.job_handoff.settings import Bounds, StoreSettings
from services.job_handoff.store import _TIMES, Store, StoreError, refusal
from services.job_handoff.verdicts import RunRefusedError
from tests.devcluster.object_store import ObjectStore, running_object_store, user_may
from tests.devcluster.waiting import PATIENCE_SECONDS

BUCKET = "runs"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("store")) as found:
        found.make_bucket(BUCKET)
        yield found


def settings_of(s3: ObjectStore) -> StoreSettings:
    told = {"url": f"s3://{BUCKET}/prod", "endpoint": s3.url, "allowHttp": True}
    return StoreSettings.model_validate(told)


@pytest.fixture
def store(s3: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    return Store.open(settings_of(s3))


async def test_files_are_written_read_listed_and_deleted(store: Store) -> None:
    assert await store.put("a/b c/ü.txt", b"first")
    assert await store.put("a/b c/ü.txt", b"second")
    assert not await store.put("a/b c/ü.txt", b"third", new=True)
    assert await store.get("a/b c/ü.txt") == b"second"
    assert await store.size("a/b c/ü.txt") == 6
    assert await store.get("a/none") is None
    assert [one.path for one in await store.list("a")] == ["a/b c/ü.txt"]
    assert await store.folders("a/") == ("b c",)
    await store.delete(["a/b c/ü.txt", "a/none"])
    assert await store.list("a") == ()


async def test_a_large_file_goes_through_in_pieces(store: Store) -> None:
    piece = bytes(range(256)) * 4096

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(13):
            yield piece

    await store.put("large", pieces())
    found = await store.stream("large")
    assert found is not None
    size, read = found
    assert size == 13 * len(piece)
    whole = b"".join([part async for part in read])
    assert whole == 13 * piece
    with pytest.raises(StoreError, match="too large"):
        await store.get("large", most=1000)


async def test_a_file_that_breaks_off_leaves_what_was_there(store: Store) -> None:
    await store.put("kept", b"whole")

    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 6_000_000
        raise OSError("the pod is gone")

    with pytest.raises(StoreError, match="the pod is gone"):
        await store.put("kept", broken())
    assert await store.get("kept") == b"whole"


async def test_a_signed_address_is_good_for_one_file_and_one_thing(store: Store) -> None:
    address = await store.sign("PUT", "signed/a")
    assert address is not None
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        assert (await client.put(address, content=b"x")).is_success
        assert (await client.get(address)).status_code == 403
        assert (await client.put(address.replace("signed/a", "signed/b"), content=b"x")).status_code == 403
    assert await store.get("signed/a") == b"x"


async def test_a_team_reads_its_own_part_and_nobody_else_s(
    s3: ObjectStore, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = places.file_path("nlp", "ada", "run-a", "outputs/x")
    theirs = places.file_path("vision", "bob", "run-b", "outputs/x")
    for path in (mine, theirs):
        await store.put(path, b"x")
    keys = s3.make_user("team-nlp")
    s3.allow(BUCKET, *user_may(keys, "GetObject", "PutObject", bucket=BUCKET, prefix="prod/nlp/"))
    for name, value in s3.environment(keys).items():
        monkeypatch.setenv(name, value)
    team = Store.open(settings_of(s3))
    assert await team.get(mine) == b"x"
    await team.put(f"{places.checkpoint_folder('nlp', 'ada', 'run-a')}step", b"7")
    for path in (theirs, places.snapshot_path("ada", "0" * 64)):
        with pytest.raises(StoreError):
            await team.get(path)
        with pytest.raises(StoreError):
            await team.put(path, b"y")
    assert await store.get(theirs) == b"x"


async def test_what_a_user_keeps_is_what_the_store_has(store: Store) -> None:
    bounds = Bounds(kept_size=8 * 2**20, kept_files=5)
    folder = places.file_path("nlp", "ada@example.com", "run-a", "outputs")

    async def write(kept: Kept, name: str, size: int) -> None:
        async with kept.adding("ada@example.com", {f"{folder}/{name}": size}):
            await store.put(f"{folder}/{name}", b"x" * size)

    await write(Kept(store, bounds), "large", 6 * 2**20)
    after_a_restart = Kept(store, bounds)
    await store.put(places.file_path("nlp", "ada", "run-a", "outputs/theirs"), b"x")
    assert (await after_a_restart.usage("ada@example.com")).total == 6 * 2**20
    with pytest.raises(RunRefusedError, match=r"6 MiB of runs, and 8 MiB are allowed"):
        await write(after_a_restart, "more", 3 * 2**20)
    await write(after_a_restart, "large", 8 * 2**20)
    await store.delete([f"{folder}/large"])
    after_a_restart.forget("ada@example.com")
    await asyncio.gather(*(write(after_a_restart, f"ü {number}", 1) for number in range(5)))
    with pytest.raises(RunRefusedError, match="5 files of runs, and 5 are allowed"):
        await write(after_a_restart, "sixth", 1)
    files = await after_a_restart.files("ada@example.com")
    assert {one.path.rpartition("/")[2] for one in files} == {f"ü {number}" for number in range(5)}
    await store.delete([one.path for one in files])
    assert await after_a_restart.files("ada@example.com") == ()


async def test_a_store_that_lets_nobody_in_is_named_as_such(
    s3: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment(s3.make_user("stranger")).items():
        monkeypatch.setenv(name, value)
    store = Store.open(settings_of(s3))
    for action in (store.get("a"), store.put("a", b"x"), store.list("a")):
        with pytest.raises(StoreError) as error:
            await action
        assert refusal(error.value).message == "The object store does not let this service in."


async def test_a_store_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections, and says nothing."""
    monkeypatch.setitem(_TIMES["client_options"], "read_timeout", "1s")
    monkeypatch.setitem(_TIMES, "retry_config", {"max_retries": 0})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        told = {"url": f"s3://{BUCKET}", "endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        store = Store.open(StoreSettings.model_validate(told | {"allowHttp": True}))
        for action in (store.get("a"), store.put("a", b"x")):
            with pytest.raises(StoreError) as error:
                await action
            assert refusal(error.value).status == 503


async def test_a_dead_store_is_named_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_object_store(tmp_path) as s3:
        s3.make_bucket(BUCKET)
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        store = Store.open(settings_of(s3))
        await store.put("a", b"kept")
    with pytest.raises(StoreError) as error:
        await store.get("a")
    assert (refusal(error.value).reason, refusal(error.value).status) == ("store-unavailable", 503)
