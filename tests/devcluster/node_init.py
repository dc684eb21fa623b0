"""First process of a node, run as a script inside new network, mount, process and host-name namespaces.

It gives the node the folders of its own, makes the file `ready` and then collects what ended; when it
ends, the kernel ends everything else in the node.

Arguments: the node's name and its state folder. Only the standard library: it starts without site-packages.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

READY = "ready"
AMPLE_MEMORY = 8 * 2**30
"""Bytes that must be free for a node to keep its images in memory."""
PRIVATE_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""Settings of the whole machine that a kubelet changes: in a node they are plain files."""


def mount(*arguments: str | Path) -> None:
    subprocess.run(["/usr/bin/mount", *map(str, arguments)], check=True)


def make_private_folders(state: Path) -> None:
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    layers = {part: Path("/run/devcluster/var-lib") / part for part in ("upper", "work")}
    for folder in (*layers.values(), Path("/run/lock"), Path("/run/netns"), Path("/run/containerd")):
        folder.mkdir(parents=True)
    options = f"lowerdir=/var/lib,upperdir={layers['upper']},workdir={layers['work']}"
    mount("-t", "overlay", "-o", options, "overlay", "/var/lib")
    for own, target in (("kubelet", Path("/var/lib/kubelet")), ("pod-logs", Path("/var/log"))):
        target.mkdir(exist_ok=True)
        mount("--bind", state / own, target)


def keep_images_in_memory(state: Path) -> None:
    """Put containerd's store, tens of thousands of files, where they are made and gone in no time."""
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available = int(memory["MemAvailable"].split()[0]) * 1024
    if available >= AMPLE_MEMORY:
        store = state / "containerd"
        store.mkdir(exist_ok=True)
        mount("-t", "tmpfs", "-o", f"mode=711,size={available // 2}", "tmpfs", store)


def make_private_sysctls(state: Path) -> None:
    for name in PRIVATE_SYSCTLS:
        setting = Path("/proc/sys") / name
        if setting.exists():
            copy = state / "sysctls" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(setting.read_text())
            mount("--bind", copy, setting)


def collect_until_told_to_end() -> None:
    """Reap whatever this process inherits, such as the shims of containerd."""
    waited_for = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    while signal.sigwait(waited_for) is not signal.SIGTERM:
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            continue


def main(name: str, state: Path) -> None:
    socket.sethostname(name)
    make_private_folders(state)
    keep_images_in_memory(state)
    make_private_sysctls(state)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    mount("--make-rshared", "/")
    (state / READY).touch()
    collect_until_told_to_end()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
