"""Build parts of the development cluster: `python -m tests.devcluster.build [NAME …]`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.build import BuildError, all_steps, ensure, prune
from tests.devcluster.build.golang import pinned
from tests.devcluster.build.plan import Pool, Step
from tests.devcluster.build.progress import duration
from tests.devcluster.build.table import PROGRAMS


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m tests.devcluster.build",
        description=f"Builds parts of the development cluster, once, into {cache.cache_root()}.",
        epilog=f"Another place: set {cache.ROOT_VARIABLE}.",
    )
    made.add_argument("names", nargs="*", metavar="NAME", help="a program, image:NAME or manifest:NAME")
    made.add_argument("--all", action="store_true", help="build everything")
    made.add_argument("--list", action="store_true", help="show what can be built, and what is")
    made.add_argument(
        "--prune", action="store_true", help="then drop the build caches and what is long unused"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 1 for what could not be built, 130 when interrupted."""
    options = parser().parse_args(arguments)
    if not (options.names or options.all or options.list or options.prune):
        parser().print_help()
        return 2
    try:
        _run(options)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what is finished is kept, the next call goes on from there", file=sys.stderr)
        return 130
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.names or options.all:
        begin = time.monotonic()
        for name, path in ensure([*options.names, *(buildable() if options.all else ())]).items():
            print(f"{name}\t{path}")
        print(f"all there after {duration(time.monotonic() - begin)}", file=sys.stderr)
    if options.prune:
        print(f"{size(prune())} became free in {cache.cache_root()}", file=sys.stderr)
    if options.list:
        for line in listing():
            print(line)


def buildable() -> list[str]:
    """Every name that is worth asking for: downloads are only ever a means."""
    return [name for name, step in all_steps().items() if step.pool is not Pool.DOWNLOAD]


def listing() -> list[str]:
    """One line for each thing that can be built."""
    steps = all_steps()
    names = buildable()
    width = max(map(len, names))
    return [f"{name:<{width}}  {version(name):<10}  {state(steps[name])}" for name in names]


def version(name: str) -> str:
    """The pinned version of a program, else nothing."""
    program = PROGRAMS.get(name)
    return pinned(program.folder).version(program.module) if program else ""


def state(step: Step) -> str:
    """Whether it is there, and how big; or how long it takes to build."""
    if step.target.exists():
        return f"{size(cache.size_bytes(step.target)):>8}  {shortened(step.target)}"
    return f"not built; takes about {duration(step.seconds)} on two cores"


def shortened(path: Path) -> str:
    """The path below the cache folder."""
    return str(path.relative_to(cache.cache_root()))


def size(count: int) -> str:
    """Bytes as people say them: `84 MB`."""
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the compilers are ended too
    sys.exit(main())
