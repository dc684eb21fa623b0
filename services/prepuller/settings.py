"""What an admin may set. All of it has a default that is safe on a large cluster.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from datetime import time, timedelta
from typing import Annotated, Final, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from hub_ext.catalog.base import (
    Duration,
    EnvName,
    Flag,
    LabelKey,
    LabelValue,
    Memory,
    Model,
    Name,
    ObjectName,
)
from hub_ext.catalog.images import ImageRef
from hub_ext.catalog.model import Toleration
from hub_ext.errors import BadValueError, NameRuleError
from hub_ext.names import is_label_key, parse_image
from hub_ext.render.rights import PULLS

NAMESPACE: Final = PULLS
TOOL: Final = "docker.io/library/busybox:1.37-musl"
VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"


def _check_zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadValueError(f"{text!r} is not a time zone", help="Write Europe/Berlin or UTC.") from error
    return text


def _check_annotation(text: str) -> str:
    if not is_label_key(text):
        raise BadValueError(f"{text!r} is not the key of an annotation", help="Write example.com/key.")
    return text


def _check_registry(text: str) -> str:
    """Read the host of a registry; `index.docker.io` is what some tools call Docker Hub."""
    host = "docker.io" if text == "index.docker.io" else text
    try:
        found = parse_image(f"{host}/x/y").registry
    except NameRuleError:
        found = ""
    if not host or found != host:
        raise BadValueError(
            f"{text!r} is not a registry", help="Write its host alone: docker.io, ghcr.io, registry:5000."
        )
    return host


def _check_clock(value: object) -> time:
    """Read `09:00`. A number is what YAML 1.1 makes of it without quotes, and no time of day."""
    if isinstance(value, time):
        return value
    match = re.fullmatch(r"([01][0-9]|2[0-3]):([0-5][0-9])", value) if isinstance(value, str) else None
    if match is None:
        raise BadValueError(f"{value!r} is not a time of day", help='Write it in quotes: "09:00".')
    return time(int(match[1]), int(match[2]))


RegistryHost = Annotated[str, AfterValidator(_check_registry)]
Clock = Annotated[time, BeforeValidator(_check_clock)]
Zone = Annotated[str, AfterValidator(_check_zone)]
AnnotationKey = Annotated[str, AfterValidator(_check_annotation)]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Limits(Model):
    """How much may be under way at once. A node never fetches more than one image of ours at a time."""

    total: int = Field(default=40, ge=1)
    """Pulls in the whole cluster."""
    per_pool: int = Field(default=20, ge=1)
    """Pulls on the nodes of one pool."""
    per_registry: int = Field(default=20, ge=1)
    """Pulls from one registry: its bandwidth over what one node draws."""
    registries: dict[RegistryHost, int] = Field(default_factory=dict)
    """Other limits by registry host: `{docker.io: 2}`."""
    canary: Flag = True
    """Fetch an image to one node first, and to all others when that worked."""
    canary_wait: Duration = timedelta(minutes=1)
    """The others do not wait for that one node longer than this, while it fetches and nothing failed: what is
    wrong with a reference, a login or a registry shows within seconds."""
    timeout: Duration = timedelta(minutes=45)
    """The node gives up a pull after this long, even while the prepuller does not run."""
    scheduling_wait: Duration = timedelta(minutes=1)
    """How long a pod may wait for room on its node."""
    first_retry: Duration = timedelta(seconds=30)
    """Time until the second try; it doubles with each failure."""
    longest_retry: Duration = timedelta(minutes=30)
    """Longest time between two tries."""
    pins: int = Field(default=10_000, ge=1)
    """Most pods kept as pins. Kubernetes itself deletes ended pods from 12,500 on
    (`--terminated-pod-gc-threshold`)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for host, number in self.registries.items():
            if number < 1:
                raise BadValueError(f"the limit of {host} is {number}", help="Write 1 or more.")
        return self

    def of_registry(self, host: str) -> int:
        """Give the limit of one registry."""
        return self.registries.get(host, self.per_registry)


