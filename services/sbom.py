"""What is in an image, as a CycloneDX document: ``python -m services.sbom NAME [FOLDER …]``.

Lists Python packages in the folders (those of this interpreter, if none is given) and Debian's packages, by
what their installers have written down. No time and no random number is in it: the same image has the same
document.

Source: CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/), package URLs (https://github.com/package-url/purl-spec).

Shell in two functions: `python_packages` and `debian_packages` read what is installed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

DPKG: Final = Path("/var/lib/dpkg/status")
SYSTEM: Final = Path("/etc/os-release")


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """One package that is installed."""

    purl: str
    name: str
    version: str
    license: str = ""
    """SPDX expression; empty if the package does not say one."""


def build_sbom(name: str, packages: Iterable[Package]) -> dict[str, Any]:
    """Build the document, packages in the order of their addresses, each once."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": name}},
        "components": [_component(one) for one in sorted(set(packages))],
    }


def _component(package: Package) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
    }
    return {**made, "licenses": [{"expression": package.license}]} if package.license else made


def python_packages(folders: Sequence[str]) -> Iterator[Package]:
    """List the packages that `pip list` would."""
    for one in distributions(path=list(folders)):
        name = re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
        spdx = str(one.metadata.json.get("license_expression", ""))
        yield Package(f"pkg:pypi/{name}@{quote(one.version)}", name, one.version, spdx)


def debian_packages(status: Path = DPKG, system: Path = SYSTEM) -> Iterator[Package]:
    """List the packages that `dpkg --list` calls installed; none on another system."""
    if not status.exists():
        return
    found = re.search(r"^ID=\"?([\w.-]+)", system.read_text(encoding="utf-8"), re.MULTILINE)
    vendor = found[1] if found else "debian"
    for paragraph in status.read_text(encoding="utf-8", errors="replace").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"\w[\w-]*: ", line))
        if fields.get("Status") == "install ok installed":
            name, version, arch = fields["Package"], fields["Version"], fields["Architecture"]
            yield Package(f"pkg:deb/{vendor}/{quote(name)}@{quote(version)}?arch={arch}", name, version)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the document; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m services.sbom", description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of the image")
    parser.add_argument("folders", nargs="*", help="with Python packages; those of this interpreter if none")
    options = parser.parse_args(arguments)
    packages = [*python_packages(options.folders or sys.path), *debian_packages()]
    json.dump(build_sbom(options.name, packages), sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
