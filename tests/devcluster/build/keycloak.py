"""Keycloak, an identity provider: from Maven Central into the cache, and built once for fast starts.

Shell: runs Maven and Java.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build.debian import ensure_tools
from tests.devcluster.build.errors import BuildError
from tests.devcluster.build.plan import Pool, Shell, Step

NAME = "keycloak"
VERSION = "26.7.3"
SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
"""Of the distribution's zip file."""
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
OPTIONS = ("--db=dev-mem", "--health-enabled=true", "--cache=local")
"""What Keycloak wants to know before it starts: it keeps all in memory, alone."""
TOOLS = ("mvn", "java")


def steps() -> dict[str, Step]:
    """The build step of the program's folder."""
    step = Step(
        name=NAME,
        target=cache.entry(NAME, cache.key_of(VERSION, SHA256, *OPTIONS), NAME),
        make=_make,
        pool=Pool.IMAGE,
        seconds=100,
    )
    return {step.name: step}


def _make(target: Path, run: Shell) -> None:
    tools = ensure_tools(TOOLS)
    work = cache.scratch() / "maven"
    run(
        *(tools["mvn"], "--batch-mode", "--quiet", f"-Dmaven.repo.local={work / 'repository'}", PLUGIN),
        *(f"-Dartifact=org.keycloak:keycloak-quarkus-dist:{VERSION}:zip", f"-DoutputDirectory={work}"),
    )
    _unpack(work / f"keycloak-quarkus-dist-{VERSION}.zip", target)
    run(target / "bin" / "kc.sh", "build", *OPTIONS)


def _unpack(archive: Path, target: Path) -> None:
    """Unpack the one folder of a distribution that is what was pinned; raises `BuildError`."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise BuildError(
            f"{archive} is not the Keycloak that is pinned: its SHA-256 is {found}, not {SHA256}"
        )
    unpacked = target.with_name(f"{target.name}.unpacked")
    cache.remove(unpacked)
    with zipfile.ZipFile(archive) as files:
        files.extractall(unpacked)
    (folder,) = unpacked.iterdir()
    folder.rename(target)
    unpacked.rmdir()
    (target / "bin" / "kc.sh").chmod(0o755)
