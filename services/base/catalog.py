"""The catalog as its file says now: services follow its changes without a restart.

Shell: reads files.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from hub_ext.catalog.load import load_catalog
from hub_ext.catalog.model import Catalog
from hub_ext.errors import CatalogError

log = logging.getLogger(__name__)

_Print = tuple[tuple[str, int, int, int], ...]


class CatalogFile:
    """A catalog in a file or a folder, such as a mounted ConfigMap."""

    def __init__(self, path: Path) -> None:
        """Read it for the first time.

        Raises
        ------
        CatalogError
            It cannot be used.
        """
        self._path = path
        self._print = _fingerprint(path)
        self.catalog = load_catalog(path)
        """The last one that could be used."""
        self.problem = ""
        """What is wrong with the file as it is now; empty for nothing."""

    async def current(self) -> Catalog:
        """Give the catalog, read again if a file changed; a broken one leaves the one before it in force."""
        found = await asyncio.to_thread(_fingerprint, self._path)
        if found == self._print:
            return self.catalog
        self._print = found
        try:
            self.catalog = await asyncio.to_thread(load_catalog, self._path)
        except CatalogError as error:
            self.problem = str(error)
            log.error("catalog not taken over: path=%s problem=%s", self._path, error)
        else:
            self.problem = ""
            log.info("catalog read again: path=%s", self._path)
        return self.catalog


def _fingerprint(path: Path) -> _Print:
    """Say what would change with the content: a mounted ConfigMap changes by a link, not by a time."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = []
    for file in files:
        try:
            about = file.resolve().stat()
        except OSError:
            continue  # a file that comes or goes at this moment: the next look sees it
        found.append((str(file), about.st_ino, about.st_mtime_ns, about.st_size))
    return tuple(found)
