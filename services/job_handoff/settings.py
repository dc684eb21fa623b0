"""What an admin tells the service in its file.

Pure: no clock, no network.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from hub_ext.catalog.base import Count, Duration, EnvName, Flag, Memory, Model, Name, ObjectName, Text
from hub_ext.errors import BadValueError

from ..base.settings import ServiceSettings

DEFAULT_ENVIRONMENT = (
    "APP_*",
    "HF_HUB_OFFLINE",
    "LOG_LEVEL",
    "MKL_NUM_THREADS",
    "NCCL_DEBUG",
    "OMP_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_OFFLINE",
    "TZ",
    "WANDB_MODE",
    "WANDB_PROJECT",
)


class StoreSettings(Model):
    """Where sources, results and records are kept. Keys of S3 come from `AWS_*` variables or a role."""

    url: Text
    """`s3://bucket/prefix`, or `file:///folder` on a volume of the service."""
    endpoint: str | None = None
    """Address of an S3 that is not Amazon's."""
    region: str | None = None
    """Where the bucket is; `us-east-1` if left out."""
    allow_http: Flag = False
    """Speak to the endpoint without TLS."""
    direct: Flag = False
    """Let pods of runs fetch and put files at the store itself, by addresses that are signed for one file and
    a short time. Otherwise everything goes through the service."""


class RunnerSettings(Model):
    """How pods of runs reach the service."""

    url: str = Field(pattern=r"^https?://[^\s]+$")
    """Address of the service for pods: `http://proxy-public.jhub/services/job-handoff/`."""
    secret_file: Path | None = None
    """File with the secret that tokens of runs are made with; left out, it is made from the service's own
    token, and runs of before lose touch when that changes."""


class Bounds(Model):
    """How much a run, and a user, may ask for."""

    runs_per_user: Count = 50
    """Runs of a user that have not ended, and schedules."""
    max_duration: Duration = timedelta(days=2)
    """For profiles that do not say how long."""
    source_size: Memory = 512 * 1024 * 1024
    """Unpacked."""
    source_packed: Memory = 200 * 1024 * 1024
    """As it is uploaded."""
    source_files: Count = 20_000
    """Files of one source."""
    inline_size: int = Field(default=256 * 1024, ge=0, le=900_000, strict=True)
    """Archives up to this many bytes travel in a ConfigMap: they arrive even when the service is away."""
    output_size: Memory = 5 * 1024**3
    """One file of a run."""
    kept_files: Count = 100_000
    """Files of one user in the store: sources, results, logs, checkpoints and records."""
    kept_size: Memory = 200 * 1024**3
    """Bytes of them."""
    log_size: Memory = 4 * 1024**2
    """What is kept of a log: its end."""


class Keeping(Model):
    """How long things are kept after a run has ended."""

    objects: Duration = timedelta(days=2)
    """Job, TrainJob or RayJob with its pods."""
    files: Duration = timedelta(days=90)
    """Results, logs, checkpoints and the record, in the store."""


class Network(Model):
    """What pods of runs may reach, for the NetworkPolicies."""

    namespaces: tuple[Name, ...] = ()
    """Namespaces that they reach: the one of the hub's proxy, so that they reach the service."""
    addresses: tuple[Text, ...] = ()
    """Further addresses (CIDR): an object store, a data server."""
    internet: Flag = False
    """Whether they reach public addresses."""
    operators: tuple[Name, ...] = ("kuberay-operator",)
    """Namespaces of operators that look at the pods of a run."""


class HandoffSettings(ServiceSettings):
    """The settings of job-handoff."""

    catalog: Path
    """File or folder with the catalog, the same as the hub's."""
    namespace: Name
    """Where runs are; nothing else should be there."""
    server_namespaces: tuple[Name, ...] = ()
    """Where users' servers run: they count against the same limits."""
    service_account: ObjectName = "handoff-runner"
    """Of the pods of runs; it has no rights and its token is not mounted."""
    store: StoreSettings
    runner: RunnerSettings
    groups: tuple[Text, ...] = ()
    """Groups of the hub whose members may hand off; empty lets everybody whom a job profile is offered to."""
    documented_groups: tuple[Text, ...] = ()
    """Groups that your users' guide names; a difference to `groups` is found at the start."""
    git_hosts: tuple[Text, ...] = ()
    """Hosts that commits may come from, without a password; empty allows none."""
    environment: tuple[Text, ...] = DEFAULT_ENVIRONMENT
    """Names of variables that users may set; `*` stands for anything."""
    team_secrets: dict[Name, ObjectName] = Field(default_factory=dict)
    """Per team a Secret in the namespace of the runs whose keys become variables of its runs, such as the
    keys of the team's part of an S3 bucket."""
    fixed_environment: dict[EnvName, str] = Field(default_factory=dict)
    """Variables of every run."""
    run_as_user: int = Field(default=1000, ge=1, strict=True)
    """User id of runs whose profile names none; never root."""
    run_as_group: int = Field(default=100, ge=0, strict=True)
    """Group id of runs whose profile names none."""
    fs_group: int = Field(default=100, ge=0, strict=True)
    """Group that owns the volumes of runs."""
    work_size: Memory = 20 * 1024**3
    """Disk of a run's files, where its profile has no `scratch`."""
    grace: Duration = timedelta(seconds=120)
    """From SIGTERM to SIGKILL: the time to save a checkpoint."""
    stuck_after: Duration = timedelta(minutes=20)
    """A run that was admitted and has no running pod after this long gives its quota back."""
    unbounded_resources: tuple[Text, ...] = ()
    """`resources.excludeResourcePrefixes` of Kueue's configuration."""
    network: Network = Network()
    bounds: Bounds = Bounds()
    keep: Keeping = Keeping()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.namespace in self.server_namespaces:
            raise BadValueError(
                "runs and servers share a namespace: who may create Jobs there may use every Secret, volume "
                "and account in it",
                help="Give runs a namespace of their own.",
            )
        return self
