"""A running cluster of ours, as the addons and the tests use it.

Shell: talks to the cluster and its supervisor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.devcluster import control
from tests.devcluster.errors import DevClusterError
from tests.devcluster.kube import KubeCluster
from tests.devcluster.node import Node
from tests.devcluster.processes import Process, Processes
from tests.devcluster.record import Phase, Record, Status


class Cluster(KubeCluster):
    """A handle: the supervisor has one, and each test process makes its own with `open`.

    What a handle starts (`popen`, `Node.popen`) ends with the process that started it.
    """

    def __init__(self, record: Record, processes: Processes | None = None) -> None:
        self.record = record
        folders = [program.parent for program in record.programs.values()]
        self.processes = processes or Processes(record.state_dir, path=folders)
        """Those that this Python process started."""
        super().__init__(
            record.name,
            kubeconfig=record.kubeconfig,
            kubectl=record.programs["kubectl"],
            env=self.processes.env,
        )
        self.spec = record.spec
        self.state_dir = record.state_dir
        self.logs_dir = record.logs_dir
        self.addresses = record.addresses
        self.host_address = record.host_address
        """Where a program on the host listens to be reached by pods; `127.0.0.1` in size `control`."""
        self.programs: Mapping[str, Path] = record.programs
        """What the cluster was started with, by the names of `tests.devcluster.build`."""
        self.nodes: Mapping[str, Node] = {
            spec.name: self._node(index) for index, spec in enumerate(record.spec.nodes)
        }

    @classmethod
    def open(cls, state_dir: Path) -> Cluster:
        """Make a handle of a cluster that is up; raises `StateError`."""
        return cls(Record.load(state_dir))

    def _node(self, index: int) -> Node:
        spec = self.spec.nodes[index]
        return Node(
            spec,
            address=self.addresses.node(index),
            pod_cidr=str(self.addresses.node_pods(index)),
            state_dir=self.state_dir / "nodes" / spec.name,
            logs_dir=self.logs_dir / spec.name,
            processes=self.processes,
            programs=self.programs,
        )

    @property
    def server(self) -> str:
        """URL of the API server; reachable from the host and, in size `nodes`, from pods."""
        return f"https://{self.host_address}:{self.port('kube-apiserver')}"

    @property
    def registry(self) -> str:
        """`host:port` of the registry addon, for image references; its server listens there."""
        return f"{self.host_address}:{self.port('registry')}"

    def node(self, name: str) -> Node:
        """The node of that name; raises `KeyError`."""
        return self.nodes[name]

    def port(self, name: str) -> int:
        """A free TCP port of the host for `name`: the same one in each process and call."""
        return self.record.port(name)

    def popen(
        self, name: str, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program on the host, logging to `logs_dir/<name>.log`; it ends with this Python process."""
        return self.processes.start(name, argv, log=self.logs_dir / f"{name}.log", env=env)

    def check(self) -> None:
        """Raise if a program of the cluster died that nobody asked to end."""
        self.processes.check()
        status = Status.load(self.state_dir)
        if status is None or status.phase is Phase.STOPPED:
            raise DevClusterError(f"cluster {self.name!r} is not up any more")
        if status.phase is Phase.FAILED or status.message:
            raise DevClusterError(status.message)

    def control(self, verb: control.Verb, process: str = "") -> str:
        """Have the supervisor stop, kill or start one of *its* processes, such as `gpu-1/kubelet`.

        Returns one line for each process with its name, state and log. Raises `StateError`.
        """
        return control.ask(self.state_dir, verb, process)
