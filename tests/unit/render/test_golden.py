"""Each target as a whole, and that the same catalog always gives the same bytes."""

import subprocess
import sys
from pathlib import Path

import pytest

from hub_ext.catalog.compose import combinations, compose
from hub_ext.catalog.load import load_catalog
from hub_ext.cli.app import main
from hub_ext.render.pod import UserFacts, apply, build_claim, build_fragment
from hub_ext.render.target import Rendering

CATALOG = Path(__file__).parents[2] / "golden" / "catalog.yaml"
TARGETS = ["z2jh", "gpu-operator", "resourcequota", "limitrange", "kueue", "workspacekind"]
USER = UserFacts(name="Ada Lovelace", team="nlp", server_name="", home_claim="claim-ada")


@pytest.mark.parametrize("target", TARGETS)
def test_target(target, golden, capsys):
    assert main(["render", str(CATALOG), "--target", target]) == 0
    golden(f"{target}.yaml", capsys.readouterr().out)


WORKSPACES = [
    pytest.param(profile.key, picks, id=f"{profile.name}-v{profile.version}-{number}")
    for profile in load_catalog(CATALOG).profiles
    for number, picks in enumerate(combinations(profile))
]


@pytest.mark.parametrize(("key", "picks"), WORKSPACES)
def test_pod(key, picks, catalog, baseline, golden, request):
    workspace = compose(catalog, catalog.by_key[key], picks)
    pod = apply(baseline, build_fragment(catalog, workspace, USER))
    claim = build_claim(catalog, workspace, USER)
    documents = (pod,) if claim is None else (claim, pod)
    golden(f"pods/{request.node.callspec.id}.yaml", Rendering(documents=documents).to_yaml())


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_input_gives_the_same_bytes(target):
    """In processes of their own, so that the order of sets and hashes differs."""
    command = [sys.executable, "-m", "hub_ext.cli", "render", str(CATALOG), "--target", target, "--json"]
    outputs = {
        subprocess.run(command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
