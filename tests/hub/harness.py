"""A real JupyterHub in a process of its own, and what tests ask it.

Shell: starts processes, listens on ports, speaks HTTP.
"""

from __future__ import annotations

import html
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jupyterhub
import psutil

from tests import matrix
from tests.devcluster.ports import free_port
from tests.devcluster.waiting import PATIENCE_SECONDS, until

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = Path(__file__).parent / "jupyterhub_config.py"
START_SECONDS = PATIENCE_SECONDS
SPAWN_SECONDS = PATIENCE_SECONDS

IS_5 = jupyterhub.version_info < (6,)


class _Notebook(BaseHTTPRequestHandler):
    """Answers everything as a notebook server that is up."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-JupyterHub-Version", jupyterhub.__version__)
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""


@contextmanager
def notebook_server() -> Iterator[int]:
    """Run the server that stands in for all notebook servers; yields its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Notebook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


class Hub:
    """One hub: `start`, ask, `stop`, and start again with what it remembers."""

    def __init__(
        self,
        folder: Path,
        *,
        kubeconfig: Path,
        namespace: str,
        catalog: Path,
        notebook_port: int,
        by: str = "configure",
        failure_limit: int = 3,
        traits: Mapping[str, Any] | None = None,
        services: Sequence[Mapping[str, Any]] = (),
        oauth: Mapping[str, Any] | None = None,
        port: int = 0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Make a hub.

        Parameters
        ----------
        services
            Those of the bundle that it runs, in the words of `Managed`.
        oauth
            Traits of `GenericOAuthenticator`: people sign in there, and not by any password.
        port
            0 takes any free one.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log_file = folder / "hub.log"
        self.token = secrets.token_hex(16)
        self.base = f"http://127.0.0.1:{port or free_port()}/base/hub"
        greeter_url = f"http://127.0.0.1:{free_port()}"
        self.greeter = f"{greeter_url}/base/services/greeter/"
        """Where `tests.hub.greeter` is."""
        settings = {
            "folder": str(folder),
            "namespace": namespace,
            "catalog": str(catalog),
            "notebook_port": notebook_port,
            "by": by,
            "failure_limit": failure_limit,
            "traits": dict(traits or {}),
            "services": list(services),
            "oauth": dict(oauth or {}),
            "token": self.token,
            "url": self.base.removesuffix("/base/hub"),
            "base_url": "/base/",
            "greeter_url": greeter_url,
        }
        self._env = {
            **os.environ,
            "HUB": json.dumps(settings),
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": os.pathsep.join([str(ROOT), (env or {}).get("PYTHONPATH", "")]),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._python, self._is_5 = Path(sys.executable), IS_5

    def move_to(self, end: matrix.End) -> None:
        """Let it be of these versions from the next start on."""
        self._python, self._is_5 = matrix.python(end), end.jupyterhub.startswith("5.")

    @property
    def environment(self) -> Mapping[str, str]:
        """What the process is started with, for commands that read the same configuration."""
        return self._env

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process and do not wait for it."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._python), "-m", "jupyterhub", "-f", str(CONFIG)],
                cwd=self.folder,
                env={**self._env, "PATH": os.pathsep.join([str(self._python.parent), os.environ["PATH"]])},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self._process

    def start(self) -> None:
        """Start and wait until the hub answers."""
        self.launch()
        until(self._not_up, what="the hub to answer", timeout=START_SECONDS)

    def _not_up(self) -> str | None:
        self.check()
        try:
            code = httpx.get(f"{self.base}/health", timeout=5).status_code
        except httpx.TransportError as error:
            return repr(error)
        return None if code == 200 else f"it answers {code}"

    def check(self) -> None:
        """Raise if the hub has ended."""
        if self._process is None or self._process.poll() is not None:
            raise AssertionError(f"the hub is not running:\n{self.log[-4000:]}")

    def stop(self) -> None:
        """End the process and what it started here; the workspaces stay."""
        if self._process is not None and self._process.poll() is None:
            started = psutil.Process(self._process.pid).children(recursive=True)
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=PATIENCE_SECONDS)
            # A service that ended by itself just then may have been started once more than the hub knows.
            for process in psutil.wait_procs(started, timeout=5)[1]:
                process.kill()

    @property
    def log(self) -> str:
        """Everything that the hub has written so far."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    # --- the API, as an administrator's service -------------------------------------------------------------

    def api(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Ask the REST API."""
        self.check()
        headers = {"Authorization": f"token {self.token}"}
        content = None if body is None else json.dumps(body)
        return httpx.request(
            method, f"{self.base}/api/{path}", headers=headers, content=content, timeout=PATIENCE_SECONDS
        )

    def metrics(self) -> str:
        """Give what the hub counts, in the words of Prometheus."""
        answer = httpx.get(
            f"{self.base}/metrics", headers={"Authorization": f"token {self.token}"}, timeout=PATIENCE_SECONDS
        )
        return answer.raise_for_status().text

    def put_in_groups(self, user: str, *groups: str) -> None:
        """Make a user, if need be, and leave them in exactly these groups."""
        self.api("POST", f"users/{user}")
        for group in self.api("GET", f"users/{user}").json()["groups"]:
            self.api("DELETE", f"groups/{group}/users", {"users": [user]}).raise_for_status()
        for group in groups:
            self.api("POST", f"groups/{group}")
            self.api("POST", f"groups/{group}/users", {"users": [user]}).raise_for_status()

    def start_server(self, user: str, options: object = None, *, server: str = "") -> httpx.Response:
        """Start by REST, in the words of the hub's own line."""
        body = options if self._is_5 or options is None else {"user_options": options}
        return self.api("POST", f"users/{user}/{_server(server)}", body)

    def refused_start(self, user: str, options: object = None, *, server: str = "") -> httpx.Response:
        """Start by REST what is refused, until the hub is quick enough to say so in its answer.

        It waits ten seconds for that, and else says that the server is on its way.
        """
        answers: list[httpx.Response] = []

        def missing() -> str | None:
            if (self.server(user, server) or {}).get("pending"):
                return "the last try is on its way"
            answers.append(self.start_server(user, options, server=server))
            return "the hub took longer than ten seconds" if answers[-1].status_code == 202 else None

        until(missing, what="the start to be refused", timeout=SPAWN_SECONDS)
        return answers[-1]

    def server(self, user: str, server: str = "") -> dict[str, Any] | None:
        """The hub's record of a server that is starting or up, with its state."""
        found: dict[str, Any] | None = self.api("GET", f"users/{user}").json()["servers"].get(server)
        return found

    def wait_until_ready(self, user: str, server: str = "") -> dict[str, Any]:
        """Wait until a server is up and return its record."""

        def missing() -> str | None:
            self.check()
            record = self.server(user, server)
            return None if record and record["ready"] else f"its record is {record}; log:\n{self.log[-3000:]}"

        until(missing, what=f"the server of {user} to be ready", timeout=SPAWN_SECONDS)
        record = self.server(user, server)
        assert record is not None
        return record

    def stop_server(self, user: str, server: str = "", *, remove: bool = False) -> None:
        """Stop a server and wait until the hub has forgotten that it ran."""
        body = {"remove": True} if remove else None
        self.api("DELETE", f"users/{user}/{_server(server)}", body).raise_for_status()
        until(
            lambda: "it is still there" if (self.server(user, server) or {}).get("pending") else None,
            what=f"the server of {user} to stop",
            timeout=SPAWN_SECONDS,
        )

    # --- the pages, as a user -------------------------------------------------------------------------------

    @contextmanager
    def browser(self, user: str) -> Iterator[Browser]:
        """Log in."""
        with httpx.Client(timeout=PATIENCE_SECONDS) as client:
            browser = Browser(self.base, client)
            browser.log_in(user)
            yield browser


class Browser:
    """A user's session."""

    def __init__(self, base: str, client: httpx.Client) -> None:
        self.base = base
        self.client = client

    def log_in(self, user: str) -> None:
        self.client.get(f"{self.base}/login").raise_for_status()
        answer = self.client.post(
            f"{self.base}/login",
            params={"_xsrf": self.client.cookies.get("_xsrf")},
            data={"username": user, "password": "x"},
        )
        assert answer.status_code == 302, answer.text

    def spawn_page(self, query: str = "", *, server: str = "", user: str = "") -> httpx.Response:
        return self.client.get(f"{self.base}/spawn{_path(user, server)}{query}")

    def post_form(
        self, fields: Mapping[str, str], *, query: str = "", server: str = "", user: str = ""
    ) -> httpx.Response:
        """Send the spawn page's form."""
        self.spawn_page(server=server, user=user)
        address = f"{self.base}/spawn{_path(user, server)}{query}"
        files = {key: (None, value) for key, value in fields.items()} or {"": (None, "")}
        token = self.client.cookies.get("_xsrf", path="/base/hub/")
        return self.client.post(address, params={"_xsrf": token}, files=files)

    def refused_form(self, fields: Mapping[str, str], *, server: str = "", user: str = "") -> httpx.Response:
        """Send a form that is refused, until the hub is quick enough to say so in its answer.

        It waits one second for that, and else sends the user to the page that shows the progress.
        """
        answers: list[httpx.Response] = []

        def missing() -> str | None:
            answers.append(self.post_form(fields, server=server, user=user))
            return "the hub took longer than a second" if answers[-1].status_code == 302 else None

        until(missing, what="the form to be refused", timeout=SPAWN_SECONDS)
        return answers[-1]


def _server(name: str) -> str:
    return f"servers/{name}" if name else "server"


def _path(user: str, server: str) -> str:
    return f"/{user}/{server}" if server else ""


def error_on(page: str) -> str:
    """The sentence that the hub's page shows above the form, or on its page about a failed start."""
    match = re.search(r'class="spawn-error-msg[^"]*">\s*(?:Error: )?(.*?)\s*</p>', page, re.DOTALL)
    return html.unescape(match[1]) if match else ""


def notice_on(page: str) -> str:
    """The first notice of the form."""
    match = re.search(r'class="gw-notice[^"]*" role="status">(.*?)</p>', page, re.DOTALL)
    return html.unescape(match[1]) if match else ""


def checked_on(page: str) -> list[str]:
    """Values of the cards that are preselected."""
    radios = re.findall(r'<input class="form-check-input" type="radio".*?>', page, re.DOTALL)
    return [re.findall(r'value="(.*?)"', radio)[0] for radio in radios if " checked" in radio]
