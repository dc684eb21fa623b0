"""What an admin tells the idle-culler in its file.

Pure: no clock, no network.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from hub_ext.catalog.base import Duration, Flag, Model, Name
from hub_ext.errors import BadValueError

from ..base import PrometheusSettings, ServiceSettings
from .policy import Policy, Time

ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _check_user_url(text: str) -> str:
    if "{user}" not in text:
        raise BadValueError("the address is the same for all users", help="Put {user} where the name goes.")
    return text


class Notify(Model):
    """Whom to tell, by addresses in the spelling of Apprise (https://github.com/caronc/apprise)."""

    users: tuple[Annotated[str, AfterValidator(_check_user_url)], ...] = ()
    """Addresses of the user who is warned; `{user}` stands for the name, escaped:
    `mailtos://culler:secret@mail.example.com?to={user}@example.com`."""
    admins: tuple[str, ...] = ()
    """Addresses that hear of what needs a look: a stop that ended badly, a source that does not answer, too
    many stops at once."""
    file: Path | None = None
    """YAML file with `users` and `admins` of the same kind, such as a mounted secret."""


class Record(Model):
    """A recording of what was observed, for `gpu-workspaces cull replay`."""

    folder: Path
    """One compressed file a day."""
    every: Duration = timedelta(minutes=5)
    """How often all servers are written down."""
    days: int = Field(default=14, ge=1, le=366, strict=True)
    """How long files are kept."""


class CullerSettings(ServiceSettings):
    """All settings of the idle-culler."""

    policy: Policy = Policy()
    """What is stopped, and when."""
    catalog: Path | None = None
    """The hub's catalog: profiles say their own limits. Left out, the one that the hub names."""
    every: Time = timedelta(minutes=1)
    """How often all servers are judged."""
    list_hub_every: Duration = timedelta(minutes=5)
    """How often servers and pods are listed: the hub knows activity no finer. Who reports is known sooner."""
    kubernetes: Flag = True
    """Look at pods. Without it nobody knows what holds a GPU: only for hubs without any."""
    namespace: Annotated[tuple[Name, ...], BeforeValidator(_one_or_more)] = ()
    """Where workspaces run, one or a list; left out, the culler's own namespace."""
    prometheus: PrometheusSettings | None = None
    """Where GPUs are measured. Without it no server with a GPU is stopped for being idle."""
    window: Time = timedelta(minutes=10)
    """How far back each look goes; at least twenty samples."""
    sample_every: Time = timedelta(seconds=30)
    """Between two samples of a GPU: the larger of the exporter's and the scrape's interval."""
    matchers: str = ""
    """Further label matchers of PromQL, such as `cluster="a"`."""
    state: Path | None = None
    """File that remembers clocks, warnings and keeps over a restart; on a volume."""
    concurrency: int = Field(default=20, ge=1, le=200, strict=True)
    """Stops at a time."""
    stop_within: Duration = timedelta(minutes=5)
    """How long a pod may take to be gone."""
    notify: Notify = Notify()
    record: Record | None = None
    page: str = ""
    """Address of the users' page, put into notices: `https://hub.example.com/services/idle-culler/`."""
    handoff: str = ""
    """Path of the job-handoff service where it runs, such as `/services/job-handoff/`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.window < self.sample_every:
            raise BadValueError(
                "window is shorter than sampleEvery", help="Write twenty times as much or more."
            )
        return self
