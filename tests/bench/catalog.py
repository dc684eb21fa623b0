"""How long it takes to check a catalog, part by part: `python -m tests.bench.catalog [VERSIONS]`.

Processor time, the best of three: other work on the machine does not count. Nothing here is asserted.
"""

import sys
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from hub_ext.catalog.expand import expand
from hub_ext.catalog.load import examine
from hub_ext.catalog.lock import format_lock, lock_of, parse_lock
from hub_ext.catalog.model import Catalog
from hub_ext.catalog.source import read_text

CLEAN = Path(__file__).parents[1] / "unit" / "catalog" / "clean.yaml"


def large(versions: int) -> dict[str, Any]:
    """Make a catalog of so many versions out of the tests' clean one."""
    catalog: dict[str, Any] = read_text(CLEAN.read_text(encoding="utf-8"))[0].data
    templates = [profile for profile in catalog["profiles"] if "replacedBy" not in profile]
    profiles = []
    for index in range(versions):
        profile = deepcopy(templates[index % len(templates)])
        profile["version"] = 10 + index // len(templates)
        profiles.append(profile)
    return {**catalog, "profiles": profiles}


def best(task: Callable[[], object]) -> float:
    """Give the processor time of the fastest of three runs, in seconds."""
    times = []
    for _ in range(3):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    versions = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    text = yaml.safe_dump(large(versions), sort_keys=False, allow_unicode=True)
    data = read_text(text)[0].data
    catalog = Catalog.model_validate(data, by_alias=True, by_name=False)
    lock = format_lock(lock_of(expand(catalog)))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "catalog.yaml"
        file.write_text(text, encoding="utf-8")
        parts = {
            "read YAML": lambda: read_text(text),
            "check the shape": lambda: Catalog.model_validate(data, by_alias=True, by_name=False),
            "write out": lambda: expand(catalog),
            "hold against a lock": lambda: (lock_of(expand(catalog)), parse_lock(lock)),
            "all of it, without lock": lambda: examine(file),
        }
        print(f"{versions} versions, {text.count(chr(10))} lines")
        for name, task in parts.items():
            print(f"  {name:25} {best(task):6.3f} s")


if __name__ == "__main__":
    main()
