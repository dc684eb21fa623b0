"""Packing a folder and looking into what was packed: what is left out, refused and kept."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from services.job_handoff import packing
from services.job_handoff.archive import inspect
from services.job_handoff.packing import pack
from services.job_handoff.snapshot import Limits, Member, MemberKind, check_member, find_credential
from services.job_handoff.verdicts import RunRefusedError

from .conftest import archive


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def packed_names(folder: Path) -> set[str]:
    with closing(pack(folder)) as packed:
        return set(packed.files)


def test_what_is_ignored_is_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.py": "",
            "data/big.bin": "",
            "data/small.csv": "",
            ".git/config": "",
            "x/__pycache__/a.pyc": "",
            ".ipynb_checkpoints/a.ipynb": "",
            ".handoffignore": "data/*\n!data/small.csv\n!.git/\n",
            ".gitignore": "a.py\n",
        },
    )
    assert packed_names(tmp_path) == {"a.py", "data/small.csv", ".handoffignore", ".gitignore"}
    (tmp_path / ".handoffignore").unlink()
    assert "a.py" not in packed_names(tmp_path)


def test_the_same_files_give_the_same_archive(tmp_path: Path) -> None:
    write(tmp_path, {"b.py": "1", "a.py": "2"})
    with closing(pack(tmp_path)) as first:
        os.utime(tmp_path / "a.py", (1, 1))
        with closing(pack(tmp_path)) as second:
            assert first.sha256 == second.sha256
    (tmp_path / "a.py").write_text("3")
    with closing(pack(tmp_path)) as third:
        assert third.sha256 != first.sha256


def test_what_was_packed_passes_the_inspection(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "1", "n.ipynb": '{"metadata": {"kernelspec": {"name": "k"}}}', "m.ipynb": "no"})
    (tmp_path / "link.py").symlink_to("a.py")
    with closing(pack(tmp_path)) as packed:
        found = inspect(packed.file)
    assert set(found.files) == {"a.py", "n.ipynb", "m.ipynb"}
    assert found.kernels == {"n.ipynb": "k", "m.ipynb": None}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".aws/credentials", "x"),
        ("home/.ssh/id_ed25519", "x"),
        (".netrc", "x"),
        ("deploy.pem", "x"),
        (".env", "x"),
        ("a.py", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        ("a.py", "token = 'hf_" + "a" * 34 + "'"),
        ("a.ipynb", '{"x": "ghp_' + "A" * 36 + '"}'),
    ],
)
def test_credentials_are_refused_by_place_and_never_repeated(tmp_path: Path, name: str, content: str) -> None:
    write(tmp_path, {name: content})
    (tmp_path / ".handoffignore").write_text("!.*/\n")
    with pytest.raises(RunRefusedError) as error:
        pack(tmp_path)
    assert error.value.reason == "credential-in-source"
    assert name in error.value.message
    assert content not in error.value.text or len(content) == 1
    with pytest.raises(RunRefusedError):
        inspect(io.BytesIO(archive({name: content})))


def test_hidden_folders_and_brought_results_stay_at_home(tmp_path: Path) -> None:
    write(
        tmp_path,
        {".aws/credentials": "x", ".jupyter/a": "", "runs/run-aaa/a.ipynb": "", "a.py": "", ".env2": ""},
    )
    assert packed_names(tmp_path) == {"a.py", ".env2"}


def test_words_that_only_look_like_credentials_pass() -> None:
    assert find_credential(b"AKIA is a prefix; hf_model; ghp_; -----BEGIN CERTIFICATE-----") == ""


@pytest.mark.parametrize(
    ("path", "kind", "target"),
    [
        ("/etc/passwd", MemberKind.FILE, ""),
        ("../x", MemberKind.FILE, ""),
        ("a/../../x", MemberKind.FILE, ""),
        ("a//b", MemberKind.FILE, ""),
        ("a\nb", MemberKind.FILE, ""),
        ("a\\b", MemberKind.FILE, ""),
        ("dev", MemberKind.OTHER, ""),
        ("l", MemberKind.LINK, "/etc/passwd"),
        ("a/l", MemberKind.LINK, "../../x"),
        ("l", MemberKind.LINK, ".."),
        ("l", MemberKind.LINK, "here/.."),
        ("a/b/l", MemberKind.LINK, "../here/../x"),
        ("l", MemberKind.LINK, ""),
    ],
)
def test_members_that_could_leave_the_folder_are_refused(path: str, kind: MemberKind, target: str) -> None:
    with pytest.raises(RunRefusedError) as error:
        check_member(Member(path=path, kind=kind, target=target))
    assert error.value.reason == "source-unsafe"


@pytest.mark.parametrize(("path", "target"), [("a/l", "../b"), ("l", "a/b"), ("a/b/l", "../../c")])
def test_links_within_the_folder_stay(path: str, target: str) -> None:
    check_member(Member(path=path, kind=MemberKind.LINK, target=target))


def test_devices_in_an_archive_are_refused() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        info = tarfile.TarInfo("null")
        info.type, info.devmajor, info.devminor = tarfile.CHRTYPE, 1, 3
        opened.addfile(info)
    packed.seek(0)
    with pytest.raises(RunRefusedError):
        inspect(packed)


def test_too_much_is_refused_before_it_is_unpacked() -> None:
    bomb = io.BytesIO(archive({f"f{n}": b"\0" * 1_000_000 for n in range(4)}))
    assert bomb.getbuffer().nbytes < 100_000
    with pytest.raises(RunRefusedError) as error:
        inspect(bomb, Limits(size=3_000_000))
    assert error.value.reason == "source-too-large"
    bomb.seek(0)
    with pytest.raises(RunRefusedError):
        inspect(bomb, Limits(files=3))


def test_a_folder_that_is_too_large_names_what_is(tmp_path: Path) -> None:
    write(tmp_path, {"big.bin": "x" * 2000, "a.py": ""})
    with pytest.raises(RunRefusedError) as error:
        pack(tmp_path, Limits(size=1000))
    assert "big.bin" in error.value.help


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00broken", archive({"a": "b"})[:40]])
def test_what_is_no_archive_is_refused(content: bytes) -> None:
    with pytest.raises(RunRefusedError) as error:
        inspect(io.BytesIO(content))
    assert error.value.reason == "source-unsafe"


def test_a_folder_that_cannot_be_read_is_not_left_out_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"data/a.csv": "", "a.py": ""})
    look = os.scandir

    def deny(path: str) -> object:
        if str(path).endswith("data"):
            raise PermissionError(13, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(os, "scandir", deny)
    with pytest.raises(RunRefusedError, match="cannot be read") as error:
        pack(tmp_path)
    assert ".handoffignore" in error.value.help


def test_names_that_are_no_text_are_refused_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.csv")).write_text("")
    with pytest.raises(RunRefusedError, match="not text") as error:
        pack(tmp_path)
    assert error.value.message.isprintable()
    with pytest.raises(RunRefusedError):
        inspect(io.BytesIO(archive({os.fsdecode(b"caf\xe9.csv"): ""})))
    check_member(Member(path="données ünïcode 🙂.csv", kind=MemberKind.FILE))
    with pytest.raises(RunRefusedError):
        check_member(Member(path="é" * 600, kind=MemberKind.FILE))


def test_pipes_and_sockets_are_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RunRefusedError, match="neither a file"):
        pack(tmp_path)


def test_an_archive_that_was_made_by_hand_is_taken() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        for name in (".", "./sub"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            opened.addfile(info)
        opened.addfile(tarfile.TarInfo("./sub/a.py"))
        opened.addfile(tarfile.TarInfo("./-rf.py"))
    packed.seek(0)
    assert inspect(packed).files == ("sub/a.py", "-rf.py")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_what_is_said_about_a_file_is_bounded_too(kind: bytes) -> None:
    """A head of any length is read into memory before anybody sees a member."""
    head = tarfile.TarInfo("head")
    head.type, head.size = kind, 64 * 1024 * 1024
    packed = io.BytesIO(gzip.compress(head.tobuf() + b"\0" * head.size, 1))
    tracemalloc.start()
    with pytest.raises(RunRefusedError, match="says too much"):
        inspect(packed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * 1024 * 1024


def test_a_file_of_holes_counts_with_its_whole_size(tmp_path: Path) -> None:
    with (tmp_path / "sparse.bin").open("wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(RunRefusedError) as error:
        pack(tmp_path)
    assert (error.value.reason, "sparse.bin (10 GiB)" in error.value.help) == ("source-too-large", True)


@pytest.mark.parametrize("line", ["!", "\\", "[z-a]", "(?P<x>", "a" * 5000])
def test_a_line_that_is_no_pattern_says_nothing(tmp_path: Path, line: str) -> None:
    write(tmp_path, {"a.py": "1", "b.csv": ""})
    (tmp_path / ".handoffignore").write_text(f"\ufeff*.csv\r\n{line}\r\n", encoding="utf-8")
    assert packed_names(tmp_path) == {"a.py", ".handoffignore"}


KEY = "AKIAABCDEFGHIJKLMNOP"


@pytest.mark.parametrize("before", [1024 * 1024 - 10, 1024 * 1024, 3 * 1024 * 1024 + 7])
@pytest.mark.parametrize("name", ["out.ipynb", "out.log"])
def test_a_credential_is_found_wherever_it_stands(tmp_path: Path, name: str, before: int) -> None:
    content = " " * before + KEY + " " * 100
    write(tmp_path, {name: content})
    with pytest.raises(RunRefusedError) as error:
        pack(tmp_path)
    assert error.value.reason == "credential-in-source"
    with pytest.raises(RunRefusedError) as error:
        inspect(io.BytesIO(archive({name: content})))
    assert error.value.reason == "credential-in-source"


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-" + "a1" * 30,
        "sk-ant-api03-" + "a1" * 30,
        "nvapi-" + "a1" * 32,
        "AIza" + "a1_" * 11 + "xy",
        "pypi-AgEIcHlwaS5vcmc" + "a1" * 30,
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    ],
)
def test_keys_of_what_people_use_are_known(text: str) -> None:
    assert find_credential(f"x = '{text}'".encode())
    assert (
        find_credential(b"sk-project-name nvapi-docs AIzaac sk-anthology-of-very-long-and-many-names") == ""
    )


def changed(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Have something change in the folder after it was listed."""
    total = packing.check_total

    def then(*arguments: Any, **more: Any) -> None:
        total(*arguments, **more)
        change()

    monkeypatch.setattr(packing, "check_total", then)


def test_what_changes_while_it_is_packed_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"secret": ""})
    file = tmp_path / "a.py"
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: file.symlink_to("secret"),
        lambda: os.mkfifo(file),
    ]
    for change in changes:
        file.unlink(missing_ok=True)
        file.write_text("1")
        with monkeypatch.context() as patch:
            changed(patch, lambda put=change: (file.unlink(), put()))  # type: ignore[misc]
            with pytest.raises(RunRefusedError) as error:
                pack(tmp_path)
        assert (error.value.reason, "a.py" in error.value.message) == ("source-unsafe", True)


def test_a_file_that_is_cut_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a log that is rotated: half of it would make the archive a broken one."""
    file = tmp_path / "train.log"
    file.write_text("x" * 100_000)
    add = tarfile.TarFile.addfile

    def cut(self: tarfile.TarFile, info: tarfile.TarInfo, content: Any = None) -> None:
        os.truncate(file, 10)
        add(self, info, content)

    monkeypatch.setattr(tarfile.TarFile, "addfile", cut)
    with pytest.raises(RunRefusedError) as error:
        pack(tmp_path)
    assert (error.value.reason, "train.log" in error.value.message) == ("source-unsafe", True)
