"""The hub of the benchmark: servers are kept in its database and run nothing; a stop takes its time."""

import asyncio
import json
import os

from jupyterhub.proxy import Proxy
from jupyterhub.spawner import Spawner

bench = json.loads(os.environ["BENCH"])
c = get_config()  # noqa: F821  # JupyterHub puts it here


class Played(Spawner):
    """A server that is up because the database says so."""

    up = False

    def load_state(self, state):
        super().load_state(state)
        self.up = bool(state.get("up"))

    def get_state(self):
        return {**super().get_state(), **({"up": True} if self.up else {})}

    def clear_state(self):
        super().clear_state()
        self.up = False

    async def start(self):
        self.up = True
        return "127.0.0.1", bench["notebook_port"]

    async def poll(self):
        return None if self.up else 0

    async def stop(self, now=False):
        await asyncio.sleep(bench["stop_seconds"])
        self.up = False


class NoProxy(Proxy):
    """Keeps the routes and sends nobody anywhere."""

    should_start = False
    _routes: dict[str, dict[str, object]] = {}  # noqa: RUF012

    async def add_route(self, routespec, target, data):
        self._routes[routespec] = {"routespec": routespec, "target": target, "data": data}

    async def delete_route(self, routespec):
        self._routes.pop(routespec, None)

    async def get_all_routes(self):
        return dict(self._routes)


c.JupyterHub.spawner_class = Played
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = c.JupyterHub.hub_bind_url = bench["url"]
c.JupyterHub.db_url = bench["database"]
c.JupyterHub.cookie_secret_file = f"{bench['folder']}/cookie_secret"
c.JupyterHub.cleanup_servers = False
c.JupyterHub.log_level = "WARN"
c.JupyterHub.last_activity_interval = 100_000
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.services = [{"name": name, "api_token": token} for name, token in bench["tokens"].items()]
scopes = {
    "stock": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    "ours": bench["scopes"],
}
c.JupyterHub.load_roles = [
    {"name": name, "services": [name], "scopes": scopes[name]} for name in bench["tokens"]
]
