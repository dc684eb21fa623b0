"""`gpu-workspaces phases`: where the time of starts goes, or why one of them waits.

Shell: reads files and the clock.
"""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..audit import read_records
from ..cluster.kinds import Kind
from ..cluster.phases import Phase, split
from ..cluster.pods import Pod
from ..cluster.starts import Summary, summarize
from ..cluster.state import ClusterState
from ..cluster.waiting import explain
from ..cluster.waits import Around
from ..errors import Finding, Severity
from ..quota.demand import Weights
from .catalogs import UsageError
from .cluster_files import load_state
from .files import read_text
from .report import Report, table

HELP = "say where the time of starts goes, or why one of them waits"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "log",
        nargs="*",
        type=Path,
        metavar="LOG",
        help="file of starts that the hub keeps; several are joined",
    )
    parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="instead: what `kubectl get pods,events,nodes -o yaml` wrote, to take its starts apart",
    )
    parser.add_argument("--pod", default="", metavar="NAME", help="with --cluster: this pod only")
    parser.add_argument(
        "--now",
        type=datetime.fromisoformat,
        metavar="TIME",
        help="with --cluster: judge as of this moment, with its time zone (default: now)",
    )


def run(args: argparse.Namespace) -> Report:
    if bool(args.log) == bool(args.cluster):
        raise UsageError("name either the hub's log of starts or files of a cluster (--cluster)")
    return _from_cluster(args) if args.cluster else _from_log(args.log)


def _from_log(paths: Sequence[Path]) -> Report:
    records = []
    for path in paths:
        records += list(read_records(read_text(path).splitlines(), name=str(path)))
    summaries = summarize(records)
    text = _table(summaries) if summaries else "No start was recorded."
    return Report(result={"starts": [one.as_dict() for one in summaries]}, text=text)


def _table(summaries: Sequence[Summary]) -> str:
    head = ("profile", "pool", "n", "failed", "warm", "P50", "P95", "most time in")
    rows = [
        (
            one.profile,
            one.pool or "-",
            str(one.number),
            _failed(one),
            str(one.warm),
            _seconds(one.p50),
            _seconds(one.p95),
            _phases(one),
        )
        for one in summaries
    ]
    return table([head, *rows])


def _failed(one: Summary) -> str:
    reasons = ", ".join(f"{number}x {word}" for word, number in one.reasons.items())
    return f"{one.failed} ({reasons})" if reasons else "0"


def _phases(one: Summary) -> str:
    ranked = sorted(one.phases.items(), key=lambda item: -item[1][0])
    return ", ".join(f"{name} {_seconds(low)}" for name, (low, _) in ranked if low > 0) or "-"


def _seconds(value: float | None) -> str:
    """Write seconds no finer than they are known; a percentile among the failed ones has no value."""
    if value is None:
        return "never"
    return "<1 s" if value < 1 else f"{round(value)} s"


def _from_cluster(args: argparse.Namespace) -> Report:
    now = args.now or datetime.now(tz=UTC)
    if now.tzinfo is None:
        raise UsageError(f"--now {now.isoformat()}: say the time zone, such as +00:00")
    state = load_state(args.cluster, Weights(by_pool={}, by_resource={}), now)
    snapshot = state.snapshot(now)
    pods = [pod for pod in snapshot.pods.values() if args.pod in {"", pod.name}]
    if not pods:
        raise UsageError(f"no pod {args.pod!r} in these files" if args.pod else "no pod in these files")
    told = [_tell(pod, state, now) for pod in pods]
    findings = [
        Finding(
            severity=Severity.ERROR,
            code=one["wait"]["reason"],
            message=f"{one['pod']}: {one['wait']['text']}",
        )
        for one in told
        if one["wait"]["fatal"]
    ]
    text = "\n".join(f"{one['pod']}: {one['wait']['text']}\n{_parts(one['phases'])}" for one in told)
    return Report(findings=findings, result={"pods": told}, text=text)


def _tell(pod: Pod, state: ClusterState, now: datetime) -> dict[str, Any]:
    snapshot, events = state.snapshot(now), state.events.of(pod.uid)
    node = snapshot.node_of(pod)
    around = Around(now=now, node=node, workload=snapshot.workload_of(pod))
    notebook = pod.notebook
    ready = pod.condition("Ready")
    ended = ready.since if ready and ready.status and ready.since else now
    if notebook is not None and notebook.started is not None:
        ended = max(notebook.started, min(ended, now))
    made = split(pod, events, requested=pod.created, ended=ended, node=node)
    return {
        "pod": f"{pod.namespace}/{pod.name}",
        "wait": explain(pod, events, around).as_dict(),
        "seconds": made.total.total_seconds(),
        "phases": {phase.value: part.total_seconds() for phase, part in made.parts.items()},
        "warm": made.warm,
        "eventsSeen": len(events),
        "nodesSeen": (Kind.NODES, "") in snapshot.visible,
    }


def _parts(phases: dict[str, float]) -> str:
    rows = [(f"  {phase.value}", _seconds(phases[phase.value])) for phase in Phase if phase.value in phases]
    return table(rows) if rows else ""
