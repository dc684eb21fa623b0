from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.devcluster import cache
from tests.devcluster.waiting import PATIENCE_SECONDS


def test_a_key_says_where_one_part_ends_and_the_next_begins() -> None:
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc")
    assert cache.key_of("ab", b"c") == cache.key_of(b"ab", "c")
    assert cache.key_of("a") != cache.key_of("a", "")


def test_staged_appears_only_when_all_went_well(tmp_path: Path) -> None:
    target = tmp_path / "bin" / "program"
    with cache.staged(target) as part:
        part.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["program"]


def test_staged_leaves_what_was_there_when_it_fails(tmp_path: Path) -> None:
    target = tmp_path / "layout"
    target.mkdir()
    (target / "old").touch()
    staging = cache.staged(target)
    part = staging.__enter__()
    part.mkdir()
    (part / "half").touch()
    error = RuntimeError("the compiler failed")
    assert not staging.__exit__(RuntimeError, error, None)
    assert [path.name for path in tmp_path.rglob("*")] == ["layout", "old"]


def test_staged_starts_clean_after_a_killed_process(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), cache.staged(tmp_path / "thing") as part:
        raise KeyboardInterrupt
    part.write_text("half of it")
    with cache.staged(tmp_path / "thing") as part:
        assert not part.exists()
        part.write_text("whole")
    assert (tmp_path / "thing").read_text() == "whole"


def test_a_lock_keeps_other_processes_out_and_says_that_one_waits(cache_folder: Path) -> None:
    code = """
import sys
from tests.devcluster import cache
with cache.locked("thing", on_wait=lambda: print("waits", flush=True)):
    print("has it", flush=True)
"""
    with cache.locked("thing"):
        other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "waits\n"
        with cache.lock_if_free("thing") as alone:
            assert not alone
    assert other.communicate(timeout=PATIENCE_SECONDS)[0] == "has it\n"


def test_a_command_that_inherits_the_lock_keeps_it_when_its_parent_is_killed(cache_folder: Path) -> None:
    code = """
import os, subprocess
from tests.devcluster import cache
with cache.locked("thing") as lock:
    subprocess.Popen(["cat"], pass_fds=(lock,))
    os.kill(os.getpid(), 9)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as parent:
        parent.wait(timeout=PATIENCE_SECONDS)
        with cache.lock_if_free("thing") as alone:
            assert not alone
        assert parent.stdin is not None
        parent.stdin.close()  # the command ends
    with cache.locked("thing"):  # waits for that
        pass


def test_shared_locks_go_together_but_not_with_an_exclusive_one() -> None:
    share = cache.locked("build", shared=True)
    with share, cache.locked("build", shared=True), cache.lock_if_free("build") as alone:
        assert not alone
    with cache.lock_if_free("build") as alone:
        assert alone


def test_unused_entries_are_dropped_and_wanted_ones_kept(cache_folder: Path) -> None:
    old, wanted = (cache.entry("bin", key, "program") for key in ("old", "wanted"))
    for path in (old, wanted):
        path.parent.mkdir(parents=True)
        path.touch()
        month_ago = time.time() - 31 * 86400
        os.utime(path.parent, (month_ago, month_ago))
    cache.mark_used(wanted)
    assert cache.drop_unused("bin", days=30, keep=9) == [old.parent]
    assert wanted.exists()
    assert not old.exists()


def test_of_each_name_the_last_wanted_are_kept() -> None:
    now = time.time()
    for age, (key, name) in enumerate(
        [("a", "hub"), ("b", "hub"), ("c", "base"), ("d", "hub"), ("e", "hub")]
    ):
        path = cache.entry("images", key, name)
        path.mkdir(parents=True)
        os.utime(path.parent, (now - age, now - age))
    removed = cache.drop_unused("images", days=30, keep=2)
    assert [path.name for path in removed] == ["d", "e"]
    assert sorted(path.name for path in (cache.cache_root() / "images").iterdir()) == ["a", "b", "c"]


def test_size_counts_a_file_once_that_has_two_names(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    once = cache.size_bytes(tmp_path)
    (tmp_path / "second").hardlink_to(tmp_path / "file")
    assert cache.size_bytes(tmp_path) == once >= 100_000
    assert cache.size_bytes(tmp_path / "absent") == 0
