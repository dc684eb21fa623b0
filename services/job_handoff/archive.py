"""Packing a working folder, and looking into what was packed.

The same files give the same archive, byte for byte, so that an unchanged folder is uploaded and kept once.

Shell: reads files.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, NoReturn

from pathspec import GitIgnoreSpec

from .snapshot import (
    IGNORE_FILE,
    SEARCHED,
    Limits,
    Member,
    MemberKind,
    check_member,
    check_packed,
    check_total,
    credential,
    find_credential,
    ignore_rules,
)
from .verdicts import RefusalReason, RunRefusedError

_MEMORY: Final = 8 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
_LARGEST_NOTEBOOK: Final = 32 * 1024 * 1024
_LARGEST_HEAD: Final = 1024 * 1024
"""Bytes of an archive between two files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """An archive that is ready to be sent; close it."""

    file: IO[bytes]
    sha256: str
    size: int
    files: tuple[str, ...]

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in an archive that keeps the rules."""

    files: tuple[str, ...]
    size: int
    """Bytes, unpacked."""
    kernels: Mapping[str, str | None] = field(default_factory=dict)
    """Kernel that each notebook names; None where it names none."""


def pack(folder: Path, limits: Limits | None = None, *, rules: GitIgnoreSpec | None = None) -> Packed:
    """Pack a folder without what is ignored.

    Parameters
    ----------
    rules
        What is ignored; left out, what the folder's own ignore file says, and what nobody takes along.

    Raises
    ------
    RunRefusedError
        It is too large, or holds credentials, or something that is neither file, folder nor link.
    """
    bounds = limits or Limits()
    found = list(_walk(folder, _rules(folder) if rules is None else rules))
    sizes = sorted(((member.size, member.path) for member in found), reverse=True)
    check_total(len(found), sum(size for size, _ in sizes), bounds, largest=sizes)
    for member in found:
        check_member(member)
    file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_MEMORY)  # noqa: SIM115
    try:
        with (
            gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as squeezed,
            tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for member in found:
                _add(archive, folder, member)
        size = file.tell()
        check_packed(size, bounds)
        digest = sha256_of(file)
    except BaseException:
        file.close()
        raise
    files = tuple(member.path for member in found if member.kind is MemberKind.FILE)
    return Packed(file=file, sha256=digest, size=size, files=files)


def own_rules(folder: Path) -> GitIgnoreSpec:
    """Read only what the user said not to take along, for what is chosen by something else already."""
    file = folder / IGNORE_FILE
    return GitIgnoreSpec.from_lines(_read_lines(file) if file.is_file() else ())


def _read_lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def _rules(folder: Path) -> GitIgnoreSpec:
    for name in (IGNORE_FILE, ".gitignore"):
        file = folder / name
        if file.is_file():
            return ignore_rules(_read_lines(file))
    return ignore_rules(())


def _walk(folder: Path, rules: GitIgnoreSpec) -> Iterator[Member]:
    """Give what is not ignored, in a fixed order; ignored folders are not entered."""
    for root, folders, files in os.walk(folder, onerror=_refuse):
        here = PurePosixPath(Path(root).relative_to(folder).as_posix())
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        folders[:] = sorted(
            name for name in folders if name not in links and not rules.match_file(f"{here / name}/")
        )
        for name in sorted([*files, *links]):
            path = str(here / name)
            if not rules.match_file(path):
                yield _member(Path(root) / name, path)


def _refuse(error: OSError) -> NoReturn:
    """Refuse what cannot be read: it would be missing in the run without a word."""
    raise RunRefusedError(
        RefusalReason.SOURCE_UNSAFE,
        f"{str(error.filename)[-200:]!r} cannot be read: {error.strerror}.",
        field="source",
        help=f"Name it in {IGNORE_FILE}, or let it be read.",
    ) from error


def _member(file: Path, path: str) -> Member:
    if file.is_symlink():
        return Member(path=path, kind=MemberKind.LINK, target=str(file.readlink()))
    if file.is_file():
        return Member(path=path, kind=MemberKind.FILE, size=file.stat().st_size)
    return Member(path=path, kind=MemberKind.OTHER)


def _add(archive: tarfile.TarFile, folder: Path, member: Member) -> None:
    info = tarfile.TarInfo(member.path)
    if member.kind is MemberKind.LINK:
        info.type, info.linkname = tarfile.SYMTYPE, member.target
        archive.addfile(info)
        return
    file = folder / member.path
    info.mode = 0o755 if os.access(file, os.X_OK) else 0o644
    with _opened(file) as content:
        if what := find_credential(content.read(SEARCHED)):
            raise credential(member.path, what)
        # The size at this moment: a file that still grows is cut, not a broken archive.
        info.size = os.fstat(content.fileno()).st_size
        content.seek(0)
        archive.addfile(info, content)


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        _refuse(error)


def inspect(file: IO[bytes], limits: Limits | None = None) -> Contents:
    """Look into an archive that somebody sent, member by member; nothing is unpacked onto a disk.

    Raises
    ------
    RunRefusedError
        Not an archive, or one that breaks the rules.
    """
    bounds = limits or Limits()
    files: list[str] = []
    kernels: dict[str, str | None] = {}
    members, size = 0, 0
    try:
        packed = _Packed(file, bounds)
        unpacked = _Unpacked(gzip.GzipFile(fileobj=packed, mode="rb"))
        with tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for info in archive:
                members, size = members + 1, size + info.size
                check_total(members, size, bounds)
                unpacked.allow(info.size)
                member = _read_member(info)
                if member.path == ".":
                    continue
                check_member(member)
                if member.kind is not MemberKind.FILE:
                    continue
                files.append(member.path)
                _look_into(archive, info, member.path, kernels)
    except (tarfile.TarError, EOFError, OSError, zlib.error, UnicodeError) as error:
        raise RunRefusedError(
            RefusalReason.SOURCE_UNSAFE, f"The upload is not an archive (tar.gz): {error}.", field="source"
        ) from error
    return Contents(files=tuple(files), size=size, kernels=kernels)


class _Packed(io.RawIOBase):
    """Reads no more of an archive than is allowed, whatever it says about itself."""

    def __init__(self, file: IO[bytes], limits: Limits) -> None:
        self._file = file
        self._limits = limits
        self._read = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self._read += len(chunk)
        check_packed(self._read, self._limits)
        return chunk


class _Unpacked(io.RawIOBase):
    """Unpacks no more than the files that were let through, and a little for what is said about the next.

    The names and notes of a member have no bound of their own, and are read into memory: a few bytes of an
    archive could ask for all of it.
    """

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._left = _LARGEST_HEAD

    def allow(self, size: int) -> None:
        """Let one file through, with what is said about the one after it."""
        self._left = size + _LARGEST_HEAD

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise RunRefusedError(
                RefusalReason.SOURCE_UNSAFE, "The archive says too much about one file.", field="source"
            )
        return chunk


def _read_member(info: tarfile.TarInfo) -> Member:
    path = info.name.rstrip("/").removeprefix("./")  # as `tar -czf … .` writes it
    if info.isreg():
        return Member(path=path, kind=MemberKind.FILE, size=info.size)
    if info.isdir():
        return Member(path=path, kind=MemberKind.FOLDER)
    if info.issym():
        return Member(path=path, kind=MemberKind.LINK, target=info.linkname)
    return Member(path=path, kind=MemberKind.OTHER)


def _look_into(
    archive: tarfile.TarFile, info: tarfile.TarInfo, path: str, kernels: dict[str, str | None]
) -> None:
    content = archive.extractfile(info)
    if content is None:
        return
    notebook = path.endswith(".ipynb") and info.size <= _LARGEST_NOTEBOOK
    start = content.read(info.size if notebook else min(info.size, SEARCHED))
    if what := find_credential(start):
        raise credential(path, what)
    if notebook:
        kernels[path] = kernel_of(start)


def kernel_of(notebook: bytes) -> str | None:
    """Give the kernel that a notebook names; None where it names none or is no notebook."""
    try:
        found: Any = json.loads(notebook)
        name = found["metadata"]["kernelspec"]["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) else None


def sha256_of(file: IO[bytes]) -> str:
    """Give the hash of a whole file, which is at its start afterwards."""
    digest = hashlib.sha256()
    file.seek(0)
    for chunk in copy_chunks(file):
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def copy_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Give a file in pieces."""
    while chunk := file.read(_CHUNK):
        yield chunk
