"""The process that owns one cluster: parent of all its programs, which end with it.

Started as `python -m tests.devcluster.supervisor <name lock> [--until-stdin-ends] <state folder>` by
`tests.devcluster.client`, which wrote the cluster file there; or called in the foreground.

Shell: starts, watches and stops everything.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from tests.devcluster import build, claims, control, host
from tests.devcluster.addon import Loaded, load_addons
from tests.devcluster.bringup import NODE_TOOLS, Bringup, wanted_programs
from tests.devcluster.cache import cache_root
from tests.devcluster.cluster import Cluster
from tests.devcluster.errors import DevClusterError, ProcessDiedError
from tests.devcluster.processes import Processes
from tests.devcluster.record import Phase, Record, Status
from tests.devcluster.report import Report
from tests.devcluster.spec import ClusterSpec
from tests.devcluster.sweep import Sweeper, sweep, sweep_dead

SPEC_FILE = "spec.json"
WATCH_SECONDS = 0.5


class Stop(BaseException):
    """Somebody asked for the end. Not an `Exception`: no handler on the way takes it for a failure."""


class Supervisor:
    """One cluster's owner; `run` returns when the cluster is stopped and cleared up."""

    def __init__(self, state_dir: Path, name_lock: int, report: Report) -> None:
        self._state_dir = state_dir
        self._name_lock = name_lock
        self._report = report
        self._processes: Processes | None = None
        self._sweeper: Sweeper | None = None
        """Kept for as long as this process lives."""

    def run(self) -> int:
        """Bring the cluster up, keep it until asked to end; returns an exit code."""
        try:
            self._clear()
            self._state(Phase.STARTING)
            self._bring_up()
            self._state(Phase.READY)
            self._report.say("cluster is ready")
            self._watch()
        except Stop:
            self._report.say("stopping")
            self._state(Phase.STOPPED)
        except (DevClusterError, build.BuildError) as error:
            self._report.say(f"FAILED: {error}")
            self._state(Phase.FAILED, str(error))
            return 1
        except Exception as error:
            self._state(Phase.FAILED, f"a fault of the supervisor itself: {error!r}")
            raise
        finally:
            ignore_signals()
            self._end()
        return 0

    def _clear(self) -> None:
        """Remove what killed clusters left, this one's predecessor first."""
        sweep(self._state_dir)
        sweep_dead()

    def _bring_up(self) -> None:
        spec = ClusterSpec.model_validate_json((self._state_dir / SPEC_FILE).read_text())
        host.check_host(spec, cache_root())
        if spec.nodes:
            build.ensure_tools(NODE_TOOLS)
        addresses, slot_lock = claims.claim_slot(spec.size)
        self._sweeper = Sweeper(self._state_dir, [self._name_lock, slot_lock])
        if spec.nodes:
            claims.limits().hold(self._state_dir.name)
        addons = load_addons(spec.addons)
        programs = build_programs(spec, addons)
        record = Record(
            name=self._state_dir.name,
            spec=spec,
            state_dir=self._state_dir,
            slot=addresses.slot,
            programs=programs,
        )
        record.save()
        cluster = Cluster(record)
        self._processes = cluster.processes
        control.serve(self._state_dir, cluster.processes)
        Bringup(cluster, addons, self._report).run()

    def _watch(self) -> NoReturn:
        """Note programs that die, and that they were started again; only a signal ends it."""
        noted = ""
        while True:
            dead = "\n".join(self._deaths())
            if dead != noted:
                noted = dead
                self._report.say(dead or "all programs run again")
                self._state(Phase.READY, dead)
            time.sleep(WATCH_SECONDS)

    def _deaths(self) -> Iterator[str]:
        for process in self._processes.all() if self._processes else []:
            try:
                process.check()
            except ProcessDiedError as error:
                yield str(error)

    def _end(self) -> None:
        if self._processes is not None:
            self._processes.stop_all()
        sweep(self._state_dir)
        self._report.say("all is cleared up")

    def _state(self, phase: Phase, message: str = "") -> None:
        Status(phase=phase, message=message, supervisor=os.getpid()).save(self._state_dir)


def build_programs(spec: ClusterSpec, addons: list[Loaded]) -> dict[str, Path]:
    """Have everything built and installed that the cluster needs; returns the programs by plain name."""
    build.ensure_tools([tool for addon in addons for tool in addon.tools])
    wanted = wanted_programs(spec, addons)
    built = build.ensure(wanted.values())
    return {name: built[full_name] for name, full_name in wanted.items()}


def stop_on_signals() -> None:
    """Make the main thread raise `Stop` on the first signal to end."""

    def stop(number: int, frame: types.FrameType | None) -> NoReturn:
        ignore_signals()
        raise Stop

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def when_stdin_ends(act: Callable[[], None]) -> None:
    """Call `act` in a thread when the process that holds standard input's other end is gone."""

    def wait() -> None:
        sys.stdin.buffer.read()
        act()

    threading.Thread(target=wait, daemon=True, name="owner").start()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.devcluster.supervisor")
    parser.add_argument("--until-stdin-ends", action="store_true")
    parser.add_argument("name_lock", type=int)
    parser.add_argument("state_dir", type=Path)
    options = parser.parse_args()
    os.set_inheritable(options.name_lock, False)
    stop_on_signals()
    if options.until_stdin_ends:
        when_stdin_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
    return Supervisor(options.state_dir, options.name_lock, Report(sys.stdout)).run()


def end(code: int) -> NoReturn:
    """End this process at once: threads of a start that was given up may wait for what never comes.

    What they still made since is the sweeper's to remove.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    end(main())
