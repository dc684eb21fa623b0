"""Write the JSON Schema and the reference page beside the models they come from.

Run ``python -m hub_ext.catalog.publish`` after a change of the models; a test compares.

Shell: writes two files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from .reference import SCHEMA_FILE, reference
from .schema import json_schema

HERE: Final = Path(__file__).parent


def published() -> dict[Path, str]:
    """Give each file and what must stand in it."""
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False)
    return {HERE / SCHEMA_FILE: f"{schema}\n", HERE / "REFERENCE.md": reference()}


def main() -> None:
    """Write both files."""
    for path, text in published().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
