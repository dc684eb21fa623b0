"""Any Kubernetes cluster, as tests use it: through kubectl and a kubeconfig file.

Shell: talks to the cluster.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.devcluster.commands import execute
from tests.devcluster.errors import ApiError, CommandFailedError, NotReadyError
from tests.devcluster.waiting import PATIENCE_SECONDS, POLL_SECONDS

FIELD_MANAGER = "devcluster"
NOT_FOUND = "NotFound"
TOO_EARLY = (NOT_FOUND, "accessor error: <nil>")
"""What kubectl gives up waiting with when the object, or its status, is not there yet."""
UNHEARD = (
    "TLS handshake timeout",
    "client connection lost",
    "unexpected EOF",
    "context deadline exceeded",
    "etcdserver: request timed out",
    "etcdserver: leader changed",
)
"""What it says when the API server, or who that one asks, was too busy to answer."""
REPEATABLE = frozenset({"apply", "get"})
"""Verbs that may be sent again, whatever became of the first time."""


class KubeCluster:
    """A cluster that somebody else may have started."""

    def __init__(self, name: str, *, kubeconfig: Path, kubectl: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        """Of an administrator."""
        self._kubectl = kubectl
        self._env = dict(env)

    def check(self) -> None:
        """Raise if it is of no use to wait for anything, because the cluster is broken."""

    def kubectl(self, *args: str | Path, input: str | None = None, timeout: float = PATIENCE_SECONDS) -> str:  # noqa: A002
        """Run kubectl as administrator and return what it printed; raises `CommandFailedError`.

        What was not heard on a busy machine is said again, where that does no harm.
        """
        command = self._command(*args)
        deadline = time.monotonic() + timeout
        while True:
            try:
                return execute(command, env=self._env, input=input, timeout=timeout, shown=["kubectl", *args])
            except CommandFailedError as error:
                heard = args[0] not in REPEATABLE or not any(words in error.output for words in UNHEARD)
                if heard or time.monotonic() >= deadline:
                    raise
            time.sleep(POLL_SECONDS)

    def get(self, path: str) -> Any:
        """GET an API path, such as `/api/v1/nodes/gpu-1`; raises `ApiError`."""
        try:
            text = self.kubectl("get", "--raw", path)
        except CommandFailedError as error:
            raise ApiError("GET", path, 404 if NOT_FOUND in error.output else 0, error.output) from error
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text

    def apply(self, *documents: Mapping[str, Any] | Path, timeout: float = PATIENCE_SECONDS) -> None:
        """Server-side apply objects, or files of them, in the given order; raises `CommandFailedError`."""
        apply = (
            *("apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}"),
            # By default half a minute decides whether the schemas, megabytes of them, are there.
            f"--request-timeout={PATIENCE_SECONDS}s",
        )
        objects: list[Mapping[str, Any]] = []
        for document in (*documents, None):
            if isinstance(document, Mapping):
                objects.append(document)
                continue
            if objects:
                items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
                self.kubectl(*apply, "--filename=-", input=items, timeout=timeout)
                objects = []
            if document is not None:
                self.kubectl(*apply, "--filename", document, timeout=timeout)

    def wait_for(
        self,
        resource: str,
        condition: str,
        *,
        namespace: str | None = None,
        timeout: float = PATIENCE_SECONDS,
    ) -> None:
        """`kubectl wait`, also for what does not exist yet; raises `NotReadyError`, or what `check` raises.

        `resource` as in `deployment/kueue-controller-manager`, `condition` as in `condition=Available` or
        `jsonpath={.status.phase}=Running`.
        """
        deadline = time.monotonic() + timeout
        where = [f"--namespace={namespace}"] if namespace else []
        while True:
            left = max(1, round(deadline - time.monotonic()))
            code, output = self._watched("wait", resource, f"--for={condition}", f"--timeout={left}s", *where)
            if code == 0:
                return
            passing = any(words in output for words in (*TOO_EARLY, *UNHEARD))
            if time.monotonic() >= deadline or not passing:
                raise NotReadyError(f"{resource} to be {condition}", timeout, output.strip())

    def delete_namespaces(self, names: Iterable[str], *, timeout: float = PATIENCE_SECONDS) -> None:
        """Delete namespaces and wait until they are gone."""
        self.kubectl("delete", "namespace", "--ignore-not-found", "--wait", *names, timeout=timeout)

    def _command(self, *args: str | Path) -> list[str]:
        return [str(self._kubectl), f"--kubeconfig={self.kubeconfig}", *map(str, args)]

    def _watched(self, *args: str) -> tuple[int, str]:
        """Run kubectl while `check` is content; returns exit code and output."""
        with subprocess.Popen(
            self._command(*args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._env
        ) as process:
            try:
                while process.poll() is None:
                    self.check()
                    time.sleep(POLL_SECONDS)
            finally:
                process.kill()
            assert process.stdout is not None
            return process.returncode, process.stdout.read()
