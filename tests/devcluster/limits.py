"""Limits of the whole machine that a few kubelets exhaust: raised while any cluster has nodes, then put back.

A note among the clusters' locks says which values were found and which clusters need the higher ones.

Shell: reads and writes kernel settings.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.devcluster.errors import HostError

SETTINGS: Mapping[str, int] = {"fs/inotify/max_user_instances": 8192, "fs/inotify/max_user_watches": 524288}
"""The least that is wanted. The usual 128 instances are enough for some eight nodes."""
ROOT = Path("/proc/sys")


@dataclass(frozen=True)
class Limits:
    """The machine's limits, and the note about them."""

    note: Path
    root: Path = ROOT

    def hold(self, name: str) -> None:
        """Raise the limits for a cluster; raises `HostError` where the kernel does not allow it."""
        with self._noted() as (found, holders):
            for setting, wanted in SETTINGS.items():
                before = self._read(setting)
                if before < wanted:
                    self._write(setting, wanted)
                    found.setdefault(setting, before)
            if name not in holders:
                holders.append(name)

    def release(self, name: str, *, is_up: Callable[[str], bool]) -> None:
        """Put back what was found, unless another cluster that is up still needs the higher limits."""
        if not self.note.exists():
            return
        with self._noted() as (found, holders):
            holders[:] = [other for other in holders if other != name and is_up(other)]
            if holders:
                return
            for setting, before in found.items():
                # Somebody who changed it meanwhile had a reason.
                if self._read(setting) == SETTINGS.get(setting):
                    self._write(setting, before)
            found.clear()

    @contextmanager
    def _noted(self) -> Iterator[tuple[dict[str, int], list[str]]]:
        """Values found and names of holders, alone with the note; changes to them are kept."""
        self.note.parent.mkdir(parents=True, exist_ok=True)
        with self.note.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            known = json.loads(file.read() or '{"found": {}, "holders": []}')
            yield known["found"], known["holders"]
            file.truncate(0)
            file.write(json.dumps(known))

    def _read(self, setting: str) -> int:
        return int((self.root / setting).read_text())

    def _write(self, setting: str, value: int) -> None:
        try:
            (self.root / setting).write_text(str(value))
        except OSError as error:
            name = setting.replace("/", ".")
            raise HostError(
                f"cannot set {name} to {value}: {error.strerror}", f"on the host: sysctl -w {name}={value}"
            ) from error
