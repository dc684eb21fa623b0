"""The pod that a hub makes before any profile, asked of the hub's own configuration.

A configuration file is a program, and KubeSpawner wants a cluster's address before it does anything. Both get
a process of their own: `read_baseline` starts it, `main` is what runs there. No cluster is talked to.

Shell: starts a process, runs the configuration.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from ..errors import WorkspaceError

KUBECONFIG: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "none",
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "none", "user": {}}],
}
"""Leads nowhere; KubeSpawner cannot be made without one."""

TIMEOUT_SECONDS: Final = 120


class PreviewError(WorkspaceError):
    """The hub's configuration could not be run, or makes no pod; the text is the end of what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a profile is put onto."""

    pod: dict[str, Any]
    home_claim: str | None = None
    """Name of the claim that would hold the user's home; None where no hub says."""


def read_baseline(config: Path, user: str, server: str) -> Baseline:
    """Give the pod of a user's server as the hub's configuration makes it, without a profile.

    Raises
    ------
    PreviewError
        The configuration fails, or its spawner is not a KubeSpawner.
    """
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig, result = Path(folder, "kubeconfig"), Path(folder, "pod.json")
        kubeconfig.write_text(json.dumps(KUBECONFIG), encoding="utf-8")
        command = [sys.executable, "-m", __name__, str(config), user, server, str(result)]
        done = subprocess.run(  # noqa: S603 - our own program
            command,
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            raise PreviewError(f"{config}: the hub's configuration gives no pod: {said}")
        return Baseline(**json.loads(result.read_text(encoding="utf-8")))


async def make_pod(config_file: str, user: str, server: str) -> Baseline:
    """Make the pod with the spawner class and settings of a configuration file."""
    from jupyterhub.app import JupyterHub  # noqa: PLC0415 - takes seconds, and only this process needs it
    from kubespawner import KubeSpawner  # noqa: PLC0415

    hub = JupyterHub()
    hub.raise_config_file_errors = True
    hub.load_config_file(config_file)
    kind = hub.spawner_class
    if not issubclass(kind, KubeSpawner):
        raise PreviewError(f"{kind.__name__} is not a KubeSpawner")
    facts = SimpleNamespace(name=user, id=0, url=f"/user/{user}/", escaped_name=user, groups=[], admin=False)
    address = SimpleNamespace(public_host="", base_url="/hub/", api_url="http://hub:8081/hub/api")

    def spawner_of(name: str) -> Any:
        record = SimpleNamespace(name=name, server=None, state=None, user_options={})
        return kind(config=hub.config, user=facts, hub=address, orm_spawner=record)

    spawner = spawner_of(server)
    try:
        pod = spawner.api.api_client.sanitize_for_serialization(await KubeSpawner.get_pod_manifest(spawner))
    finally:
        await spawner.api.api_client.close()
    # Named servers share the home of the default one.
    return Baseline(pod={"apiVersion": "v1", "kind": "Pod", **pod}, home_claim=spawner_of("").pvc_name)


def main(config_file: str, user: str, server: str, result: str) -> None:
    """Write the pod to a file; the configuration may print what it likes."""
    baseline = asyncio.run(make_pod(config_file, user, server))
    Path(result).write_text(json.dumps(asdict(baseline)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
