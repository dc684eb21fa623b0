"""`gpu-workspaces preflight`: the launch checklist against a live cluster, or against files.

Shell: reads files, talks to the cluster, to Prometheus and to the hub.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.cli.catalogs import UsageError
from hub_ext.cli.files import read_text, read_yaml
from hub_ext.cli.report import Report, table
from hub_ext.errors import Severity
from hub_ext.managed import declared, known
from hub_ext.render.rights import PULLS, RUNS
from hub_ext.rights import HUB, Rights

from ..kube import Kube
from ..prometheus import Prometheus
from .ask_hub import ask_hub, ask_running
from .attempts import attempts
from .checks import CHECKS
from .gather import look, measure, read_dump, save
from .page import NEEDS
from .problems import Outcome, Result, judge
from .scene import HubFacts, Objects, Scene, ServerKey, merged
from .trials import try_pods

HELP = "say what is missing or wrong on a cluster and in a hub's values, before users find out"

TOKEN: Final = "JUPYTERHUB_API_TOKEN"  # noqa: S105 - the variable's name

SIGNS = {
    Outcome.PASSED: "ok",
    Outcome.WARNED: "warning",
    Outcome.FAILED: "FAILED",
    Outcome.NOT_CHECKED: "not checked",
}

WORST_LAST = (Outcome.PASSED, Outcome.NOT_CHECKED, Outcome.WARNED, Outcome.FAILED)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="file or folder of `kubectl get … -o json` instead of a live cluster; may be repeated",
    )
    parser.add_argument(
        "--complete", action="store_true", help="kinds that no file has are empty, not unknown"
    )
    parser.add_argument(
        "--offline", action="store_true", help="ask no cluster: check values and catalog alone"
    )
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep what the live cluster said")
    parser.add_argument(
        "-f",
        "--values",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="values of the chart, in the order in which Helm gets them; may be repeated",
    )
    parser.add_argument("--catalog", type=Path, help="catalog, if it is not in the values")
    parser.add_argument("--prometheus", metavar="URL", help="Prometheus that has the exporter's metrics")
    parser.add_argument(
        "--hub",
        metavar="URL",
        help="address of the running hub, as people use it; needs a token, such as an admin's",
    )
    parser.add_argument(
        "--hub-token-file", type=Path, metavar="FILE", help="file with that token (JUPYTERHUB_API_TOKEN)"
    )
    parser.add_argument(
        "--no-dry-run", action="store_true", help="ask the API server about no pods; it makes none either way"
    )
    parser.add_argument("--namespace", default="jupyterhub", help="where workspaces run (%(default)s)")
    parser.add_argument("--hub-namespace", default="", help="where the hub runs (the same)")
    parser.add_argument("--jobs-namespace", default=RUNS, help="where runs are (%(default)s)")
    parser.add_argument("--pulls-namespace", default=PULLS, help="where images are fetched (%(default)s)")
    parser.add_argument(
        "--service",
        action="append",
        default=[],
        metavar="NAME",
        help="service that is checked beside the hub, instead of those in the values; may be repeated",
    )


def run(args: argparse.Namespace) -> Report:
    if args.save and (args.cluster or args.offline):
        raise UsageError("--save keeps what a live cluster says; with --cluster or --offline none is asked")
    layers = tuple((str(path), _read(path)) for path in args.values)
    values = merged(layer for _, layer in layers) if layers else None
    args.service = args.service or _services(values)
    scene = Scene(
        objects=Objects({}),
        namespace=args.namespace,
        hub_namespace=args.hub_namespace or args.namespace,
        jobs_namespace=args.jobs_namespace,
        pulls_namespace=args.pulls_namespace,
        catalog=_catalog(args.catalog, values),
        values=values,
        layers=layers,
        rights=_rights(args.service),
    )
    seen, denied = asyncio.run(_observe(args, scene))
    return report([judge(check, seen) for check in CHECKS], denied)


async def _observe(args: argparse.Namespace, scene: Scene) -> tuple[Scene, Mapping[str, str]]:
    """Add to a scene what is to be asked for; gives with it what may not be seen, and why."""
    denied: dict[str, str] = {}
    if args.prometheus:
        async with Prometheus(args.prometheus) as prometheus:
            scene = replace(scene, metrics=await measure(prometheus))
    if args.hub:
        facts, denied = await ask_hub(args.hub, _token(args.hub_token_file), args.service)
        scene = replace(scene, hub=facts)
    if args.cluster or args.offline:
        return replace(scene, objects=read_dump(args.cluster, complete=args.complete)), denied
    async with await Kube.connect(_environment(os.environ)) as kube:
        objects, hub = await _look(args, kube, scene.hub, denied)
        scene = replace(scene, objects=objects, hub=hub)
        if args.save:
            save(objects, args.save)
        if scene.catalog is not None and not args.no_dry_run:
            trials, why_not = await try_pods(kube, list(attempts(scene)))
            denied |= {"trials": why_not} if why_not else {}
            scene = replace(scene, trials=trials or None)
    return scene, denied


async def _look(
    args: argparse.Namespace, kube: Kube, hub: HubFacts | None, denied: dict[str, str]
) -> tuple[Objects, HubFacts | None]:
    """Look at the cluster, and ask the hub before and after: what begins or ends meanwhile is in one of both.

    Adds to `denied` what may not be seen.
    """
    before = await _running(args, denied) if hub else None
    objects, unseen = await look(kube)
    denied.update(unseen)
    after = None if before is None else await _running(args, denied)
    if hub is not None and before is not None and after is not None:
        hub = replace(hub, running=before | after)
    return objects, hub


async def _running(args: argparse.Namespace, denied: dict[str, str]) -> frozenset[ServerKey] | None:
    return await ask_running(args.hub, _token(args.hub_token_file), denied)


def _environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Give the variables that say where the cluster is; where none does, the file that kubectl takes."""
    usual = Path(environment.get("HOME", "/nonexistent"), ".kube", "config")
    if environment.get("KUBECONFIG") or environment.get("KUBERNETES_SERVICE_HOST") or not usual.exists():
        return environment
    return {**environment, "KUBECONFIG": str(usual)}


