"""What a start tells about itself: each step with the time since the beginning.

Shell: reads the clock, writes to a stream.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Report:
    """Lines such as `  4.2 s  API server is ready (3.1 s)`; threads may share one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = time.monotonic()
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        with self._lock:
            print(f"{time.monotonic() - self._begun:6.1f} s  {text}", file=self._stream, flush=True)

    @contextmanager
    def step(self, done: str) -> Iterator[None]:
        """Say `done` and how long the block took, when it ends well."""
        begun = time.monotonic()
        yield
        self.say(f"{done} ({time.monotonic() - begun:.1f} s)")
