"""`gpu-workspaces quota`: who uses how much of what they may, and whether one more would fit.

Shell: reads files and the clock.
"""

import argparse
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..catalog.load import load_catalog
from ..cluster import nodes
from ..cluster.offer import Offer, Rules, View, judge, summary
from ..cluster.snapshot import Snapshot
from ..cluster.state import ClusterState
from ..cluster.supplies import Supplies
from ..errors import Finding, Severity
from ..gpu.resources import is_accelerator
from ..quota import namespace, texts
from ..quota.arithmetic import Amount
from ..quota.demand import weights_of
from ..quota.usage import Owner
from ..quota.verdicts import Scope, plain
from ..selection import Refusal, select
from .catalogs import UsageError, add_catalog, add_person, day_of, options_of, person_of
from .cluster_files import load_state
from .report import Report, table

HELP = "say who uses how much of what they may, and whether one more workspace would fit"


def configure(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="what `kubectl get pods,nodes,resourcequotas,limitranges -o yaml` wrote; may be repeated",
    )
    parser.add_argument(
        "--now",
        type=datetime.fromisoformat,
        metavar="TIME",
        help="judge as of this moment, with its time zone (default: now)",
    )
    parser.add_argument("--namespace", default="", help="where the workspace would be, to ask its quotas too")
    add_person(parser)


def run(args: argparse.Namespace) -> Report:
    catalog = load_catalog(args.catalog)
    rules = Rules(catalog=catalog, weights=weights_of(catalog))
    now = args.now or datetime.now(tz=UTC)
    if now.tzinfo is None:
        raise UsageError(f"--now {now.isoformat()}: say the time zone, such as +00:00")
    if not args.cluster and not args.profile:
        raise UsageError("who uses how much stands in files of a cluster: name them with --cluster")
    state = load_state(args.cluster, rules.weights, now)
    snapshot = state.snapshot(now)
    if not args.profile:
        return _overview(rules, state, snapshot)
    person = person_of(args)
    selection = select(catalog, person, options_of(args), today=day_of(args))
    if isinstance(selection, Refusal):
        finding = Finding(severity=Severity.ERROR, code=selection.reason, message=selection.text)
        return Report(findings=[finding], result={"allowed": False, "reason": selection.reason})
    owner = Owner(user=person.name, team=selection.team or "")
    usage = state.observed.usage(owner)
    offer = judge(
        selection.workspace,
        owner.team,
        rules=rules,
        usage=usage,
        view=View(snapshot=snapshot, supplies=Supplies(), namespace=args.namespace),
    )
    return _verdict(offer)


def _verdict(offer: Offer) -> Report:
    result = offer.as_dict()
    if offer.refusal is None:
        return Report(result=result, text=f"It may start: {summary(offer) or 'nothing bounds it.'}")
    finding = Finding(
        severity=Severity.ERROR,
        code=offer.refusal.reason.value,
        message=offer.refusal.text,
        help=offer.refusal.detail,
    )
    return Report(findings=[finding], result=result)


def _overview(rules: Rules, state: ClusterState, snapshot: Snapshot) -> Report:
    rows = list(_rows(rules, state))
    found = [
        *nodes.findings((snapshot.nodes or {}).values(), now=snapshot.taken),
        *namespace.findings(list(snapshot.quotas.values()), offered=_offered(rules, snapshot)),
    ]
    written = [(row["who"], texts.amount(row["resource"], row["limit"]), _used(row)) for row in rows]
    text = table([("who", "may use", "uses"), *written]) if rows else "The catalog limits nobody."
    data = [{**row, "used": plain(row["used"]), "limit": plain(row["limit"])} for row in rows]
    return Report(findings=found, result={"limits": data}, text=text)


def _used(row: Mapping[str, Any]) -> str:
    over = "  (over the limit)" if row["used"] > row["limit"] else ""
    return f"{texts.amount(row['resource'], row['used'])}{over}"


def _rows(rules: Rules, state: ClusterState) -> Iterator[dict[str, Any]]:
    """List what bounds all, each team, and each member who uses some of it."""
    together = {limit.scope: limit.bound for limit in rules.limits("")}
    used = state.observed.usage(Owner(user="")).cluster
    yield from _lines("all users together", together.get(Scope.CLUSTER, {}), used)
    for team in rules.catalog.teams:
        limits = {limit.scope: limit.bound for limit in rules.limits(team)}
        usage = state.observed.usage(Owner(user="", team=team))
        yield from _lines(f"team {team}", limits.get(Scope.TEAM, {}), usage.team)
        for owner in sorted(state.observed.owners(), key=lambda one: one.user):
            if owner.team == team:
                used = state.observed.usage(owner).user
                yield from _lines(f"{owner.user} in {team}", limits.get(Scope.USER, {}), used)


def _lines(who: str, bound: Mapping[str, Amount], used: Any) -> Iterator[dict[str, Any]]:
    for resource, limit in bound.items():
        yield {"who": who, "resource": resource, "limit": limit, "used": used[resource]}


def _offered(rules: Rules, snapshot: Snapshot) -> list[str]:
    """Name the accelerators that pools or nodes offer."""
    named = {resource for _, resource in rules.weights.by_pool}
    for node in (snapshot.nodes or {}).values():
        named |= {name for name in node.allocatable if is_accelerator(name)}
    return sorted(named)
