"""A real Jupyter server with the workspace agent in it, and what a browser does with it.

Shell: starts processes, speaks HTTP and websockets.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.devcluster.waiting import PATIENCE_SECONDS, until

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "test-token"


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """A running server."""

    url: str
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path

    def client(self) -> httpx.Client:
        """A browser's requests."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"token {TOKEN}"},
            timeout=PATIENCE_SECONDS,
            trust_env=False,
        )

    def check(self) -> None:
        """Raise if it has ended."""
        assert self.process.poll() is None, self.log.read_text()[-4000:]

    @asynccontextmanager
    async def kernel(self, code: str, *, leave: bool = False) -> AsyncIterator[str]:
        """A kernel that runs code, joined as a browser is; yields its id.

        With `leave` the browser is closed as soon as the code runs.
        """
        with self.client() as client:
            kernel = client.post("api/kernels", json={}).raise_for_status().json()["id"]
        socket = await self._socket(f"api/kernels/{kernel}/channels?session_id={secrets.token_hex(8)}")
        try:
            await socket.write_message(request("execute_request", code=code, silent=False, allow_stdin=True))
            if leave:
                await _until_running(socket)
                await _leave(socket)
            yield kernel
        finally:
            await _leave(socket)
            with self.client() as client:
                client.delete(f"api/kernels/{kernel}")

    @asynccontextmanager
    async def terminal(self, *lines: str) -> AsyncIterator[str]:
        """A terminal into which lines are typed; yields its name."""
        with self.client() as client:
            name = client.post("api/terminals").raise_for_status().json()["name"]
        socket = await self._socket(f"terminals/websocket/{name}")
        try:
            for line in lines:
                await socket.write_message(json.dumps(["stdin", f"{line}\r"]))
            yield name
        finally:
            await _leave(socket)
            with self.client() as client:
                client.delete(f"api/terminals/{name}")

    async def _socket(self, path: str) -> WebSocketClientConnection:
        url = f"{self.url.replace('http', 'ws', 1)}{path}"
        return await websocket_connect(HTTPRequest(url, headers={"Authorization": f"token {TOKEN}"}))


async def _until_running(socket: WebSocketClientConnection) -> None:
    """Wait until the kernel says that it took up what was sent."""
    while (message := await socket.read_message()) is not None:
        if json.loads(message)["msg_type"] == "execute_input":
            return


async def _leave(socket: WebSocketClientConnection) -> None:
    """Close a websocket, if it is not, and wait until the other end has, too."""
    if socket.protocol is None:
        return
    socket.close()
    while await socket.read_message() is not None:
        pass


def request(kind: str, **content: Any) -> str:
    """A message to a kernel, as JSON."""
    header = {
        "msg_id": secrets.token_hex(8),
        "msg_type": kind,
        "username": "test",
        "session": "test",
        "version": "5.3",
    }
    return json.dumps(
        {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "stdin" if kind == "input_reply" else "shell",
        }
    )


@contextmanager
def running_notebook(
    folder: Path, environment: Mapping[str, str], *, agent: bool = True
) -> Iterator[Notebook]:
    """Start a server whose files are in a folder; it and all its processes end with the block."""
    (folder / "files").mkdir(parents=True)
    extensions = {"jupyter_server_terminals": True, "services.workspace_agent": agent}
    log = folder / "log"
    command = [
        *(sys.executable, "-m", "jupyter_server", "--port=0", "--no-browser", "--allow-root"),
        *(f"--IdentityProvider.token={TOKEN}", "--ServerApp.disable_check_xsrf=True"),
        f"--ServerApp.jpserver_extensions={extensions}",
        f"--ServerApp.root_dir={folder / 'files'}",
        *("--ServerApp.terminado_settings={'shell_command': ['/bin/bash', '--norc']}",),
    ]
    own = {
        "HOME": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PATH": os.environ["PATH"],
        **environment,
    }
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env=own, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            yield Notebook(url=_url(process, log), process=process, folder=folder, log=log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_SECONDS)


def _url(process: subprocess.Popen[bytes], log: Path) -> str:
    found: list[str] = []

    def missing() -> str | None:
        match = re.search(r"http://127\.0\.0\.1:\d+/", log.read_text())
        found[:] = [match[0]] if match else []
        return None if found else "no address in its log"

    def check() -> None:
        assert process.poll() is None, log.read_text()[-4000:]

    until(missing, what="the Jupyter server", check=check)
    return found[0]
