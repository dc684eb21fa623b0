"""The doctor on a machine with a real NVIDIA GPU, well and broken in every way that a test may break it.

    sudo python -m tests.bench.doctor [WORD IN THE NAME OF A CASE …]

Breaks only what its own processes see: variables, and copies of `/dev` and of libraries in mount namespaces.
Frameworks are those of the machine; a build without CUDA is imitated where none is there.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCTOR = [sys.executable, "-m", "services.doctor", "--json"]
PRIVATE_DEV = """
set -e
mount -t tmpfs none {work}
cp -a /dev/null /dev/zero /dev/urandom /dev/random {work}/
{copy}
mount --bind {work} /dev
"""
UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
VERSION = "int cuDriverGetVersion(int*v){*v=13000;return 0;}"
LIBRARIES = {
    "stubs": f"int cuInit(unsigned f){{return 34;}} {VERSION}",
    "hangs": f"#include <unistd.h>\nint cuInit(unsigned f){{for(;;)pause();}} {VERSION}",
    "crashes": f"#include <stdlib.h>\nint cuInit(unsigned f){{abort();}} {VERSION}",
}
"""What takes the place of libcuda, by its folder."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to be broken."""

    name: str
    cause: str | None
    env: Mapping[str, str] = field(default_factory=dict)
    prepare: str = ""
    """Shell commands in a mount namespace of its own."""
    unprivileged: bool = False
    hold: str = ""
    """Command that runs meanwhile; it has taken effect when it prints a line."""
    python: str = ""


def cases(work: Path) -> list[Case]:
    torch, dev = work / "torch-without-cuda", work / "dev"
    for folder in (torch / "torch", dev):
        folder.mkdir(parents=True)
    for name, text in LIBRARIES.items():
        (work / name).mkdir()
        (work / f"{name}.c").write_text(text)
        subprocess.run(["cc", "-shared", "-o", work / name / "libcuda.so.1", work / f"{name}.c"], check=True)
    (torch / "torch" / "__init__.py").write_text("__version__ = '2.11.0+cpu'\nclass version: cuda = None\n")
    hidden = "for l in $(ldconfig -p | awk '/libcuda.so/ {print $NF}'); do mount --bind /dev/null $l; done"
    copies = "cp -a /dev/nvidia* {work}/ && chmod 666 {work}/nvidia?*"
    hold = f"{sys.executable} -m tests.bench.doctor hold"

    def private(copy: str) -> str:
        return PRIVATE_DEV.format(work=dev, copy=copy.format(work=dev))

    return [
        Case(name="well", cause=None),
        Case(name="hidden by -1", cause="hidden", env={"CUDA_VISIBLE_DEVICES": "-1"}),
        Case(name="hidden by an empty variable", cause="hidden", env={"CUDA_VISIBLE_DEVICES": ""}),
        Case(name="hidden by a number that is not there", cause="hidden", env={"CUDA_VISIBLE_DEVICES": "7"}),
        Case(
            name="stub before the library", cause="libcuda-stub", env={"LD_LIBRARY_PATH": str(work / "stubs")}
        ),
        Case(name="a driver that hangs", cause="driver-hangs", env={"LD_LIBRARY_PATH": str(work / "hangs")}),
        Case(
            name="a driver that crashes",
            cause="driver-crashed",
            env={"LD_LIBRARY_PATH": str(work / "crashes")},
        ),
        Case(name="no libcuda", cause="libcuda-missing", prepare=hidden),
        Case(
            name="no libcuda, monitoring only",
            cause="capabilities",
            prepare=hidden,
            env={"NVIDIA_DRIVER_CAPABILITIES": "utility"},
        ),
        Case(name="no devices", cause="no-devices", prepare=private("true"), unprivileged=True),
        Case(name="no devices, for root", cause="no-devices", prepare=private("true")),
        Case(
            name="devices closed",
            cause="devices-closed",
            prepare=private("cp -a /dev/nvidia* {work}/ && chmod 600 {work}/nvidia*"),
            unprivileged=True,
        ),
        Case(
            name="no nvidia-uvm",
            cause="uvm-missing",
            prepare=private(f"{copies}; rm -f {{work}}/nvidia-uvm*"),
            unprivileged=True,
        ),
        Case(name="image for a later CUDA", cause="driver-too-old", env={"CUDA_VERSION": "99.0.0"}),
        Case(name="memory taken", cause="memory-taken", hold=hold),
        Case(
            name="PyTorch without CUDA",
            cause="framework-without-cuda",
            env={"PYTHONPATH": f"{torch}:{ROOT}"},
        ),
    ]


def found(case: Case) -> tuple[str | None, dict]:
    """What the doctor says in a case."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **case.env}
    command = [*(UNPRIVILEGED if case.unprivileged else []), *DOCTOR]
    script = f"{case.prepare}\nexec {shlex.join(command)}"
    holder = None
    if case.hold:
        holder = subprocess.Popen(
            shlex.split(case.hold), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment
        )
        assert holder.stdout is not None
        holder.stdout.readline()
    try:
        done = subprocess.run(  # its status says whether there are findings
            ["unshare", "--mount", "sh", "-c", script],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            check=False,
        )
    finally:
        if holder is not None:
            holder.communicate()
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return f"nothing: {done.stderr[-500:]}", {}
    return told["result"]["cause"], told["result"]


def hold() -> None:
    """Take all memory of the card, say so, and keep it until the input ends."""
    import ctypes

    cuda = ctypes.CDLL("libcuda.so.1")
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    size = 1 << 36
    while size >= 1 << 20:
        if cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) != 0:
            size >>= 1
    print("taken", flush=True)
    sys.stdin.read()


def main() -> int:
    """Print what was found in each case; the exit status is 1 if anything else was expected."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101
        wanted = sys.argv[1:]
        for case in cases(Path(folder)):
            if wanted and not any(word in case.name for word in wanted):
                continue
            cause, result = found(case)
            good = cause == case.cause
            wrong += not good
            print(f"{'ok   ' if good else 'WRONG'} {case.name}: {cause}", flush=True)
            if not good or case.name == "well":
                print(json.dumps(result, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["hold"]:
        hold()
    else:
        sys.exit(main())