class Release(Model):
    """What becomes of images that the catalog does not need any more."""

    enabled: Flag = True
    """Unpin them, so that the kubelet may remove them when it needs the disk."""
    after: Duration = timedelta(hours=24)
    """How long an image must have been unneeded: a mistake in the catalog costs nothing until then."""
    keep_previous: int = Field(default=1, ge=0)
    """Retired versions of each profile that stay warm, the newest first, for going back."""


class Seats(Model):
    """A class, a course, a workshop: many starts at a known time."""

    profile: Name
    """The profile that will be started."""
    weekdays: tuple[Weekday, ...] = ()
    """Days of the week; empty means every day."""
    at: Clock
    """When people come."""
    lead: Duration = timedelta(hours=2)
    """How long before it is worth fetching first."""
    seats: int = Field(ge=1)
    """Starts that are expected."""
    zone: Zone = "UTC"
    """Time zone of `at`."""


class ExtraImage(Model):
    """An image that some workspaces need and neither the catalog nor `shared.images` names."""

    ref: ImageRef
    """The image."""
    pull_secrets: tuple[ObjectName, ...] = ()
    """Secrets with the registry's credentials, beside those of all workspaces."""
    pools: tuple[Name, ...] = ()
    """Pools of the catalog; empty means all of them."""


class Pods(Model):
    """How the pods of the prepuller look."""

    namespace: ObjectName = NAMESPACE
    """A namespace of their own, away from the hub's events."""
    tool: ImageRef = TOOL
    """Any image with a static busybox: it lends the program that runs in images without a shell."""
    tool_path: str = Field(default="/bin/busybox", pattern=r"^/[^\s]*$")
    """Where the busybox is in that image."""
    service_account: ObjectName = "default"
    """It needs no rights. Its own pull secrets must be those of the workspaces' account."""
    priority_class: ObjectName | None = None
    """Priority of the pods. One with `preemptionPolicy: Never` keeps them from pushing placeholders out."""
    run_as_user: int = Field(default=65534, ge=1)
    """User of the containers."""
    annotations: dict[AnnotationKey, str] = Field(default_factory=dict)
    """Further annotations, such as those that keep service meshes out."""
    environment: dict[EnvName, str] = Field(default_factory=dict)
    """Further variables of the container."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if VISIBLE_DEVICES in self.environment:
            raise BadValueError(
                f"{VISIBLE_DEVICES} is always void: a pull must not see a GPU", help="Remove it."
            )
        return self


class Shared(Model):
    """What the hub's own configuration gives every workspace, beside what the catalog says."""

    pull_secrets: tuple[ObjectName, ...] = ()
    """Pull secrets (`imagePullSecrets`, `singleuser.image.pullSecrets`), by the same names."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that they tolerate (`scheduling.userPods.tolerations`, `singleuser.extraTolerations`)."""
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Nodes that they are kept to (`singleuser.nodeSelector`); of equal keys the pool's counts."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] | None = None
    """When their images are fetched (`singleuser.image.pullPolicy`). Pulls then do the same; left out, a tag
    is asked for anew and a digest is not. With Never, images that nodes were given by other means are only
    looked for."""
    images: tuple[ImageRef, ...] = ()
    """Images of init containers and sidecars (`singleuser.initContainers`, `singleuser.extraContainers`)."""


class Settings(Model):
    """The prepuller's settings."""

    pods: Pods = Pods()
    shared: Shared = Shared()
    limits: Limits = Limits()
    release: Release = Release()
    extra_images: tuple[ExtraImage, ...] = ()
    """Images beside those of the catalog."""
    skip: tuple[Name, ...] = ()
    """Profiles whose images are not fetched ahead, because they are seldom started or too large."""
    schedule: tuple[Seats, ...] = ()
    """When many starts are expected."""
    default_bonus: int = Field(default=10, ge=0)
    """Starts that being preselected is worth, where images compete."""
    disk_share: float | None = Field(default=None, gt=0, le=1)
    """Share of a node's disk (`ephemeral-storage`) that wanted images may take, by the sizes that kubelets
    report; left out, there is no budget."""
    disk_bytes: Memory | None = None
    """The same as an amount; the smaller of both counts."""
