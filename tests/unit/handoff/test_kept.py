"""What a user keeps in the store: bounded, counted by what is there, and removed when it is not needed."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from services.job_handoff.ids import Claims, token_for
from services.job_handoff.kept import Kept
from services.job_handoff.room import Shelf, check_room
from services.job_handoff.settings import Bounds, HandoffSettings, StoreSettings
from services.job_handoff.store import Store, StoreError
from services.job_handoff.verdicts import RunRefusedError

from .conftest import ADA, DIGEST, World, archive, body

RUN = "run-aaaaaaaaaaaaaaaa"
TIGHT = Bounds(kept_size=2 * 2**20, kept_files=12)


def shelf(**sizes: int) -> Shelf:
    made = Shelf()
    for path, size in sizes.items():
        made.put(path, size)
    return made


@pytest.mark.parametrize(
    ("kept", "new", "fits"),
    [
        ({}, {"a": 2 * 2**20}, True),
        ({}, {"a": 2 * 2**20 + 1}, False),
        ({"a": 2 * 2**20}, {"a": 2 * 2**20}, True),
        ({"a": 2 * 2**20}, {"a": 1}, True),
        ({"a": 2 * 2**20}, {"b": 0}, True),
        ({"a": 2 * 2**20}, {}, False),
        ({str(n): 0 for n in range(12)}, {"0": 5}, True),
        ({str(n): 0 for n in range(12)}, {"new": 0}, False),
        ({str(n): 0 for n in range(12)}, {}, False),
    ],
)
def test_what_fits_beside_what_is_kept(kept: dict[str, int], new: dict[str, int], fits: bool) -> None:
    if fits:
        check_room(shelf(**kept), new, TIGHT)
        return
    with pytest.raises(RunRefusedError) as error:
        check_room(shelf(**kept), new, TIGHT)
    assert (error.value.reason, error.value.status) == ("too-much-kept", 413)
    assert "handoff remove" in error.value.help


def test_a_file_that_is_sent_again_counts_once() -> None:
    made = shelf(a=5, b=1)
    made.put("a", 3)
    assert (made.total, len(made.sizes)) == (4, 2)
    made.drop("a")
    made.drop("a")
    assert made.total == 1


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(StoreSettings.model_validate({"url": f"file://{tmp_path}/kept"}))


async def test_the_store_is_asked_anew_before_anything_is_refused(store: Store) -> None:
    kept = Kept(store, TIGHT)
    async with kept.adding("ada", {"nlp/ada/runs/r/outputs/a": 2**21}):
        await store.put("nlp/ada/runs/r/outputs/a", b"x" * 2**21)
    with pytest.raises(RunRefusedError):
        await kept.check("ada", {"nlp/ada/runs/r/outputs/b": 1})
    await store.delete(["nlp/ada/runs/r/outputs/a"])  # by an admin, say
    kept._users["ada"].listed -= 10
    await kept.check("ada", {"nlp/ada/runs/r/outputs/b": 2**21})
    await kept.check("bob", {"nlp/bob/runs/r/outputs/b": 2**21})


async def test_two_at_once_do_not_both_take_what_is_left_for_one(store: Store) -> None:
    kept = Kept(store, TIGHT)
    done: list[str] = []

    async def write(name: str) -> None:
        path = f"nlp/ada/runs/r/outputs/{name}"
        async with kept.adding("ada", {path: 3 * 2**19}):
            await store.put(path, b"x" * (3 * 2**19))
        done.append(name)

    answers = await asyncio.gather(*(write(name) for name in "abc"), return_exceptions=True)
    assert len(done) == 1
    assert sum(isinstance(one, RunRefusedError) for one in answers) == 2


async def test_what_could_not_be_written_is_not_counted(store: Store) -> None:
    kept = Kept(store, TIGHT)
    path = "nlp/ada/runs/r/outputs/a"
    with pytest.raises(StoreError):
        async with kept.adding("ada", {path: 2**21}):
            raise StoreError("no answer")
    assert (await kept.usage("ada")).as_dict(TIGHT)["size"] == 0


async def test_a_file_that_is_written_while_the_store_is_listed_counts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(store, TIGHT)
    await kept.usage("ada")
    kept.forget("ada")
    listed, go_on = asyncio.Event(), asyncio.Event()
    files = kept.files

    async def slowly(user: str) -> object:
        found = await files(user)
        listed.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(kept, "files", slowly)
    known = kept._users["ada"]

    @asynccontextmanager
    async def listing() -> AsyncIterator[None]:
        task = asyncio.create_task(kept.usage("ada"))
        await listed.wait()
        yield
        go_on.set()
        await task

    known.shelf.put("warm", 0)
    async with listing():
        known.late |= {"nlp/ada/runs/r/outputs/late": 5}
        known.pending |= {"nlp/ada/runs/r/outputs/pending": 7}
    assert known.shelf.total == 12


# Over HTTP


@pytest.fixture
def settings(settings: HandoffSettings) -> HandoffSettings:
    return settings.model_copy(update={"bounds": TIGHT})


def headers(world: World, run: str = RUN) -> dict[str, str]:
    claims = Claims(team="nlp", user="ada", run=run, lineage=run)
    return {"X-Run-Token": token_for(world.service.core.secret, claims)}


async def test_a_user_cannot_fill_the_store_by_any_door(ada: httpx.AsyncClient, world: World) -> None:
    place = f"runner/{RUN}/file?name=outputs/big"
    fits = await ada.put(place, content=b"x" * (2**21 - 4096), headers=headers(world))
    assert fits.status_code == 204
    again = await ada.put(place, content=b"x" * (2**21 - 4096), headers=headers(world))
    assert again.status_code == 204, "what replaces itself takes no more room"
    more = await ada.put(
        f"runner/{RUN}/file?name=checkpoints/more", content=b"x" * 8192, headers=headers(world)
    )
    assert more.status_code == 413
    assert "of runs, and 2 MiB are allowed" in more.json()["message"]
    asked = await ada.get(f"runner/{RUN}/place?name=outputs/more&size=8192", headers=headers(world))
    assert asked.status_code == 413
    log = await ada.put(f"runner/{RUN}/file?name=logs/a.log", content=b"x" * 8192, headers=headers(world))
    assert log.status_code == 204, "the log says why the rest was not kept"
    content = archive({"a.py": "x" * 9000 + os.urandom(9000).hex()})
    source = await ada.put(f"api/snapshots/{hashlib.sha256(content).hexdigest()}", content=content)
    assert (source.status_code, source.json()["reason"]) == (413, "too-much-kept")
    submitted = await ada.post("api/runs", json=body())
    assert (submitted.status_code, submitted.json()["reason"]) == (413, "too-much-kept")
    usage = (await ada.get("api/usage")).json()
    assert usage["mostSize"] == 2**21 < usage["size"]


async def test_a_file_of_no_told_length_is_refused(ada: httpx.AsyncClient, world: World) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    answer = await ada.put(f"runner/{RUN}/file?name=outputs/a", content=pieces(), headers=headers(world))
    assert answer.status_code == 411


async def test_removing_a_run_makes_room_and_leaves_what_others_need(
    ada: httpx.AsyncClient, world: World
) -> None:
    first, other = [
        (await ada.post("api/runs", json=body(key=key))).json()["id"] for key in ("first", "other")
    ]
    assert (await ada.delete(f"api/runs/{first}")).status_code == 409
    for run in (first, other):
        await world.store.put(f"nlp/ada/runs/{run}/outputs/a", b"x")
        await world.store.put(f"nlp/ada/checkpoints/{run}/step", b"7")
        world.kube.end_for_test(run, succeeded=False)
        await world.service.keeper.tend()
    again = (await ada.post(f"api/runs/{first}/retry", json={})).json()["id"]
    bob = {"Authorization": "token bob"}
    assert (await ada.delete(f"api/runs/{first}", headers=bob)).status_code == 404
    assert (await ada.delete(f"api/runs/{first}")).status_code == 200
    assert (await ada.get(f"api/runs/{first}")).status_code == 404
    assert await world.store.list(f"nlp/ada/runs/{first}") == ()
    assert await world.store.get(f"nlp/ada/checkpoints/{first}/step") == b"7", "the retry goes on from it"
    assert (await ada.get(f"api/snapshots/{DIGEST}")).status_code == 200
    assert (await ada.delete(f"api/runs/{other}")).json()["files"] > 1
    assert await world.store.get(f"nlp/ada/checkpoints/{other}/step") is None
    assert (await ada.get(f"api/runs/{again}")).status_code == 200
    await ada.post(f"api/runs/{again}/cancel", json={})
    assert (await ada.delete(f"api/runs/{again}")).status_code == 200
    left = [one.path for one in await world.store.list("") if not one.path.startswith("_audit/")]
    assert left == []
    assert (await ada.get("api/usage")).json()["files"] == 0


async def test_sources_that_no_run_names_make_room_for_new_ones(
    ada: httpx.AsyncClient, world: World, tmp_path: Path
) -> None:
    await ada.post("api/runs", json=body())
    for number in range(4):
        await world.upload(content=archive({f"{number}.py": ""}))
    past = (datetime.now(UTC) - timedelta(days=1)).timestamp()
    for file in (tmp_path / "store" / "_none/ada/snapshots").iterdir():
        os.utime(file, (past, past))
    fresh = await world.upload(content=archive({"fresh.py": ""}))
    world.service.core.kept.forget("ada")
    content = archive({"new.py": ""})
    digest = hashlib.sha256(content).hexdigest()
    sent = await ada.put(f"api/snapshots/{digest}", content=content)
    assert sent.status_code == 201, sent.text
    there = {one.path.rpartition("/")[2][:64] for one in await world.store.list("_none/ada/snapshots")}
    assert there == {DIGEST, fresh, digest}


async def test_the_page_has_a_button_to_remove(ada: httpx.AsyncClient, world: World) -> None:
    run = (await ada.post("api/runs", json=body())).json()["id"]
    assert "Remove this run" not in (await ada.get(f"runs/{run}")).text
    world.kube.end_for_test(run)
    assert "Remove this run" in (await ada.get(f"runs/{run}")).text
    assert "of 2 MiB" in (await ada.get("")).text
    gone = await ada.post(f"runs/{run}", data={"do": "remove"})
    assert gone.status_code == 303
    assert world.kube.all_for_test("jobs") == []
    assert await world.service.board.mine(ADA) == ()
