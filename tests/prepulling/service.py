"""The prepuller's own process in this one: everything but its web server.

Shell: talks to the cluster.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from services.base import Context
from services.base.loop import LoopMetrics
from services.hub import Hub
from services.kube import Kube
from services.prepuller.app import PrepullerService, PrepullerSettings
from tests.devcluster.errors import NotReadyError
from tests.devcluster.waiting import PATIENCE_SECONDS, until_met

CONTEXT = Context(
    name="prepuller",
    prefix="/services/prepuller/",
    hub_prefix="/hub/",
    address="127.0.0.1",
    port=0,
    token="unused",
    api_url="http://127.0.0.1:9/hub/api",
)


_RESOURCES = ("pods", "events", "nodes")


class Running:
    """A prepuller that works, and what it asks the API server for."""

    def __init__(self, service: PrepullerService, kube: Kube) -> None:
        self.service = service
        self.requests: Counter[str] = Counter()
        """Requests to the API server by method and resource; a watch counts once, when it begins."""
        ask = kube.api.rest_client.request

        async def counted(method: str, url: str, *args: Any, **kwargs: Any) -> Any:
            parts = url.partition("?")[0].split("/")
            self.requests[f"{method} {next(part for part in parts if part in _RESOURCES)}"] += 1
            return await ask(method, url, *args, **kwargs)

        kube.api.rest_client.request = counted

    def states(self) -> Counter[str]:
        """How many places are in which state; empty while nothing is in sight."""
        moment = self.service.moment
        return Counter(sight.state.value for sight in moment.picture.sights.values()) if moment else Counter()

    def looks(self) -> float:
        """How many looks have ended well."""
        labels = {"loop": self.service.loop.name, "outcome": "done"}
        return self.service.registry.get_sample_value("gpu_workspaces_service_passes_total", labels) or 0

    def all_ended(self) -> bool:
        """Whether every pod has ended for good: nothing of them changes any more."""
        moment = self.service.moment
        return moment is not None and all(pod.over for pod in moment.picture.pods)

    async def until(self, condition: Callable[[], bool], *, what: str) -> None:
        """Wait for something that the prepuller itself sees."""
        try:
            await until_met(condition, what=what)
        except NotReadyError:
            moment = self.service.moment
            told = moment.summary.as_dict() if moment else "nothing in sight"
            raise AssertionError(f"no {what}: {self.states()}, {told}") from None


@asynccontextmanager
async def running(
    kubeconfig: Path, catalog: dict[str, Any], folder: Path, **settings: Any
) -> AsyncIterator[Running]:
    """Run the service with these settings until the block ends."""
    file = folder / "catalog.yaml"
    file.write_text(yaml.safe_dump(catalog))
    given = PrepullerSettings.model_validate({"catalog": str(file), **settings})
    registry = CollectorRegistry()
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(Hub(CONTEXT.api_url, CONTEXT.token))
        service = PrepullerService(given, CONTEXT, hub, registry)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(kubeconfig))
            await service.open(stack)
        found = Running(service, service.kube)
        metrics = LoopMetrics(registry)
        loops = service.loops()
        tasks = [asyncio.create_task(loop.run(metrics)) for loop in loops]
        try:
            yield found
        finally:
            for loop in loops:
                loop.end()
            await asyncio.wait(tasks, timeout=PATIENCE_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
