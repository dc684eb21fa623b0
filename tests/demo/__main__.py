"""`python -m tests.demo`: build what is missing, start cluster and hub, say what to click, wait for Ctrl-C.

Shell: talks to a person.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from tests.demo.hub import FOLDER, Hub, running_hub
from tests.demo.preparation import BUILD_BYTES, CLUSTER, missing_steps, prepare
from tests.demo.users import ADA, USERS, VERA
from tests.devcluster import build, cache
from tests.devcluster.build.plan import Step
from tests.devcluster.build.progress import duration
from tests.devcluster.client import running
from tests.devcluster.errors import DevClusterError, HostError
from tests.devcluster.host import check_host
from tests.devcluster.record import is_free
from tests.devcluster.spec import ClusterSpec, load
from tests.devcluster.supervisor import Stop, ignore_signals, stop_on_signals

PORT = 8000
WATCH_SECONDS = 0.5


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m tests.demo", description="GPU workspaces, the whole product on this machine."
    )
    made.add_argument("--address", default="127.0.0.1", help="where the hub listens (%(default)s)")
    made.add_argument("--port", type=port_number, help=f"its port ({PORT}, or the next free one)")
    return made


def port_number(text: str) -> int:
    """Read a TCP port; raises `ArgumentTypeError`."""
    if text.isdecimal() and 0 < int(text) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {2**16 - 1}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns its exit status: 0 after Ctrl-C, 1 for what failed, 2 where it cannot run."""
    options = parser().parse_args(arguments)
    stop_on_signals()
    try:
        _, spec = load(CLUSTER)
        check_host(spec, cache.cache_root())
        say(announcement(spec, missing_steps(spec)))
        choose_port(options.address, options.port)  # a taken one is refused now, not when all else is there
        prepare(spec)
        with (
            running(CLUSTER) as cluster,
            running_hub(
                cluster, address=options.address, port=choose_port(options.address, options.port)
            ) as hub,
        ):
            say(welcome(hub, load_catalog(FOLDER / "catalog.yaml")))
            watch(hub)
    except Stop:
        ignore_signals()
        say("Stopped. Nothing is left running.")
    except HostError as error:
        say(f"The demo cannot run here: {error}", to=sys.stderr)
        return 2
    except (DevClusterError, build.BuildError) as error:
        say(f"The demo failed: {error}", to=sys.stderr)
        return 1
    return 0


def choose_port(address: str, wanted: int | None) -> int:
    """The wanted port, or the first free one from `PORT` on; raises `HostError`."""
    try:
        socket.create_server((address, 0)).close()
    except OSError as error:
        raise HostError(
            f"{address!r} is no address to listen at: {error.strerror}",
            "give one of this machine's IPv4 addresses with --address; `ip -brief address` shows them",
        ) from None
    candidates = range(PORT, PORT + 100) if wanted is None else (wanted,)
    for port in candidates:
        if is_free(port):
            return port
    raise HostError(
        f"port {wanted or PORT} is in use", "give a free one with --port; `ss -ltnp` shows who has which"
    )


def announcement(spec: ClusterSpec, missing: Sequence[Step]) -> str:
    """What the demo is about to do and how long that takes."""
    seconds = sum(step.seconds for step in missing)
    first = (
        f"build {len(missing)} part{'s' * (len(missing) > 1)} into {cache.cache_root()}: "
        f"about {duration(seconds)} on two cores, once; "
        f"it takes up to {BUILD_BYTES // 2**30} GB of disk while it runs"
        if missing
        else f"nothing to build: all is in {cache.cache_root()}"
    )
    return (
        "GPU workspaces for JupyterHub, the whole product on this machine:\n"
        f"  1. {first}\n"
        f"  2. start Kubernetes with the nodes {', '.join(node.name for node in spec.nodes)},\n"
        "     JupyterHub and its proxy: under a minute\n"
        "The GPU driver below NVIDIA's device plugin is imitated and the notebook image stands on Debian "
        "instead of CUDA; all else is real.\n"
        "Ctrl-C ends it at any time and leaves nothing running; what is built stays.\n"
    )


def welcome(hub: Hub, catalog: Catalog) -> str:
    """Where to click."""
    teams = {group: team.display_name for team in catalog.teams.values() for group in team.groups}
    people = "\n".join(
        f"    {user.name:6} password: {user.password}   team: {teams[user.group]}" for user in USERS
    )
    return f"""
The hub is ready: {hub.url}

{people}

  1. Sign in as {ADA.name}, choose "GPU slice" and press Start. The first start on a node pulls the image.
  2. In a notebook: import os; os.environ["NVIDIA_VISIBLE_DEVICES"] is the slice that the device plugin gave.
  3. Sign in as {VERA.name} in a private window: the full card is greyed out and says why.
  4. File, Hub Control Panel, Stop My Server; start again: your files are still there.
  5. Services, in the hub's menu: what happens to idle workspaces and why, runs, and images on nodes. A "Short
     session" is warned one minute after its start.

  kubectl: KUBECONFIG={hub.cluster.kubeconfig} {hub.cluster.programs["kubectl"]} get pods -A
  logs:    {hub.cluster.logs_dir}

Ctrl-C stops everything.
"""


def watch(hub: Hub) -> None:
    """Wait for a signal to end; raises `DevClusterError` when the hub or the cluster breaks down."""
    while True:
        hub.check()
        time.sleep(WATCH_SECONDS)


def say(text: str, to: TextIO | None = None) -> None:
    """Print at once, also into a pipe."""
    print(text, file=to or sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main())
