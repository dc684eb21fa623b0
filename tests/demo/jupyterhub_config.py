"""The demo's hub. Everything that an admin would write for GPU workspaces is in the first block.

What only the running demo knows, ports and folders, comes in `DEMO` as JSON; see `tests.demo.hub`.
"""

import json
import os

from hub_ext import configure
from hub_ext.managed import Managed
from tests.demo.users import USERS

demo = json.loads(os.environ["DEMO"])
c = get_config()  # type: ignore[name-defined]  # noqa: F821 - JupyterHub puts it here

configure(c, catalog=demo["catalog"], services=[Managed(**one) for one in demo["services"]])
c.JupyterHub.load_roles.append(
    {"name": "operators", "users": [USERS[0].name], "scopes": ["access:services!service=prepuller"]}
)
c.KubeSpawner.namespace = demo["namespace"]
# As Zero to JupyterHub sets it: the restricted level of pod security asks for it.
c.KubeSpawner.uid = 1000
c.KubeSpawner.fs_gid = 100
c.KubeSpawner.container_security_context = {"capabilities": {"drop": ["ALL"]}}
c.KubeSpawner.cmd = "jupyterhub-singleuser"
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = 300  # the first start on a node pulls the image

c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = USERS[0].password
c.Authenticator.allowed_users = {user.name for user in USERS}
c.JupyterHub.load_groups = {user.group: {"users": [user.name]} for user in USERS}

c.JupyterHub.bind_url = demo["url"]
c.JupyterHub.hub_bind_url = demo["hub_url"]  # an address that pods reach
c.ConfigurableHTTPProxy.command = demo["proxy"]
c.ConfigurableHTTPProxy.api_url = demo["proxy_api_url"]
c.ConfigurableHTTPProxy.pid_file = f"{demo['folder']}/proxy.pid"
c.JupyterHub.db_url = f"sqlite:///{demo['folder']}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = f"{demo['folder']}/cookie_secret"
c.JupyterHub.cleanup_servers = False  # the cluster goes with the demo, and all servers with it
