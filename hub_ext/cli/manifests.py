"""`gpu-workspaces manifests`: what an installation has beside the chart, from one short file.

Shell: reads files.
"""

import argparse
import importlib
import importlib.util
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ..catalog.load import load_catalog
from ..errors import Finding, Severity
from ..importer.values import helm_merge
from ..install.manifests import build_manifests
from ..install.model import Description, Installation
from ..install.values import build_values
from ..managed import declared
from ..render.documents import to_yaml
from ..rights import Rights
from .files import read_yaml
from .report import Report

HELP = "print what an installation has beside the chart: manifests, or the chart's values about services"
PARTS: Final = ("manifests", "values")
FILES: Final = "files"
"""Prints the arguments for Helm, and for preflight, that name the files of values."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("installation", type=Path, help="YAML file that describes the installation")
    parser.add_argument(
        "--part", choices=(*PARTS, FILES), default=PARTS[0], help="what is printed (%(default)s)"
    )


def run(args: argparse.Namespace) -> Report:
    try:
        installation = read_installation(args.installation)
        if args.part == FILES:
            paths = [str(args.installation.parent / file) for file in installation.values]
            return Report(result=paths, text=" ".join(f"--values {shlex.quote(path)}" for path in paths))
        documents = render(installation, args.installation.parent, args.part)
    except ValidationError as error:
        return Report(findings=[_finding(args.installation, one) for one in error.errors()], failed=True)
    return Report(result=documents, text=to_yaml(*documents))


def read_installation(path: Path) -> Installation:
    """Read the description of an installation, and what its catalog and its services make of it.

    Raises
    ------
    UsageError
        It is no YAML.
    ValidationError
        It says what does not make sense.
    CatalogError
        The catalog is wrong, or there is no such service.
    """
    description = Description.model_validate(read_yaml(path), by_alias=True, by_name=False)
    return complete(Installation.of(description, load_catalog(path.parent / description.catalog)))


def complete(installation: Installation) -> Installation:
    """Give an installation whose services' settings also say what follows from where everything is.

    Raises
    ------
    CatalogError
        There is no such service.
    """
    services = {
        name: entry.model_copy(update={"settings": helm_merge(_defaults(installation, name), entry.settings)})
        for name, entry in installation.services.items()
    }
    return installation.model_copy(update={"services": services})


def _defaults(installation: Installation, name: str) -> dict[str, Any]:
    module = _brought(declared(name)[0])
    made: dict[str, Any] = module.defaults(installation) if hasattr(module, "defaults") else {}
    return made


def render(installation: Installation, folder: Path, part: str) -> list[dict[str, Any]]:
    """Give manifests or values; `folder` is what paths in the description are from.

    Raises
    ------
    CatalogError
        The catalog is wrong, or there is no such service.
    """
    rights: dict[str, tuple[str, Rights]] = {name: declared(name) for name in installation.services}
    if part == "values":
        return [build_values(installation, rights)]
    own = {name: brought_by(rights[name][0], entry.settings) for name, entry in installation.services.items()}
    catalog = _catalog_text(folder / installation.catalog)
    return build_manifests(installation, rights, catalog=catalog, own=own)


def brought_by(package: str, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give what the package of a service brings itself: `manifests(settings)` of its module `installation`.

    Raises
    ------
    ValidationError
        The settings are wrong.
    """
    module = _brought(package)
    found: list[dict[str, Any]] = module.manifests(settings) if hasattr(module, "manifests") else []
    return found


def _brought(package: str) -> Any:
    """Give the module `installation` of a service's package; None if it has none."""
    if importlib.util.find_spec(f"{package}.installation") is None:
        return None
    return importlib.import_module(f"{package}.installation")


def _catalog_text(path: Path) -> str:
    """Give the catalog alone, without the values that it may stand in."""
    found = read_yaml(path)
    return to_yaml(found.get("custom", {}).get("gpuWorkspaces", found))


def _finding(path: Path, details: Any) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        code="bad-installation",
        message=details["msg"],
        path=".".join(map(str, details["loc"])),
        file=str(path),
    )
