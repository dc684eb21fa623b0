"""A service: what it is told, the hub that it works for, its pages and its periodic work.

Shell: owns connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from tornado.web import RequestHandler

from hub_ext.errors import HubError

from ..hub import Hub
from .loop import Loop
from .settings import ServiceSettings

S = TypeVar("S", bound=ServiceSettings)

NEEDED = ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_API_URL", "JUPYTERHUB_SERVICE_NAME")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a hub tells a service; for one that it does not run, whoever deploys it says the same."""

    name: str
    """Of the service, as the hub has it."""
    prefix: str
    """Path that all of it is below, with a slash at both ends."""
    hub_prefix: str
    """Path of the hub's pages: ``/hub/``."""
    address: str
    port: int
    token: str = field(repr=False)
    api_url: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Context:
        """Read the variables that begin with ``JUPYTERHUB_``.

        Raises
        ------
        HubError
            One that nothing can take the place of is missing.
        """
        if missing := [name for name in NEEDED if not environment.get(name)]:
            raise HubError(
                f"{', '.join(missing)} not set: a hub sets them for services that it runs; "
                "set them for a service that runs elsewhere"
            )
        name = environment["JUPYTERHUB_SERVICE_NAME"]
        base = environment.get("JUPYTERHUB_BASE_URL", "/").rstrip("/")
        listen = urlsplit(environment.get("JUPYTERHUB_SERVICE_URL") or "http://0.0.0.0:8080")
        return cls(
            name=name,
            prefix=environment.get("JUPYTERHUB_SERVICE_PREFIX") or f"{base}/services/{name}/",
            hub_prefix=f"{base}/hub/",
            address=_listening(listen.hostname or ""),
            port=listen.port or 80,
            token=environment["JUPYTERHUB_API_TOKEN"],
            api_url=environment["JUPYTERHUB_API_URL"],
        )


def _listening(host: str) -> str:
    """Say where to listen: at an address, or at all of them for a name, which may be that of a Service."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ip_address(host))
    except ValueError:
        return "0.0.0.0"  # noqa: S104 - the pod's own


class Service(Generic[S]):
    """Base of all services. Subclasses override what they need of the methods below."""

    settings_type: ClassVar[type[ServiceSettings]] = ServiceSettings
    title: ClassVar[str] = ""
    """Above all its pages."""
    package: ClassVar[str] = ""
    """Python package with its templates."""

    def __init__(self, settings: S, context: Context, hub: Hub, registry: CollectorRegistry) -> None:
        self.settings = settings
        self.context = context
        self.hub = hub
        self.registry = registry
        """For its metrics; they are shown at `/metrics`."""

    async def open(self, stack: AsyncExitStack) -> None:
        """Connect to what it needs; what is entered into `stack` is closed when the service ends."""

    def loops(self) -> Sequence[Loop]:
        """Give the periodic work; called once, after `open`."""
        return ()

    def handlers(self) -> Iterable[tuple[str, type[RequestHandler], dict[str, Any]]]:
        """Give path below the prefix (a regular expression), handler and its arguments."""
        return ()
