"""Read a catalog and report every mistake at once.

Pure but for one thin edge: `load_catalog` reads the files it is pointed at.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ..errors import CatalogError, Finding, Severity
from .expand import expand
from .model import Catalog


def load_catalog(source: Path | Mapping[str, Any]) -> Catalog:
    """Give the catalog of a file, a folder of files or a mapping (`custom.gpuWorkspaces` in z2jh).

    Raises
    ------
    CatalogError
        Carries all findings, the errors and what else there is to say.
    """
    data = source if isinstance(source, Mapping) else yaml.safe_load(source.read_text())
    try:
        catalog = Catalog.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise CatalogError(
            Finding(
                severity=Severity.ERROR,
                code=problem["type"],
                message=problem["msg"],
                path=".".join(map(str, problem["loc"])),
            )
            for problem in error.errors()
        ) from None
    return expand(catalog)
