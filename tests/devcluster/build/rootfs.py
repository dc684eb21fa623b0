"""The images with an operating system in them: Debian, and what `images/` says is built upon it.

Production builds `images/*/Dockerfile` on a CUDA base and on the chart's hub image. Those cannot be had
without their registries, so here the same Dockerfiles are built on stand-ins made from Debian's packages:
`base` in place of the CUDA base, `python-base` in place of Python's, `hub-base` in place of the chart's hub
image, `proxy` in place of its proxy, `ray` in place of Ray's.

Shell: runs mmdebstrap and buildah as root, in a mount namespace of their own.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build import agent, bundle, node
from tests.devcluster.build.debian import ensure_tools
from tests.devcluster.build.errors import BuildError
from tests.devcluster.build.images import PREFIX, Recipe, reference
from tests.devcluster.build.plan import Shell, Step

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "images"
SOURCES = Path(__file__).resolve().parent / "sources"
SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
MIRROR_VARIABLE = "GPU_WORKSPACES_DEBIAN_MIRROR"
"""Names another mirror, for machines that do not reach the usual one."""
PACKAGES = ("ca-certificates", "python3")
UNWANTED = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
"""Left out when packages are unpacked, as the images that this one stands in for do; licenses are kept."""
KEPT = 3
EPOCH = 1767225600
"""2026-01-01: the time that every file and image gets, so that the same content has the same digest."""
RECIPE = "1"
"""Raise it when code below changes what an image holds for the same inputs."""
_LIMITS = '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=30000:30000"]\n'
"""Hard limits cannot be raised where root is not all-powerful, so buildah must not try."""
_CA_INSIDE = "/run/host-ca.crt"
"""Not in `/etc/ssl/certs`: the ca-certificates package must be able to write what is there."""


def recipes() -> dict[str, Recipe]:
    """Every image with an operating system."""
    base = _base()
    agent_wheel = _Given(folder=agent.wheel_folder(), step=agent.WHEEL)
    plain = _dockerfile("notebook-plain", IMAGES / "notebook", base=base, seconds=170)
    notebook = _dockerfile("notebook", IMAGES / "agent", base=plain, seconds=40, given=agent_wheel)
    python = _dockerfile("python-base", SOURCES / "python-base", base=base, seconds=20)
    hub_base = _dockerfile("hub-base", SOURCES / "hub-base", base=python, seconds=40)
    bundle_wheel = _Given(folder=bundle.wheel_folder(), step=bundle.WHEEL)
    hub = _dockerfile("hub", IMAGES / "hub", base=hub_base, seconds=40, given=bundle_wheel)
    services = _dockerfile("services", IMAGES / "services", base=python, seconds=60, given=bundle_wheel)
    ray = _dockerfile("ray", SOURCES / "ray", base=base, seconds=120)
    programs = _Given(folder=node.tools_folder(), step=node.TOOLS)
    proxy = _dockerfile("proxy", SOURCES / "proxy", base=python, seconds=20, given=programs)
    postgres = _dockerfile("postgres", SOURCES / "postgres", base=base, seconds=30)
    made = (base, plain, notebook, python, hub_base, hub, services, ray, proxy, postgres)
    return {recipe.name: recipe for recipe in made}


def steps() -> dict[str, Step]:
    """Build steps of these images."""
    return {step.name: step for step in (recipe.step() for recipe in recipes().values())}


def _base() -> Recipe:
    key = cache.key_of(RECIPE, SUITE, *PACKAGES, *UNWANTED, platform.machine())

    def make(target: Path, run: Shell) -> None:
        _require_root("base")
        tools = ensure_tools(["mmdebstrap", "buildah"])
        excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in UNWANTED]
        with _work_folder(target) as work:
            run(
                *_private(tools["mmdebstrap"], "--variant=minbase", f"--include={','.join(PACKAGES)}"),
                *(*excluded, "--dpkgopt=path-include=/usr/share/doc/*/copyright"),
                *(SUITE, work / "rootfs.tar", os.environ.get(MIRROR_VARIABLE, MIRROR)),
                env={"SOURCE_DATE_EPOCH": str(EPOCH)},
            )
            (work / "Dockerfile").write_text('FROM scratch\nADD rootfs.tar /\nCMD ["/bin/bash"]\n')
            buildah = Buildah(tools["buildah"], work / "buildah", run)
            buildah.build(work, tag=reference("base", key))
            buildah.save(reference("base", key), target)
        share_blobs(target)

    return Recipe(name="base", key=key, make=make, seconds=70)


def _dockerfile(
    name: str, folder: Path, *, base: Recipe, seconds: float, given: _Given | None = None
) -> Recipe:
    """An image from a folder with a Dockerfile whose build argument `BASE` names what it is built upon."""
    own = [given.key] if given else []
    key = cache.key_of(RECIPE, base.key, *agent.content(folder), *own)

    def make(target: Path, run: Shell) -> None:
        _require_root(name)
        tools = ensure_tools(["buildah"])
        with _work_folder(target) as work:
            context = shutil.copytree(folder, work / "context")
            if given:
                shutil.copytree(given.folder, context / "dist", symlinks=True)
            buildah = Buildah(tools["buildah"], work / "buildah", run)
            buildah.load(base.step().target, reference(base.name, base.key))
            arguments = {"BASE": reference(base.name, base.key), "VERSION": key}
            buildah.build(context, tag=reference(name, key), arguments=arguments)
            buildah.save(reference(name, key), target)
        share_blobs(target)
        _drop_older(name)

    needs = (PREFIX + base.name, *([given.step] if given else []))
    return Recipe(name=name, key=key, make=make, needs=needs, seconds=seconds)


class Buildah:
    """buildah with a storage of its own, to be dropped with its folder."""

    def __init__(self, program: Path, folder: Path, run: Shell) -> None:
        folder.mkdir()
        self._run, self._program, self._folder = run, program, folder
        (folder / "containers.conf").write_text(_LIMITS)
        (folder / "pip.conf").write_text(_pip_configuration())

    def load(self, layout: Path, name: str) -> None:
        """Take the one image of an OCI layout folder, and call it `name`."""
        found = self._folder / "loaded"
        # From beside it, for buildah makes a name of the path, and not every path is one.
        self._buildah("pull", "--quiet", f"oci:{layout.name}", cwd=layout.parent, stdout=found)
        self._buildah("tag", found.read_text().split()[-1], name)

    def build(self, context: Path, *, tag: str, arguments: Mapping[str, str] | None = None) -> None:
        """Build the Dockerfile of a folder; pulls nothing, so its bases must have been loaded."""
        given: list[str | Path] = [f"--build-arg={key}={value}" for key, value in (arguments or {}).items()]
        volumes: list[str | Path] = [f"--volume={self._folder / 'pip.conf'}:/etc/pip.conf:ro"]
        if bundle := _own_ca_bundle():
            volumes.append(f"--volume={bundle}:{_CA_INSIDE}:ro")
        self._buildah(
            *("build", "--isolation=chroot", "--network=host", "--pull-never", "--layers"),
            *(f"--timestamp={EPOCH}", f"--tag={tag}", *given, *volumes, context),
        )

    def save(self, name: str, target: Path) -> None:
        """Write an image to an OCI layout folder. zstd, because nodes unpack that several times faster."""
        self._buildah("push", "--quiet", "--compression-format=zstd", name, f"oci:{target}:{name}")

    def _buildah(self, *arguments: str | Path, cwd: Path | None = None, stdout: Path | None = None) -> None:
        storage = ("--root", self._folder / "storage", "--runroot", self._folder / "run")
        self._run(
            *_private(self._program, *storage, "--storage-driver=overlay", *arguments),
            cwd=cwd,
            env={"CONTAINERS_CONF": str(self._folder / "containers.conf"), "TMPDIR": str(self._folder)},
            stdout=stdout,
        )


def _private(*command: str | Path) -> tuple[str | Path, ...]:
    """Run a command in a mount namespace of its own: however it ends, none of its mounts stays."""
    return ("unshare", "--mount", "--propagation", "private", "--", *command)


@contextlib.contextmanager
def _work_folder(target: Path) -> Iterator[Path]:
    """A folder beside `target`, empty at first and gone afterwards."""
    work = target.with_name(f"{target.name}.work")
    cache.remove(work)
    work.mkdir(parents=True)
    try:
        yield work
    finally:
        cache.remove(work)


def share_blobs(layout: Path) -> None:
    """Let layers that another image of the cache has too take up room once: what an image is built upon."""
    own = layout / "blobs" / "sha256"
    known = (cache.cache_root() / "images").glob("*/*/blobs/sha256/*")
    others = {blob.name: blob for blob in known if blob.parent != own}
    for blob in list(own.glob("*")):
        same = others.get(blob.name)
        # The name is the content's hash; only what another process removes meanwhile can be missing.
        with contextlib.suppress(FileNotFoundError):
            if same is not None and not same.samefile(blob):
                link = blob.with_name(f"{blob.name}.link")
                os.link(same, link)
                link.replace(blob)


def _drop_older(name: str) -> None:
    """Keep the `KEPT` builds of an image that were used last: some change with every line of code."""
    builds = (cache.cache_root() / "images").glob(f"*/{name}")
    for build in sorted(builds, key=lambda path: path.parent.stat().st_mtime, reverse=True)[KEPT:]:
        cache.remove(build.parent)


def _require_root(name: str) -> None:
    if os.geteuid() != 0:
        raise BuildError(
            f"image {name!r} can only be built by root, for that takes mounts and other users' files: "
            "run this once as root"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What another step builds and an image takes: one of our wheels, the programs of Node."""

    folder: Path
    """Where it is when it is built."""
    step: str
    """What builds it."""

    @property
    def key(self) -> str:
        """Hash of its content."""
        return self.folder.parent.name


def _own_ca_bundle() -> Path | None:
    """The certificates that this machine's programs are told to trust, where it has its own."""
    given = (
        os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE") or _pip_settings().get("global.cert")
    )
    return Path(given) if given and Path(given).is_file() else None


def _pip_configuration() -> str:
    """pip's configuration inside a build: the machine's index, and its certificates at their place inside."""
    settings = {
        key.removeprefix("global."): value
        for key, value in _pip_settings().items()
        if key in {"global.index-url", "global.extra-index-url", "global.trusted-host", "global.proxy"}
    }
    if _own_ca_bundle():
        settings["cert"] = _CA_INSIDE
    return "\n".join(["[global]", *(f"{key} = {value}" for key, value in settings.items()), ""])


def _pip_settings() -> dict[str, str]:
    """What this machine's pip is configured to, by keys such as `global.index-url`."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pairs = (line.partition("=") for line in listed.splitlines())
    return {key: value.strip("'") for key, _, value in pairs}
