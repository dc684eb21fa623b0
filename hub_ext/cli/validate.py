"""`gpu-workspaces validate`: every mistake of a catalog at once.

Shell: reads files.
"""

import argparse
from collections import Counter

from ..catalog.load import load_catalog
from ..catalog.model import Catalog
from .catalogs import add_catalog
from .report import Report, count

HELP = "check a catalog and say everything that is wrong with it"


def configure(parser: argparse.ArgumentParser) -> None:
    add_catalog(parser)


def run(args: argparse.Namespace) -> Report:
    catalog = load_catalog(args.catalog)
    return Report(result=_summary(catalog), text=f"{args.catalog}: {_sentence(catalog)}")


def _summary(catalog: Catalog) -> dict[str, int]:
    return {
        "profiles": len({profile.name for profile in catalog.profiles}),
        "versions": len(catalog.profiles),
        "images": len(catalog.images),
        "pools": len(catalog.pools),
        "teams": len(catalog.teams),
    }


def _sentence(catalog: Catalog) -> str:
    states = Counter(profile.state.value for profile in catalog.profiles)
    versions = ", ".join(f"{number} {state}" for state, number in states.items())
    parts = [count(number, noun[:-1]) for noun, number in _summary(catalog).items() if noun != "versions"]
    return f"{', '.join(parts)} ({versions}); no mistakes"
