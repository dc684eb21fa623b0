"""The hub of the benchmark: that of the tests, with KubeSpawner as it is or with ours."""

import json
import os
from pathlib import Path

import tests.hub

load_subconfig(str(Path(tests.hub.__file__).parent / "jupyterhub_config.py"))  # noqa: F821
c = get_config()  # noqa: F821

if os.environ["BENCH_VARIANT"] == "stock":
    c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
    c.KubeSpawner.image = "registry.example.com/b@sha256:" + "a" * 64
    c.KubeSpawner.cpu_guarantee = c.KubeSpawner.cpu_limit = 0.1
    c.KubeSpawner.mem_guarantee = c.KubeSpawner.mem_limit = "128M"

c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.log_level = "WARN"
c.Spawner.start_timeout = 300
c.KubeSpawner.storage_pvc_ensure = False

# Without the service of the tests, which asks the hub several times a second.
scopes = ["admin:users", "admin:servers", "admin:server_state"]
c.JupyterHub.services = [{"name": "tests", "api_token": json.loads(os.environ["HUB"])["token"]}]
c.JupyterHub.load_roles = [{"name": "tests", "services": ["tests"], "scopes": scopes}]
