"""The small images of the development cluster: one static program each, made without a container engine.

Shell: reads programs, runs a compiler; `ensure` in the package carries the steps out.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.debian import ensure_tools, unpack_package
from tests.devcluster.build.golang import pinned, program_key, program_path
from tests.devcluster.build.oci import ARCHITECTURES, Entry, Image, write_layout
from tests.devcluster.build.plan import Pool, Shell, Step
from tests.devcluster.build.table import PROGRAMS

REPOSITORY = "devcluster.test"
"""Registry part of the references; `.test` never resolves, so that nothing is pulled by mistake."""
PREFIX = "image:"
SOURCES = Path(__file__).resolve().parent / "sources"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
NOBODY = 65532
"""The unprivileged user that the controllers' own images have, and their manifests ask for."""
RECIPE = "1"
"""Raise it when code below changes what an image holds for the same inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one image is made."""

    name: str
    key: str
    """Hash of all that decides the image's content."""
    make: Callable[[Path, Shell], None]
    """Writes an OCI layout folder that holds one image, named `image_reference(name, key)`."""
    needs: tuple[str, ...] = ()
    """Steps that must be done before: programs by name, images as `image:NAME`."""
    pool: Pool = Pool.IMAGE
    seconds: float = 2

    def step(self) -> Step:
        """The build step that makes it."""
        return Step(
            name=PREFIX + self.name,
            target=cache.entry("images", self.key, self.name),
            make=self.make,
            needs=self.needs,
            pool=self.pool,
            seconds=self.seconds,
        )


def reference(name: str, key: str) -> str:
    """The image's full name; its tag is its key, so that one name never means two contents."""
    return f"{REPOSITORY}/{name}:{key}"


def recipes() -> dict[str, Recipe]:
    """Every small image."""
    made = (_pause(), _helper(), *(_program_image(image) for image in PROGRAM_IMAGES))
    return {recipe.name: recipe for recipe in made}


def steps() -> dict[str, Step]:
    """Build steps of the small images."""
    return {step.name: step for step in (recipe.step() for recipe in recipes().values())}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramImage:
    """An image that holds one program and the little it needs."""

    program: str
    path: str
    """Where its manifests expect the program."""
    user: int = NOBODY


PROGRAM_IMAGES = (
    ProgramImage(program="kueue", path="manager"),
    ProgramImage(program="jobset", path="manager"),
    ProgramImage(program="trainer", path="manager"),
    ProgramImage(program="kuberay", path="manager"),
    ProgramImage(program="coredns", path="coredns"),
    # It makes folders on the node, which are root's.
    ProgramImage(program="local-path-provisioner", path="usr/bin/local-path-provisioner", user=0),
)


def _program_image(image: ProgramImage) -> Recipe:
    program = PROGRAMS[image.program]
    pins = pinned(program.folder)
    bundle = CA_BUNDLE.read_bytes() if CA_BUNDLE.exists() else b""
    key = cache.key_of(RECIPE, program_key(program, pins), image.path, str(image.user), bundle)

    def make(target: Path, _: Shell) -> None:
        entries = (
            *_skeleton(),
            Entry(path="etc/ssl/certs/ca-certificates.crt", data=bundle, mode=0o644),
            Entry(path=image.path, source=program_path(program, pins)),
        )
        config = {"Entrypoint": [f"/{image.path}"], "User": f"{image.user}:{image.user}", "WorkingDir": "/"}
        _write(target, reference(image.program, key), entries, config)

    return Recipe(name=image.program, key=key, make=make, needs=(program.name,))


def _pause() -> Recipe:
    source = SOURCES / "pause.c"
    key = cache.key_of(RECIPE, source.read_bytes(), platform.machine())

    def make(target: Path, run: Shell) -> None:
        ensure_tools(["gcc"])
        target.mkdir()
        program = target / "pause"
        run("gcc", "-Os", "-Wall", "-Werror", "-static", "-s", "-o", program, source)
        config = {"Entrypoint": ["/pause"], "User": "65535:65535"}
        _write(target, reference("pause", key), [Entry(path="pause", source=program)], config)
        program.unlink()

    return Recipe(name="pause", key=key, make=make)


def _helper() -> Recipe:
    """A shell and the usual commands: Debian's static busybox, taken from its package, not installed."""
    package = "busybox-static"
    key = cache.key_of(RECIPE, package, platform.machine())

    def make(target: Path, run: Shell) -> None:
        target.mkdir()
        work = target / "work"
        work.mkdir()
        unpack_package(package, work)
        busybox, applets = work / "bin" / "busybox", work / "applets"
        run(busybox, "--list", stdout=applets)
        links = [name for name in applets.read_text().split() if name != "busybox"]
        entries = (
            *_skeleton(),
            Entry(path="bin/busybox", source=busybox),
            *(Entry(path=f"bin/{name}", link="busybox") for name in links),
        )
        _write(target, reference("helper", key), entries, {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]})
        cache.remove(work)

    return Recipe(name="helper", key=key, make=make)


def _skeleton() -> Iterable[Entry]:
    """What programs look for in any system: a place for temporary files, and names for users."""
    passwd = f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{NOBODY}:{NOBODY}:nonroot:/tmp:/sbin/nologin\n"
    group = f"root:x:0:\nnonroot:x:{NOBODY}:\n"
    return (
        Entry(path="tmp", mode=0o1777),
        Entry(path="etc/passwd", data=passwd.encode(), mode=0o644),
        Entry(path="etc/group", data=group.encode(), mode=0o644),
    )


def _write(target: Path, name: str, entries: Iterable[Entry], config: Mapping[str, object]) -> None:
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    environment = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], **config}
    image = Image(reference=name, entries=tuple(entries), config=environment, architecture=architecture)
    write_layout(image, target)