def _token(path: Path | None) -> str:
    token = read_text(path) if path else os.environ.get(TOKEN, "")
    if not token.strip():
        raise UsageError(
            f"--hub needs a token of the hub: in {TOKEN}, or in a file with --hub-token-file; "
            "a hub's page Token makes one"
        )
    return token.strip()


def _read(path: Path) -> Mapping[str, Any]:
    found = read_yaml(path)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise UsageError(f"{path}: values are keys and values")
    return found


def _catalog(path: Path | None, values: Mapping[str, Any] | None) -> Catalog | None:
    """Read the catalog; raises `CatalogError` with all that is wrong with it."""
    if path is not None:
        return load_catalog(path)
    custom = (values or {}).get("custom")
    found = custom.get("gpuWorkspaces") if isinstance(custom, Mapping) else None
    return load_catalog(found) if isinstance(found, Mapping) else None


def _services(values: Mapping[str, Any] | None) -> list[str]:
    """Name the services of this bundle that values give the hub."""
    hub = (values or {}).get("hub")
    services = hub.get("services") if isinstance(hub, Mapping) else None
    return [name for name in known() if isinstance(services, Mapping) and name in services]


def _rights(services: Iterable[str]) -> tuple[Rights, ...]:
    return (HUB, *(declared(name)[1] for name in services))


def report(results: Sequence[Result], denied: Mapping[str, str]) -> Report:
    """Tell what came of all checks: for people with what is wrong at the end, where they look first."""
    ordered = sorted(results, key=lambda one: WORST_LAST.index(one.outcome))
    rows = [(SIGNS[one.outcome], one.check.code, _told(one, denied)) for one in ordered]
    findings = [observation for one in ordered for observation in one.observations]
    counts = {outcome: sum(one.outcome is outcome for one in results) for outcome in Outcome}
    summary = ", ".join(f"{number} {SIGNS[outcome].lower()}" for outcome, number in counts.items() if number)
    data = [
        {
            "check": one.check.code,
            "title": one.check.title,
            "outcome": one.outcome.value,
            "missing": list(one.missing),
        }
        for one in results
    ]
    return Report(
        findings=findings,
        result={"checks": data, "denied": dict(denied)},
        text="\n\n".join([table([("outcome", "check", "what holds"), *rows]), *map(str, findings), summary]),
        told=frozenset(Severity),
    )


def _told(result: Result, denied: Mapping[str, str]) -> str:
    if not result.missing:
        return result.check.title
    needs = [f"{NEEDS.get(need, need)}{' (may not be seen)' * (need in denied)}" for need in result.missing]
    return f"{result.check.title}; needs {', '.join(needs)}"
