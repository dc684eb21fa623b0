"""The imitated driver: the library built once into the cache, and the files of one machine that it reads.

Shell: runs gcc, writes files.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.devcluster import cache
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.gpu.config import driver_config, mig_minors
from tests.devcluster.gpu.setup import GpuSetup, InstalledCard

FOLDER = Path(__file__).resolve().parent / "driver"
LIBRARY = "libnvidia-ml.so.1"
FLAGS = (
    *("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"),
    *("-shared", "-fPIC", "-fvisibility=hidden", "-pthread", f"-Wl,-soname,{LIBRARY}"),
)
MACHINE = "Imitated GPU server"
"""What feature discovery reads as the machine's product name."""
CLASS_3D_CONTROLLER = "0x030200"


def library(header_dir: Path) -> Path:
    """Have the imitated library built; returns its path in the cache.

    Parameters
    ----------
    header_dir
        The folder of NVIDIA's `nvml.h`.
    """
    source = FOLDER / "nvml.c"
    key = cache.key_of(source.read_bytes(), (header_dir / "nvml.h").read_bytes(), *FLAGS)
    target = cache.entry("driver", key, LIBRARY)
    with cache.locked("driver"):
        if not target.exists():
            with cache.staged(target) as part:
                _run(["gcc", *FLAGS, "-I", str(header_dir), "-o", str(part), str(source)])
    cache.mark_used(target)
    return target


class Machine:
    """The folder that holds what one machine's cards look like to programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "cards"
        self.events = folder / "events"
        self.product_name = folder / "product_name"
        self.mps = folder / "mps"
        """The Multi-Process Service's pipes and logs; `/mps` to programs that see the cards."""

    def install(self, setup: GpuSetup, cards: Sequence[InstalledCard]) -> None:
        """Describe the cards; programs that run already keep what they have read."""
        for part in ("proc", "pci"):
            cache.remove(self.folder / part)
        for part in ("proc", "pci", "mps", "root"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        self.config.write_text(driver_config(setup, cards))
        self.events.touch()
        self.product_name.write_text(MACHINE + "\n")
        _write(self.folder / "proc/nvidia-caps/mig-minors", mig_minors(len(cards)))
        _write(self.folder / "proc/nvidia/version", f"NVRM version: imitated {setup.driver}\n")
        for card in cards:
            self._plug(card)

    def report_xid(self, card: int, xid: int, *, gi: int | None = None) -> None:
        """Let the driver report an Xid error on a card, or on the GPU instance `gi` of it."""
        instance = "-1 -1" if gi is None else f"{gi} 0"
        with self.events.open("a") as events:
            events.write(f"{card} {xid} {instance}\n")

    def command(self, argv: Sequence[str | Path]) -> list[str]:
        """The command line that runs a program where it sees the cards."""
        return [str(FOLDER / "hardware.sh"), str(self.folder), *map(str, argv)]

    def environment(self, library_path: Path, *, path: str) -> Mapping[str, str]:
        """What a program needs to find the driver's parts; `path` is its PATH without them."""
        return {
            "PATH": f"{FOLDER}:{path}",
            "IMITATED_NVML_CONFIG": str(self.config),
            "IMITATED_NVML_EVENTS": str(self.events),
            "LD_LIBRARY_PATH": str(library_path.parent),
        }

    def _plug(self, card: InstalledCard) -> None:
        slot = self.folder / "pci" / f"0000:{card.pci_bus:02x}:00.0"
        _write(slot / "vendor", "0x10de\n")
        _write(slot / "device", f"0x{card.product.pci_device >> 16:04x}\n")
        _write(slot / "class", CLASS_3D_CONTROLLER + "\n")
        _write(slot / "numa_node", "0\n")
        _write(slot / "resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n")
        _write(slot / "config", "\0" * 256)
        (slot / "driver").symlink_to("/sys/bus/pci/drivers/nvidia")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailedError(argv, done.returncode, done.stderr)
