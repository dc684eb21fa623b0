"""`gpu-workspaces render`: the catalog in the words of another system.

Shell: reads files, and writes one where asked to.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ..catalog.load import load_catalog
from ..catalog.model import Catalog
from ..errors import Finding, Severity
from ..render.baseline import bare_pod
from ..render.fragment import NOTEBOOK
from ..render.gpu_operator import render_gpu_operator
from ..render.kueue import render_kueue
from ..render.pod import UserFacts, apply, build_claim, build_fragment
from ..render.quotas import render_limit_ranges, render_resource_quotas
from ..render.target import Rendering
from ..render.workspacekind import render_workspace_kinds
from ..render.z2jh import render_z2jh
from ..selection import Refusal, select
from .catalogs import UsageError, add_catalog, add_person, day_of, options_of, person_of, read_source
from .files import read_yaml
from .preview import Baseline, read_baseline
from .report import Report

HELP = "render the catalog for another system"

Renderer = Callable[[Catalog, argparse.Namespace], Rendering]


def _pod(catalog: Catalog, args: argparse.Namespace) -> Rendering:
    """Render the pod that the spawner would create, and the claim of the home."""
    person = person_of(args)
    selection = select(catalog, person, options_of(args), today=day_of(args))
    if isinstance(selection, Refusal):
        refusal = Finding(severity=Severity.ERROR, code=selection.reason, message=selection.text)
        return Rendering(documents=(), findings=(refusal,))
    baseline = _baseline(args)
    claim_name = args.home_claim or baseline.home_claim
    user = UserFacts(name=person.name, team=selection.team, server_name=args.server, home_claim=claim_name)
    pod = apply(baseline.pod, build_fragment(catalog, selection.workspace, user))
    claim = build_claim(catalog, selection.workspace, user)
    return Rendering(documents=(pod,) if claim is None else (claim, pod))


def _baseline(args: argparse.Namespace) -> Baseline:
    if args.hub_config is not None:
        return read_baseline(args.hub_config, args.user, args.server)
    return Baseline(pod=_read_pod(args.baseline) if args.baseline else bare_pod(args.user, args.server))


def _read_pod(path: Path) -> dict[str, Any]:
    pod = read_yaml(path)
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        raise UsageError(f"{path}: this is not a Pod; write one with kind: Pod")
    spec = pod.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(containers, list) or not any(
        isinstance(one, dict) and one.get("name") == NOTEBOOK for one in containers
    ):
        raise UsageError(f"{path}: this pod has no container {NOTEBOOK!r} to put the profile on")
    return pod


TARGETS: Final[Mapping[str, Renderer]] = {
    "pod": _pod,
    "z2jh": lambda catalog, args: render_z2jh(catalog, read_source(args.catalog)),
    "gpu-operator": lambda catalog, args: render_gpu_operator(catalog, namespace=args.operator_namespace),
    "resourcequota": lambda catalog, _: render_resource_quotas(catalog),
    "limitrange": lambda catalog, _: render_limit_ranges(catalog),
    "kueue": lambda catalog, args: render_kueue(
        catalog, namespace=args.namespace, jobs_namespace=args.jobs_namespace
    ),
    "workspacekind": lambda catalog, _: render_workspace_kinds(catalog),
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)
    parser.add_argument("--target", required=True, choices=tuple(TARGETS), help="system to render for")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write here, not to standard output"
    )
    parser.add_argument("--namespace", help="the hub's namespace, for teams without one of their own")
    parser.add_argument("--jobs-namespace", help="the namespace of runs, for queues and priorities there")
    parser.add_argument(
        "--operator-namespace", default="gpu-operator", help="namespace of the GPU Operator (%(default)s)"
    )
    pod = parser.add_argument_group("target pod")
    add_person(pod)
    pod.add_argument("--server", default="", help="name of a named server")
    source = pod.add_mutually_exclusive_group()
    source.add_argument(
        "--hub-config",
        type=Path,
        metavar="FILE",
        help="put the profile on the pod of this jupyterhub_config.py; it is run, in a process of its own",
    )
    source.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="put the profile on this pod (YAML) instead of a bare one",
    )
    pod.add_argument("--home-claim", metavar="NAME", help="claim of the user's home, as the hub names it")


def run(args: argparse.Namespace) -> Report:
    catalog = load_catalog(args.catalog)
    rendering = TARGETS[args.target](catalog, args)
    text = rendering.to_yaml()
    if args.output is not None:
        args.output.write_text(text, encoding="utf-8")
        text = ""
    result = {"target": args.target, "documents": list(rendering.documents)}
    return Report(findings=rendering.findings, result=result, text=text, told=frozenset({Severity.NOTE}))
