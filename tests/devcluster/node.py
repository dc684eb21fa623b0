"""One real node, as the supervisor, the addons and the tests use it.

A node is a set of network, mount, process and host-name namespaces with a kubelet, containerd and kube-proxy
of its own. It shares the host's file system except that `/run`, `/var/lib`, `/var/log` and `/var/lib/kubelet`
are its own: what is written there never reaches the host.

Shell: enters namespaces.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.devcluster.commands import execute
from tests.devcluster.errors import CommandFailedError
from tests.devcluster.processes import Process, Processes
from tests.devcluster.spec import NodeSpec
from tests.devcluster.waiting import PATIENCE_SECONDS

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
"""As seen inside a node: each has its own `/run`."""


IMAGE_NAMESPACE = "k8s.io"
"""Where containerd keeps what the kubelet uses."""


class Node:
    """A handle: any root process of the host may make one for a running cluster."""

    def __init__(
        self,
        spec: NodeSpec,
        *,
        address: str,
        pod_cidr: str,
        state_dir: Path,
        logs_dir: Path,
        processes: Processes,
        programs: Mapping[str, Path],
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.address = address
        """InternalIP; kubelet and host-network pods listen there, and the host reaches it."""
        self.pod_cidr = pod_cidr
        self.state_dir = state_dir
        """Folder on the host, seen at the same path inside: the place for files of addons too."""
        self.logs_dir = logs_dir
        self.certs_dir = state_dir / "certs.d"
        """containerd's registry configuration, read at each pull: `<host:port>/hosts.toml`."""
        self.kubelet_dir = state_dir / "kubelet"
        """What is `/var/lib/kubelet` inside."""
        self.pod_logs_dir = state_dir / "pod-logs" / "pods"
        """What is `/var/log/pods` inside: a folder for each pod, named `<namespace>_<name>_<uid>`."""
        self._processes = processes
        self._programs = programs

    @property
    def init_pid(self) -> int:
        """Host process id of the node's first process; its namespaces are the node's."""
        return int((self.state_dir / "init.pid").read_text())

    def enter(self, argv: Sequence[str | Path]) -> list[str]:
        """The command line that runs `argv` inside; the program is the child of what it starts."""
        inside = ["setpriv", "--pdeathsig", "KILL", "--", *(str(word) for word in argv)]
        return ["nsenter", f"--target={self.init_pid}", "--net", "--mount", "--pid", "--uts", "--", *inside]

    def popen(
        self, name: str, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program inside; it ends with the node and with this Python process.

        Its full name is `<node>/<name>` and it logs to `logs_dir/<name>.log`.
        """
        return self._processes.start(
            f"{self.name}/{name}", self.enter(argv), log=self.logs_dir / f"{name}.log", env=env, wrapped=True
        )

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        input: str | None = None,  # noqa: A002
        timeout: float = PATIENCE_SECONDS,
    ) -> str:
        """Run a command inside to its end and return what it printed; raises `CommandFailedError`."""
        shown = [f"{self.name}:", *argv]
        return execute(self.enter(argv), env=self._processes.env, input=input, timeout=timeout, shown=shown)

    def import_image(self, path: Path) -> None:
        """Put an image into the node's store, as if preloaded; `path` is an OCI layout folder or an archive.

        Raises `CommandFailedError`.
        """
        pack = ["tar", "--directory", str(path), "--create", "."] if path.is_dir() else ["cat", str(path)]
        argv = self.enter([self._programs["ctr"], "--namespace", IMAGE_NAMESPACE, "images", "import", "-"])
        with (
            subprocess.Popen(pack, stdout=subprocess.PIPE) as packing,
            subprocess.Popen(
                argv,
                stdin=packing.stdout,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(self._processes.env),
            ) as importing,
        ):
            assert packing.stdout is not None
            packing.stdout.close()  # so that packing ends when the import gives up
            output = importing.communicate()[0].decode(errors="replace")
        if importing.returncode:
            raise CommandFailedError(argv, importing.returncode, f"importing {path}:\n{output}")
