"""A real Keycloak as a process of the host: users, groups and OpenID Connect, changed while it runs.

It needs no cluster and no root, and forgets everything when it ends.

Shell: starts programs, speaks HTTP.
"""

from __future__ import annotations

import contextlib
import html
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.devcluster import build, cache
from tests.devcluster.answering import until_answering
from tests.devcluster.build.keycloak import NAME
from tests.devcluster.errors import ApiError
from tests.devcluster.ports import free_port
from tests.devcluster.processes import Processes
from tests.devcluster.waiting import PATIENCE_SECONDS

ADMIN = "admin"
THREADS = "io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory"
OPENED = ("lang", "security", "util", "util.concurrent")
JAVA_FLAGS = (
    *("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),  # it lives a few minutes at most
    *("-Dfile.encoding=UTF-8", "-Duser.language=en", "-Duser.country=US"),
    "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
    f"-Djava.util.concurrent.ForkJoinPool.common.threadFactory={THREADS}",
    *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED),
    "--enable-native-access=ALL-UNNAMED",
)
"""What its own script gives to Java. It is left out, for Java would outlive it when the tests are killed."""
MAIN = "io.quarkus.bootstrap.runner.QuarkusEntryPoint"
SHARED_PARTS = ("conf", "lib", "providers", "themes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A person who can sign in."""

    name: str
    password: str
    groups: tuple[str, ...] = ()
    """Names of groups, which tokens have as `/name`."""


def build_realm(
    name: str,
    *,
    client_id: str,
    client_secret: str,
    redirect_uris: Sequence[str],
    accounts: Sequence[Account],
    groups: Sequence[str] = (),
) -> dict[str, Any]:
    """Build a realm with one confidential client, whose tokens and user information have the claim `groups`.

    The claim holds full paths, and is absent for a person without groups. `groups` names those that nobody
    is in at first.
    """
    every = dict.fromkeys([*groups, *(group for account in accounts for group in account.groups)])
    claim = {
        "claim.name": "groups",
        "full.path": "true",
        **dict.fromkeys(("id.token.claim", "access.token.claim", "userinfo.token.claim"), "true"),
    }
    return {
        "realm": name,
        "enabled": True,
        "sslRequired": "none",
        # Codes and tokens outlive every test: a busy machine takes long.
        "accessTokenLifespan": 1200,
        "accessCodeLifespan": 1200,
        "groups": [{"name": group} for group in every],
        "users": [_build_user(account) for account in accounts],
        "clients": [
            {
                "clientId": client_id,
                "secret": client_secret,
                "enabled": True,
                "protocol": "openid-connect",
                "publicClient": False,
                "standardFlowEnabled": True,
                "directAccessGrantsEnabled": False,
                "redirectUris": list(redirect_uris),
                "protocolMappers": [
                    {
                        "name": "groups",
                        "protocol": "openid-connect",
                        "protocolMapper": "oidc-group-membership-mapper",
                        "config": claim,
                    }
                ],
            }
        ],
    }


def _build_user(account: Account) -> dict[str, Any]:
    return {
        "username": account.name,
        "enabled": True,
        "emailVerified": True,
        "email": f"{account.name}@example.test",
        "firstName": account.name.capitalize(),
        "lastName": "Example",  # without both names the first sign-in asks for them
        "credentials": [{"type": "password", "value": account.password, "temporary": False}],
        "groups": [f"/{group}" for group in account.groups],
    }


class Keycloak:
    """A handle: any process of the host that knows the administrator's password may make one."""

    def __init__(self, url: str, *, password: str) -> None:
        self.url = url
        """Without a slash at its end; the same for browsers and for programs."""
        self._password = password

    def endpoint(self, realm: str, what: str) -> str:
        """One of a realm's OpenID Connect addresses: `auth`, `token`, `userinfo`, `logout`, `certs`."""
        return f"{self.url}/realms/{realm}/protocol/openid-connect/{what}"

    def add_realm(self, realm: dict[str, Any]) -> None:
        """Add a realm as `build_realm` makes it; raises `ApiError` if there is one of that name."""
        self.admin("POST", "/realms", realm)

    def set_groups(self, realm: str, user: str, groups: Sequence[str]) -> None:
        """Let a person be in these groups and no others."""
        person = self._person(realm, user)
        known = {group["name"]: group["id"] for group in self.admin("GET", f"/realms/{realm}/groups")}
        path = f"/realms/{realm}/users/{person['id']}/groups"
        for group in self.admin("GET", path):
            if group["name"] not in groups:
                self.admin("DELETE", f"{path}/{group['id']}")
        for group in groups:
            self.admin("PUT", f"{path}/{known[group]}")

    def set_enabled(self, realm: str, user: str, enabled: bool) -> None:
        """Lock a person out, or let them in again."""
        person = self._person(realm, user)
        self.admin("PUT", f"/realms/{realm}/users/{person['id']}", {"enabled": enabled})

    def end_sessions(self, realm: str, user: str) -> None:
        """Sign a person out everywhere."""
        self.admin("POST", f"/realms/{realm}/users/{self._person(realm, user)['id']}/logout")

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the administrators' REST API, below `/admin`; raises `ApiError`."""
        headers = {"Authorization": f"Bearer {self._token()}"}
        answer = self._request(method, f"/admin{path}", headers=headers, json=body)
        return answer.json() if answer.content else None

    def _person(self, realm: str, user: str) -> dict[str, Any]:
        found = self.admin("GET", f"/realms/{realm}/users?exact=true&username={user}")
        if not found:
            raise ApiError("GET", f"/realms/{realm}/users", 404, f"there is no {user!r}")
        person: dict[str, Any] = found[0]
        return person

    def _token(self) -> str:
        given = {"grant_type": "password", "client_id": "admin-cli", "username": ADMIN}
        path = "/realms/master/protocol/openid-connect/token"
        answer = self._request("POST", path, data={**given, "password": self._password})
        return str(answer.json()["access_token"])

    def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        answer = httpx.request(method, self.url + path, trust_env=False, timeout=PATIENCE_SECONDS, **given)
        if answer.is_error:
            raise ApiError(method, path, answer.status_code, answer.text)
        return answer


def send_form(client: httpx.Client, page: httpx.Response, account: Account) -> httpx.Response:
    """Send the page that asks for name and password; gives what comes of it.

    Raises `ApiError` for another page.
    """
    action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
    if action is None:
        raise ApiError("GET", str(page.url), page.status_code, page.text[:2000])
    # At this machine's own address its cookies are for https only, for which a browser makes an exception.
    secure = "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar if one.secure)
    fields = {"username": account.name, "password": account.password}
    headers = {"Cookie": secure} if secure else {}
    return client.post(html.unescape(action[1]), data=fields, headers=headers)


@contextlib.contextmanager
def running_keycloak(folder: Path, *, host: str = "127.0.0.1") -> Iterator[Keycloak]:
    """Run a Keycloak without realms of its own; it ends with the block. Takes some twenty seconds.

    Raises `DevClusterError` or `BuildError`.
    """
    program = build.ensure([NAME])[NAME]
    processes = Processes(folder)
    try:
        yield start(processes, folder, program, host=host, log=folder / "keycloak.log")
    finally:
        processes.stop_all()


def start(processes: Processes, folder: Path, program: Path, *, host: str, log: Path) -> Keycloak:
    """Start a Keycloak as one of `processes`; returns when it lets people sign in."""
    port, management_port = free_port(), free_port()
    home = _home(program, folder / "keycloak")
    url, password = f"http://{host}:{port}", secrets.token_urlsafe(24)
    process = processes.start(
        "keycloak",
        [
            build.ensure_tools(["java"])["java"],
            *(*JAVA_FLAGS, f"-Dkc.home.dir={home}", f"-Djboss.server.config.dir={home / 'conf'}"),
            *("-cp", home / "lib" / "quarkus-run.jar", MAIN),
            *("start", "--optimized", "--http-enabled=true", f"--hostname={url}"),
            *(f"--http-host={host}", f"--http-port={port}", f"--http-management-port={management_port}"),
            "--log-level=warn",
        ],
        log=log,
        env={
            "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN,
            "KC_BOOTSTRAP_ADMIN_PASSWORD": password,
        },
    )
    url_of_health = f"http://{host}:{management_port}/health/ready"
    until_answering(url_of_health, what="Keycloak to be ready", check=process.check)
    return Keycloak(url, password=password)


def _home(program: Path, home: Path) -> Path:
    """A folder that looks like the program's own, so that what it writes does not go into the cache."""
    cache.remove(home)
    home.mkdir(parents=True)
    for part in SHARED_PARTS:
        (home / part).symlink_to(program / part)
    return home
