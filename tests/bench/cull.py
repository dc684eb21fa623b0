"""The idle-culler beside jupyterhub-idle-culler 2.0, on one real hub with 10,000 users and 2,000 servers.

    python -m tests.bench.cull

Compares what a pass in which nothing is idle costs the hub, how long it takes, and how long a stop takes
among 200 whose pods are slow: the other stops a few, one after the other, and is compared by the stop. Prints
ratios; says nothing of a machine's speed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
from jupyterhub import orm
from jupyterhub.roles import get_default_roles
from prometheus_client import CollectorRegistry
from sqlalchemy import insert

from services.hub import Hub
from services.idle_culler.book import Book
from services.idle_culler.culler import Culler, Tools
from services.idle_culler.memory import Memory, Store
from services.idle_culler.metrics import CullerMetrics
from services.idle_culler.notify import Notifier
from services.idle_culler.observe import Observer
from services.idle_culler.policy import Policy
from services.idle_culler.rights import RIGHTS
from services.idle_culler.stopping import Stopper
from tests.devcluster import cache
from tests.devcluster.ports import free_port
from tests.devcluster.waiting import until
from tests.hub.harness import notebook_server

STOCK = "jupyterhub-idle-culler==2.0.0"
CONFIG = Path(__file__).parent / "cull_hub_config.py"
ROOT = Path(__file__).resolve().parents[2]
RUNNER = """
import asyncio, logging, sys, time
from jupyterhub_idle_culler import cull_idle
url, token, limit = sys.argv[1:]
began = time.monotonic()
asyncio.run(cull_idle(url, token, float(limit), logging.getLogger("stock"), concurrency=10))
print(time.monotonic() - began)
"""
HOUR = 3600


class BenchHub:
    """A hub process with its database filled."""

    def __init__(self, folder: Path, args: argparse.Namespace, notebook_port: int) -> None:
        self.tokens = {name: secrets.token_hex(16) for name in ("stock", "ours")}
        self.url = f"http://127.0.0.1:{free_port()}"
        self.api = f"{self.url}/hub/api"
        settings = {
            "folder": str(folder),
            "url": self.url,
            "database": f"sqlite:///{folder}/jupyterhub.sqlite",
            "notebook_port": notebook_port,
            "stop_seconds": args.stop_seconds,
            "tokens": self.tokens,
            "scopes": [scope.name for scope in RIGHTS.scopes],
        }
        fill(settings["database"], args, notebook_port)
        env = {**os.environ, "BENCH": json.dumps(settings), "PYTHONPATH": str(ROOT)}
        self.log = folder / "hub.log"
        with self.log.open("ab") as log:
            argv = [sys.executable, "-m", "jupyterhub", "-f", str(CONFIG)]
            self.process = subprocess.Popen(argv, cwd=folder, env=env, stdout=log, stderr=log)
        try:
            until(lambda: self._missing(args.servers), what="the hub with its servers", timeout=1500)
        except BaseException:
            self.stop()
            raise

    def _missing(self, servers: int) -> str | None:
        found = self.ready()
        return None if found == servers else f"{found} servers are ready"

    def ready(self) -> int | str:
        """Count the servers that are up; or say why that is not known."""
        if self.process.poll() is not None:
            raise AssertionError(self.log.read_text()[-4000:])
        headers = {
            "Authorization": f"token {self.tokens['ours']}",
            "Accept": "application/jupyterhub-pagination+json",
        }
        try:
            answer = httpx.get(f"{self.api}/users?state=ready&limit=1", headers=headers, timeout=60)
        except httpx.TransportError as error:
            return repr(error)
        found: int | str = answer.json()["_pagination"]["total"] if answer.is_success else answer.text
        return found

    def seconds(self) -> float:
        """Processor time that the hub has used so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)


def fill(database: str, args: argparse.Namespace, notebook_port: int) -> None:
    """Write users, and servers that are up; two lots of them have been idle for long."""
    now = datetime.now(UTC).replace(tzinfo=None)
    session = orm.new_session_factory(database)()
    users = [
        {"id": n + 1, "name": f"user-{n:05}", "cookie_id": secrets.token_hex(8)} for n in range(args.users)
    ]
    ids = range(1, args.servers + 1)
    servers = [
        {
            "id": n,
            "proto": "http",
            "ip": "127.0.0.1",
            "port": notebook_port,
            "base_url": f"/user/user-{n - 1:05}/",
        }
        for n in ids
    ]
    both = args.stock_stops + args.stops
    quiet = {n: 20 if n <= args.stock_stops else 10 if n <= both else 0.01 for n in ids}
    spawners = [
        {
            "user_id": n,
            "server_id": n,
            "name": "",
            "state": {"up": True},
            "started": now - timedelta(hours=30),
            "last_activity": now - timedelta(hours=quiet[n]),
            "user_options": {"profile": "notebook"},
        }
        for n in ids
    ]
    # A hub whose users have their role already starts in minutes, not in an hour.
    role = next(role for role in get_default_roles() if role["name"] == "user")
    roles = [{"user_id": n + 1, "role_id": 1} for n in range(args.users)]
    for table, rows in (
        (orm.User, users),
        (orm.Server, servers),
        (orm.Spawner, spawners),
        (orm.Role, [{"id": 1, "managed_by_auth": False, **role}]),
        (orm.Base.metadata.tables["user_role_map"], roles),
    ):
        session.execute(insert(table), rows)
    session.commit()
    session.close()


