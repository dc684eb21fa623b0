"""What outlives a restart: saves that hold nobody up, and files that others have damaged."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.idle_culler import memory as module
from services.idle_culler.memory import Memory, Store
from services.idle_culler.track import Saving, Track
from tests.fakes.culler import NOON

PATIENCE = 240.0
"""Seconds until a test that waits for something gives up."""


def remembered(*users: str) -> Memory:
    return Memory(tracks={(user, ""): Track(user=user, started=NOON) for user in users})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class SlowDisk:
    """A disk that writes nothing through until it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writing, self.go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(module.os, "fsync", self._fsync)

    def _fsync(self, _file: int) -> None:
        self.writing.set()
        assert self.go_on.wait(PATIENCE)

    async def is_writing(self) -> None:
        assert await asyncio.to_thread(self.writing.wait, PATIENCE)


async def test_a_slow_disk_holds_up_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, store = SlowDisk(monkeypatch), Store(tmp_path / "state.json")
    first = asyncio.create_task(store.save(remembered("ada")))
    await disk.is_writing()  # other work goes on while the disk takes its time
    assert not first.done()
    disk.go_on.set()
    await first
    assert store.load() == remembered("ada")


async def test_saves_follow_each_other_also_where_nobody_waits_for_them_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, store = SlowDisk(monkeypatch), Store(tmp_path / "state.json")
    memory = remembered("ada")
    first = asyncio.create_task(store.save(memory))
    await disk.is_writing()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    memory.tracks |= remembered("bob").tracks

    async def go_on_without_ada() -> None:
        del memory.tracks["ada", ""]
        disk.go_on.set()

    await asyncio.gather(store.save(memory), go_on_without_ada())
    assert store.load() == remembered("ada", "bob"), "what was remembered when the save began"
    assert names(tmp_path) == ["state.json"]


WHOLE: dict[str, Any] = {"format": 1, "tracks": [], "stopped": [], "heldSince": None}
TRACK = {"user": "ada", "server": ""}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 512,
        b"\xff\xfe{",
        json.dumps(WHOLE).encode()[:-9],
        b"[" * 100_000,
        b"[]",
        b"null",
        {**WHOLE, "format": 2},
        {"format": 1},
        {**WHOLE, "tracks": {"ada": 1}},
        {**WHOLE, "tracks": [{**TRACK, "mood": "good"}]},
        {**WHOLE, "tracks": [{**TRACK, "idleSeconds": float("nan")}]},
        {**WHOLE, "tracks": [{**TRACK, "idleSeconds": -1}]},
        {**WHOLE, "tracks": [{**TRACK, "extraSeconds": float("inf")}]},
        {**WHOLE, "heldSince": "yesterday"},
    ],
    ids=str,
)
def test_a_file_that_is_none_is_set_aside(tmp_path: Path, data: Any) -> None:
    state = tmp_path / "state.json"
    state.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    before = state.read_bytes()
    assert Store(state).load() == Memory()
    assert (tmp_path / "state.json.unreadable").read_bytes() == before


async def test_everything_that_is_remembered_is_read_back(tmp_path: Path) -> None:
    whole = Track(
        user="ada lovelace/é",
        server="gpu",
        started=NOON,
        idle_seconds=7.5,
        session_warned=(NOON, NOON + timedelta(minutes=1)),
        keep_until=NOON,
        saving=Saving(id="1", asked=NOON, failed=("a.ipynb",)),
        stop_by="user",
    )
    memory = Memory(tracks={whole.key: whole}, stopped=[NOON], held_since=NOON)
    await Store(tmp_path / "state.json").save(memory)
    assert Store(tmp_path / "state.json").load() == memory


async def test_a_folder_that_is_not_there_costs_the_file_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await Store(tmp_path / "none" / "state.json").save(remembered("ada"))
    assert "state not written" in caplog.text


async def test_what_changed_is_written_beside_what_did_not(tmp_path: Path) -> None:
    store, memory = Store(tmp_path / "state.json"), remembered("ada", "bob", "eve")
    await store.save(memory)
    memory.tracks |= {("bob", ""): Track(user="bob", started=NOON, keeps=2)}
    del memory.tracks["eve", ""]
    await store.save(memory)
    assert Store(tmp_path / "state.json").load() == memory
    memory.tracks.clear()
    await store.save(memory)
    assert Store(tmp_path / "state.json").load() == Memory()
