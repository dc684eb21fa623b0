"""The hub under test, without a proxy: tests ask it directly. What only they know comes in `HUB` as JSON."""

import json
import os

from jupyterhub.proxy import Proxy

from hub_ext import configure
from hub_ext.managed import Managed, hub_roles, hub_service
from hub_ext.sign_in import groups_of
from tests.hub.greeter import RIGHTS

hub = json.loads(os.environ["HUB"])
c = get_config()  # noqa: F821  # JupyterHub puts it here


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


c.JupyterHub.base_url = hub["base_url"]
if hub["by"] == "configure":
    configure(c, catalog=hub["catalog"], services=[Managed(**one) for one in hub["services"]])
else:  # as the chart does it: `hub.config.JupyterHub.spawner_class`, and empty values for many traits
    import z2jh  # noqa: F401

    c.JupyterHub.spawner_class = "gpu-workspaces"
    c.KubeSpawner.environment = {}
    c.KubeSpawner.node_selector = {}
    c.KubeSpawner.extra_annotations = {}
    c.KubeSpawner.extra_labels = {"hub.jupyter.org/network-access-hub": "true"}
    c.KubeSpawner.extra_resource_limits = {}
    c.KubeSpawner.profile_list = []
    c.KubeSpawner.init_containers = []
    c.KubeSpawner.tolerations = [
        {"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "user", "effect": "NoSchedule"}
    ]
    c.KubeSpawner.storage_pvc_ensure = True
    c.KubeSpawner.pvc_name_template = "claim-{user_server}"
    c.KubeSpawner.volumes = {
        "home": {"name": "volume-{user_server}", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}
    }
    c.KubeSpawner.volume_mounts = {"home": {"name": "volume-{user_server}", "mountPath": "/home/jovyan"}}

c.KubeSpawner.namespace = hub["namespace"]
# One server stands in for the notebook servers of all pods: pods on machines of kwok run nothing.
c.KubeSpawner.pod_connect_ip = "127.0.0.1"
c.KubeSpawner.port = hub["notebook_port"]
c.KubeSpawner.cmd = "jupyterhub-singleuser"
c.KubeSpawner.update(hub["traits"])
c.Spawner.start_timeout = 60
c.Spawner.consecutive_failure_limit = hub["failure_limit"]

c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = c.JupyterHub.hub_bind_url = hub["url"]
c.JupyterHub.db_url = f"sqlite:///{hub['folder']}/jupyterhub.sqlite"
c.JupyterHub.upgrade_db = True  # as the chart has it on a volume
c.JupyterHub.cookie_secret_file = f"{hub['folder']}/cookie_secret"
c.JupyterHub.cleanup_servers = False
c.JupyterHub.allow_named_servers = True

c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"root"}
if hub["oauth"]:  # as helm-values/layers/oidc.yaml has it
    c.JupyterHub.authenticator_class = "generic-oauth"
    c.Authenticator.enable_auth_state = True
    c.Authenticator.manage_groups = True
    c.Authenticator.refresh_pre_spawn = True
    c.Authenticator.auth_refresh_age = 300
    c.CryptKeeper.keys = ["0" * 64]
    c.GenericOAuthenticator.update(hub["oauth"])
    c.GenericOAuthenticator.scope = ["openid", "profile", "email"]
    c.GenericOAuthenticator.username_claim = "preferred_username"
    c.GenericOAuthenticator.auth_state_groups_key = groups_of("oauth_user.groups")
c.JupyterHub.services.append({"name": "tests", "api_token": hub["token"]})
c.JupyterHub.load_roles.append(
    {
        "name": "tests",
        "services": ["tests"],
        "scopes": [
            "admin:users",
            "admin:servers",
            "admin:server_state",
            "groups",
            "admin:groups",
            "read:metrics",
            "tokens",
            "list:services",
            "read:services",
            "read:hub",
            "read:roles:services",
        ],
    }
)

if not hub["services"]:
    greeter = Managed(
        name="greeter", url=hub["greeter_url"], settings={"greeting": "Hello from the settings"}
    )
    c.JupyterHub.services.append(hub_service(greeter, "tests.hub.greeter", catalog=hub["catalog"]))
    c.JupyterHub.load_roles.extend(hub_roles([RIGHTS]))