class Stock:
    """The other culler, as a process in an environment of its own."""

    def __init__(self, hub: BenchHub) -> None:
        self.hub = hub
        self.python = cache.cache_root() / "venvs" / "bench-idle-culler-2.0.0" / "bin" / "python"
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", self.python.parents[1]], check=True)
            subprocess.run([self.python, "-m", "pip", "install", "--quiet", STOCK], check=True)

    def run(self, limit_seconds: float) -> float:
        """One pass; returns its wall time without the start of Python."""
        argv = [self.python, "-c", RUNNER, self.hub.api, self.hub.tokens["stock"], str(limit_seconds)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        return float(done.stdout)


@contextmanager
def ours(hub: BenchHub, idle: str) -> Iterator[Culler]:
    """Our culler, told to look at the hub alone, as the other does."""
    client = Hub(hub.api, hub.tokens["ours"])
    policy = Policy.model_validate(
        {
            "mode": "act",
            "grace": "0s",
            "defaults": {"idleTimeout": idle, "warnBefore": ["1s"], "withoutAgent": "hub"},
        }
    )

    def clock() -> datetime:
        return datetime.now(UTC)

    every = timedelta(seconds=10)
    observer = Observer(client, None, None, namespaces=(), clock=clock, list_hub_every=timedelta(0))
    tools = Tools(
        stopper=Stopper(client, observer, clock=clock, poll=0.2),
        store=Store(None),
        notifier=Notifier(),
        metrics=CullerMetrics(CollectorRegistry()),
    )
    yield Culler(Book(policy=policy, observer=observer, memory=Memory(), clock=clock, every=every), tools)


async def stop_all(culler: Culler) -> float:
    """Warn, wait, stop; returns how long the stops took."""
    await culler.once()
    await asyncio.sleep(1.1)
    began = time.monotonic()
    await culler.once()
    await culler.drain()
    return time.monotonic() - began


def passes(hub: BenchHub, stock: Stock, rounds: int) -> dict[str, Any]:
    """Passes in which nothing is idle, in turn."""
    found: dict[str, list[float]] = {name: [] for name in ("stockHub", "stockWall", "oursHub", "oursWall")}
    for _ in range(rounds):
        before = hub.seconds()
        found["stockWall"].append(stock.run(48 * HOUR))
        found["stockHub"].append(hub.seconds() - before)
        before, began = hub.seconds(), time.monotonic()
        with ours(hub, "2d") as culler:
            asyncio.run(culler.once())
        found["oursWall"].append(time.monotonic() - began)
        found["oursHub"].append(hub.seconds() - before)
    middle = {name: statistics.median(values) for name, values in found.items()}
    return {
        "hubProcessorTimePerPass": round(middle["oursHub"] / middle["stockHub"], 2),
        "wallTimePerPass": round(middle["oursWall"] / middle["stockWall"], 2),
        "seconds": {name: [round(value, 2) for value in values] for name, values in found.items()},
    }


def stops(hub: BenchHub, stock: Stock) -> dict[str, Any]:
    """Stops by each; what one leaves over, the next has to do, so they are compared by the stop."""
    counts = [hub.ready()]
    theirs = stock.run(15 * HOUR)
    counts.append(hub.ready())
    with ours(hub, "8h") as culler:
        mine = asyncio.run(stop_all(culler))
    counts.append(hub.ready())
    before, between, after = map(int, counts)
    done = {"stock": before - between, "ours": between - after}
    seconds = {"stock": round(theirs, 1), "ours": round(mine, 1)}
    sooner = (theirs / done["stock"]) / (mine / done["ours"])
    return {"timesSooner": round(sooner, 1), "stopped": done, "seconds": seconds}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=2_000)
    parser.add_argument("--stops", type=int, default=200)
    parser.add_argument("--stock-stops", type=int, default=40)
    parser.add_argument("--stop-seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    with notebook_server() as port, tempfile.TemporaryDirectory() as folder:
        hub = BenchHub(Path(folder), args, port)
        try:
            stock = Stock(hub)
            print(json.dumps({"pass": passes(hub, stock, args.rounds)}, indent=2), flush=True)
            print(json.dumps({"stops": stops(hub, stock)}, indent=2))
        finally:
            hub.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
