"""Compiles the programs of the table with Go, from modules pinned in `tests/devcluster/go`.

Both of Go's caches are ours, so that they can be dropped afterwards without touching the developer's own.

Shell: reads the pinned modules, runs go.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.debian import ensure_tools
from tests.devcluster.build.errors import ToolchainError
from tests.devcluster.build.plan import Pool, Shell, Step
from tests.devcluster.build.table import PROGRAMS, Program, in_folder, linker_flags

MODULES = Path(__file__).resolve().parent.parent / "go"
FLAGS = "-modcacherw -buildvcs=false -trimpath"
"""Writable module files can be removed; no path of this machine gets into a binary."""
KNOWN_PLACE = Path("/usr/local/go/bin/go")
DOWNLOAD_SECONDS = {"kubernetes": 60.0, "kubernetes-oldest": 40.0}


def module_cache() -> Path:
    """Where the sources of the modules lie, until the build caches are dropped."""
    return cache.scratch() / "mod"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A folder of `tests/devcluster/go`, read once."""

    folder: str
    go_mod: str
    go_sum: str

    @property
    def go(self) -> str:
        """The Go version that the module asks for."""
        return _only(r"^go (\S+)$", self.go_mod, f"{self.folder}/go.mod")

    def version(self, module: str) -> str:
        """The pinned version of a Go module.

        Raises `ValueError` when the module is not pinned here.
        """
        pattern = rf"^(?:require |\t){re.escape(module)} (v\S+)"
        return _only(pattern, self.go_mod, f"{self.folder}/go.mod")

    def source(self, module: str) -> Path:
        """Where Go unpacks a module; capital letters are written as `!` and the small one."""
        escaped = re.sub(r"[A-Z]", lambda match: "!" + match[0].lower(), f"{module}@{self.version(module)}")
        return module_cache() / escaped


def _only(pattern: str, text: str, where: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"tests/devcluster/go/{where}: nothing matches {pattern!r}")
    return found[1]


def pinned(folder: str) -> Pinned:
    """Read what a folder of `tests/devcluster/go` pins."""
    at = MODULES / folder
    return Pinned(folder, (at / "go.mod").read_text(), (at / "go.sum").read_text())


def program_key(program: Program, pins: Pinned) -> str:
    """Everything that decides what a program does; the compiler's own version is left to who upgrades it."""
    flags = linker_flags(program, pins.version(program.module))
    return cache.key_of(
        *(pins.go_mod, pins.go_sum, program.package, FLAGS, flags, str(program.cgo), platform.machine()),
        *program.tags,
    )


def program_path(program: Program, pins: Pinned) -> Path:
    """Where the built program lies, or will."""
    return cache.entry("bin", program_key(program, pins), program.file)


def steps() -> dict[str, Step]:
    """Build steps of all programs, and of the downloads that they need."""
    pins = {folder: pinned(folder) for folder in {program.folder for program in PROGRAMS.values()}}
    downloads = [_download(pin) for pin in pins.values()]
    compiles = [_compile(program, pins[program.folder]) for program in PROGRAMS.values()]
    return {step.name: step for step in (*downloads, *compiles)}


def download_name(folder: str) -> str:
    """Name of the step after which a folder's modules lie in the module cache."""
    return f"modules of {folder}"


def _download(pins: Pinned) -> Step:
    programs = in_folder(pins.folder)
    packages = [program.package for program in programs]
    cgo = any(program.cgo for program in programs)
    tags = programs[0].tags

    def make(target: Path, run: Shell) -> None:
        # Listing fetches just what these packages are compiled from; `go mod download` would fetch everything
        # that any of their modules' tests mention.
        go = toolchain(pins)
        listing = ("list", *_tag_flags(tags), "-deps", "-f", "{{.ImportPath}}", *packages)
        run(go, *listing, cwd=MODULES / pins.folder, env=environment(cgo=cgo), stdout=target)

    return Step(
        name=download_name(pins.folder),
        target=cache.scratch() / "downloaded" / cache.key_of(pins.go_mod, pins.go_sum, *packages, *tags),
        make=make,
        pool=Pool.DOWNLOAD,
        lane=f"download-{pins.folder}",
        seconds=DOWNLOAD_SECONDS.get(pins.folder, 15),
    )


def _compile(program: Program, pins: Pinned) -> Step:
    def make(target: Path, run: Shell) -> None:
        if program.cgo:
            ensure_tools(["gcc"])
        flags = linker_flags(program, pins.version(program.module))
        tags = _tag_flags(program.tags)
        run(
            toolchain(pins),
            "build",
            *tags,
            *("-ldflags", flags, "-o", target, program.package),
            cwd=MODULES / pins.folder,
            env=environment(cgo=program.cgo),
        )

    return Step(
        name=program.name,
        target=program_path(program, pins),
        make=make,
        needs=(download_name(pins.folder),),
        pool=Pool.COMPILE,
        lane=f"go-{pins.folder}",
        seconds=program.seconds,
    )


def _tag_flags(tags: Sequence[str]) -> tuple[str, ...]:
    return ("-tags", ",".join(tags)) if tags else ()


def environment(*, cgo: bool) -> Mapping[str, str]:
    """Go's settings for our builds, whatever the developer's own are; proxies stay theirs."""
    work = (
        cache.scratch() / "work"
    )  # not in /tmp, which may be small, and where a killed build would leave it
    work.mkdir(parents=True, exist_ok=True)
    return {
        "CGO_ENABLED": "1" if cgo else "0",
        "GOCACHE": str(cache.compiled()),
        "GOFLAGS": FLAGS,
        "GOMODCACHE": str(module_cache()),
        "GOTMPDIR": str(work),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def toolchain(pins: Pinned) -> Path:
    """The `go` to use.

    Raises `ToolchainError` when there is none, or an older one than the module asks for.
    """
    module = MODULES / pins.folder / "go.mod"
    tried = [(path, go_version(path)) for path in _candidates()]
    for path, version in tried:
        if release(version) >= release(pins.go):
            return path
    at, found = tried[0] if tried else (None, None)
    raise ToolchainError(needed=pins.go, module=module, found=found, at=at)


def _candidates() -> Iterable[Path]:
    on_path = shutil.which("go")
    places = [Path(on_path)] if on_path else []
    return [*places, *(place for place in [KNOWN_PLACE] if place.exists() and place not in places)]


@functools.cache
def go_version(go: Path) -> str:
    """The version of a `go`, such as `1.26.8`; asked once per process."""
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    told = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True, env=env)
    return told.stdout.strip().removeprefix("go")


def release(version: str) -> tuple[int, ...]:
    """The comparable part of a Go version: `1.26.8` and `1.27rc1` without what follows the numbers."""
    return tuple(int(number) for number in re.findall(r"\d+", re.split(r"[a-z]|-", version)[0]))
