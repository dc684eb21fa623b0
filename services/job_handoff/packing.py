"""Packing a working folder.

The same files give the same archive, byte for byte, so that an unchanged folder is uploaded and kept once.

Shell: reads files.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, NoReturn

from pathspec import GitIgnoreSpec

from .snapshot import (
    IGNORE_FILE,
    Limits,
    Member,
    MemberKind,
    check_member,
    check_packed,
    check_total,
    credential,
    ignore_rules,
    read_rules,
    search,
)
from .verdicts import RefusalReason, RunRefusedError

_MEMORY: Final = 8 * 1024 * 1024
_CHUNK: Final = 1024 * 1024


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
    return read_rules(_read_lines(file) if file.is_file() else ())


def _read_lines(file: Path) -> list[str]:
    """Read the lines of an ignore file, as editors of any system write it."""
    try:
        return file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        _refuse(error)


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


def _refuse(error: OSError, file: Path | None = None) -> NoReturn:
    """Refuse what cannot be read: it would be missing in the run without a word."""
    raise RunRefusedError(
        RefusalReason.SOURCE_UNSAFE,
        f"{str(error.filename or file)[-200:]!r} cannot be read: {error.strerror or error}.",
        field="source",
        help=f"Name it in {IGNORE_FILE}, let it be read, or try again when nothing writes it.",
    ) from error


def _member(file: Path, path: str) -> Member:
    try:
        about = file.lstat()
        if stat.S_ISLNK(about.st_mode):
            return Member(path=path, kind=MemberKind.LINK, target=str(file.readlink()))
    except OSError as error:
        _refuse(error)
    if stat.S_ISREG(about.st_mode):
        return Member(path=path, kind=MemberKind.FILE, size=about.st_size)
    return Member(path=path, kind=MemberKind.OTHER)


def _add(archive: tarfile.TarFile, folder: Path, member: Member) -> None:
    info = tarfile.TarInfo(member.path)
    if member.kind is MemberKind.LINK:
        info.type, info.linkname = tarfile.SYMTYPE, member.target
        archive.addfile(info)
        return
    file = folder / member.path
    info.mode = 0o755 if os.access(file, os.X_OK) else 0o644
    try:
        with open(file, "rb", opener=_as_it_was) as content:
            if what := search(content):
                raise credential(member.path, what)
            # The size at this moment: a file that still grows is cut, not a broken archive.
            info.size = os.fstat(content.fileno()).st_size
            content.seek(0)
            archive.addfile(info, content)
    except OSError as error:
        # Such as one that was made shorter meanwhile, or that its server does not give.
        _refuse(error, file)


def _as_it_was(path: str, flags: int) -> int:
    """Open a file, and neither a link nor a pipe that took its place since it was listed."""
    found = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is no file any more", path)
    return found


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
