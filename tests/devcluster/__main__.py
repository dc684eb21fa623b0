"""Development clusters by hand: `python -m tests.devcluster up`.

Exit codes: 0 all well, 1 it did not work (the message says why), 2 wrong arguments, 3 `status` finds
nothing that is up.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from tests.devcluster import build, claims, client, supervisor
from tests.devcluster.cluster import Cluster
from tests.devcluster.control import Verb
from tests.devcluster.errors import DevClusterError, StateError
from tests.devcluster.processes import tail
from tests.devcluster.record import Phase, Status, runs_dir
from tests.devcluster.report import Report
from tests.devcluster.spec import load, shipped

NOT_UP = 3
LOG_LINES = 200
DEFAULT_SPEC = "control"


def up(options: argparse.Namespace) -> int:
    default, spec = load(options.spec)
    name = options.name or default
    lock = claims.claim_name(name)
    state_dir = client.prepare(name, spec)
    if options.foreground:
        supervisor.stop_on_signals()
        supervisor.end(supervisor.Supervisor(state_dir, lock, Report(sys.stdout)).run())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    process = client.start(state_dir, lock, owned=False)
    try:
        cluster = client.follow(state_dir, process, sys.stderr)
    except KeyboardInterrupt:
        client.stop(name)
        raise
    print(f"export KUBECONFIG={cluster.kubeconfig}\nalias kubectl={cluster.programs['kubectl']}")
    return 0


def down(options: argparse.Namespace) -> int:
    names = [options.name] if options.name else client.known()
    for name in names:
        did = client.stop(name)
        print(f"{name}: {'stopped, nothing is left but its logs' if did else 'is not up'}")
    return 0


def status(options: argparse.Namespace) -> int:
    if options.name:
        return 0 if show(options.name) is Phase.READY else NOT_UP
    up_now = [name for name in client.known() if claims.is_claimed(name)]
    phases = [show(name) for name in up_now]
    if others := [name for name in client.known() if name not in up_now]:
        print(f"not up, but their logs are kept: {', '.join(others)}")
    return 0 if Phase.READY in phases else NOT_UP


def show(name: str) -> Phase:
    """Print where a cluster stands."""
    state_dir = runs_dir() / name
    known = Status.load(state_dir) or Status(phase=Phase.STOPPED)
    phase = known.phase if claims.is_claimed(name) or known.phase is Phase.FAILED else Phase.STOPPED
    print(f"{name}: {phase}" + (f"\n{known.message}" if known.message else ""))
    if phase is Phase.READY:
        cluster = Cluster.open(state_dir)
        print(f"  server {cluster.server}\n  KUBECONFIG={cluster.kubeconfig}")
        print("".join(f"  {line}\n" for line in cluster.control(Verb.LIST).splitlines()), end="")
    return phase


def kubeconfig(options: argparse.Namespace) -> int:
    print(opened(options.name).kubeconfig)
    return 0


def logs(options: argparse.Namespace) -> int:
    folder = runs_dir() / only_name(options.name) / "logs"
    found = {str(p.relative_to(folder).with_suffix("")): p for p in sorted(folder.rglob("*.log"))}
    if options.process is None:
        print("\n".join(f"{name:32} {path}" for name, path in found.items()))
        return 0
    if options.process not in found:
        raise StateError(
            f"log {options.process!r}", "is not there", f"there are: {', '.join(found) or 'none'}"
        )
    print(tail(found[options.process], LOG_LINES))
    return 0


def process(options: argparse.Namespace) -> int:
    print(opened(options.name).control(options.verb, options.process))
    return 0


def opened(name: str | None) -> Cluster:
    """A handle of a cluster that is up."""
    name = only_name(name)
    if not claims.is_claimed(name):
        raise StateError(f"cluster {name!r}", "is not up", "start it: python -m tests.devcluster up")
    return Cluster.open(runs_dir() / name)


def only_name(name: str | None) -> str:
    """The given name, or that of the only cluster that is up, or of the only one there was."""
    if name:
        return name
    names = client.known()
    if len(names) == 1:
        return names[0]
    names = [known for known in client.known() if claims.is_claimed(known)]
    if len(names) == 1:
        return names[0]
    remedy = (
        f"name one with --name: {', '.join(names)}" if names else "start one: python -m tests.devcluster up"
    )
    raise StateError("the cluster", f"is not clear: {len(names)} are up", remedy)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.devcluster", description="Real Kubernetes for tests and the demo."
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(act: object, text: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(act.__name__, help=text, description=text)  # type: ignore[attr-defined]
        sub.set_defaults(act=act)
        return sub

    sub = verb(up, "start a cluster and leave it running")
    sub.add_argument(
        "spec",
        nargs="?",
        default=DEFAULT_SPEC,
        help=f"a file, or a shipped one: {', '.join(shipped())} (default: %(default)s)",
    )
    sub.add_argument("--name", help="of the cluster; by default the file's")
    sub.add_argument("--foreground", action="store_true", help="stay until Ctrl-C")
    sub = verb(down, "stop a cluster, or all of this cache; clear up what killed ones left")
    sub.add_argument("name", nargs="?")
    sub = verb(status, f"say what is up; exit code {NOT_UP} if nothing is, or not what was named")
    sub.add_argument("name", nargs="?")
    sub = verb(kubeconfig, "print the path of the administrator's kubeconfig file")
    sub.add_argument("--name")
    sub = verb(logs, "print the end of a program's log, or where all logs are")
    sub.add_argument("process", nargs="?", help="such as kube-apiserver or gpu-1/kubelet")
    sub.add_argument("--name")
    sub = verb(process, "stop, kill or start one of a cluster's programs")
    sub.add_argument("verb", type=Verb, choices=list(Verb))
    sub.add_argument("process", nargs="?", default="", help="such as kube-apiserver or gpu-1/kubelet")
    sub.add_argument("--name")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    try:
        return int(options.act(options))
    except (DevClusterError, build.BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
