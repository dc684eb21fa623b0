"""An administrator at a shell, in the folder that the guide calls `~/my-hub`.

Shell: runs commands.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.devcluster import build
from tests.devcluster.cluster import Cluster
from tests.devcluster.commands import execute
from tests.nodes.enterprise import guide

PATIENCE_SECONDS = 660
"""The guide's own wait for the hub is ten minutes."""
CHART = "jupyterhub/jupyterhub --version 4.4.0"
REPOSITORY = "helm repo add jupyterhub"


class Admin:
    """Types what the guide says."""

    def __init__(self, cluster: Cluster, folder: Path, *, chart: str, variables: Mapping[str, str]) -> None:
        programs = build.ensure(["helm", "kubectl"])
        places = [*(program.parent for program in programs.values()), Path(sys.executable).parent]
        self.folder = folder
        self._chart = chart
        self._env = {
            "PATH": os.pathsep.join([*map(str, places), os.environ["PATH"]]),
            "HOME": str(folder.parent),
            "KUBECONFIG": str(cluster.kubeconfig),
            **variables,
        }

    def render(self) -> None:
        """Type the last commands of the first step: check, and render."""
        self.type(guide.blocks(guide.RENDER)[-1])

    def prepare(self) -> None:
        """Type the third step up to the hub: manifests, quotas, queues, secrets."""
        for block in guide.blocks(guide.INSTALL)[:-1]:
            self.type(block)

    def install(self) -> str:
        """Type what installs the hub, or upgrades it; the chart is at hand, so no repository is added."""
        script = guide.without(guide.blocks(guide.INSTALL)[-1], REPOSITORY)
        return self.type(guide.with_words(script, {CHART: self._chart}))

    def look(self, *, prometheus: str, hub: str, token: str, more: str = "") -> str:
        """Type the fourth step; gives what preflight says, whatever that is."""
        script = guide.without(guide.blocks(guide.LOOK)[-1], "kubectl", "export")
        words = {"http://localhost:9090": prometheus, "https://hub.example.com/": f"{hub}/ {more}"}
        script = guide.with_words(script, words)
        return self.type(f"export JUPYTERHUB_API_TOKEN={token}\n{script.rstrip()} || [ $? = 1 ]")

    def type(self, script: str) -> str:
        """Run lines of a shell; raises `CommandFailedError` at the first that fails."""
        command = ["bash", "-euo", "pipefail", "-c", f"cd {self.folder}\n{script}"]
        return execute(command, env=self._env, timeout=PATIENCE_SECONDS, shown=["bash", "…", script])
