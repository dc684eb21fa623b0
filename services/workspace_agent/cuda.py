"""A program that holds a GPU, and computes on it if told to: the self-test's child, and a load for tests.

``python -m services.workspace_agent.cuda --hold-bytes N --compute`` prints one line of JSON once it holds the
GPU, and ends when its standard input does.

It needs nothing but the driver: CUDA's driver interface is called directly, for frameworks are large, and the
environment that serves JupyterLab has none. Shell: talks to the GPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import sys
from collections.abc import Sequence
from typing import Any

LIBRARY = "libcuda.so.1"
SPIN_CYCLES = 50_000_000
"""Some hundredths of a second of one multiprocessor: short enough to end soon, long enough to be seen."""
SPIN = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 cycles)
{
    .reg .u64 %now, %start, %wanted;
    .reg .pred %early;
    ld.param.u64 %wanted, [cycles];
    mov.u64 %start, %clock64;
again:
    mov.u64 %now, %clock64;
    sub.u64 %now, %now, %start;
    setp.lt.u64 %early, %now, %wanted;
    @%early bra again;
    ret;
}
"""
"""A kernel that keeps one multiprocessor busy for some cycles, in PTX, which any later GPU takes."""


class CudaError(Exception):
    """A call of the driver failed.

    Parameters
    ----------
    call
        Its name.
    code
        What it returned, a `CUresult`.
    """

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} failed with CUDA error {code}")
        self.call, self.code = call, code


class Cuda:
    """The driver interface with a context on the first visible device. Raises `CudaError`, `OSError`."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        # Not cuCtxCreate, whose arguments differ between versions of the interface.
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def hold(self, size: int) -> None:
        """Allocate memory that is held until the process ends."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))

    def load_spin(self) -> ctypes.c_void_p:
        """Compile the kernel and return its handle."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), SPIN)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, b"spin")
        return function

    def spin(self, function: ctypes.c_void_p, cycles: int = SPIN_CYCLES) -> None:
        """Run the kernel and wait for its end."""
        value = ctypes.c_uint64(cycles)
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(value), ctypes.c_void_p))
        self._call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
        self._call("cuCtxSynchronize")

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise CudaError(name, code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Hold the GPU until standard input ends; returns the exit status, 3 where CUDA failed."""
    parser = argparse.ArgumentParser(prog="python -m services.workspace_agent.cuda", description=__doc__)
    parser.add_argument("--hold-bytes", type=int, default=0, help="memory to allocate (%(default)s)")
    parser.add_argument("--compute", action="store_true", help="keep one multiprocessor busy")
    options = parser.parse_args(arguments)
    try:
        cuda = Cuda()
        if options.hold_bytes:
            cuda.hold(options.hold_bytes)
        function = cuda.load_spin() if options.compute else None
        say({"pid": os.getpid()})
        while not input_ended(wait=function is None):
            if function is not None:
                cuda.spin(function)
    except (CudaError, OSError) as error:
        say({"error": str(error)})
        return 3
    return 0


def say(message: dict[str, object]) -> None:
    """Print one line of JSON at once."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def input_ended(*, wait: bool) -> bool:
    """Whether nobody holds the other end of standard input any more."""
    ready, _, _ = select.select([sys.stdin], [], [], None if wait else 0)
    return bool(ready) and not os.read(sys.stdin.fileno(), 4096)


if __name__ == "__main__":
    sys.exit(main())
