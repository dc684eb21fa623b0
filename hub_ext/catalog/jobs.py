"""Runs: what of a profile may be handed off to the cluster as a Job, and how urgent runs may be.

Pure: no clock, no network.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from ..errors import BadValueError
from .base import Count, Duration, Flag, Model, Name, ObjectName, Text
from .policy import Access


class RunKind(StrEnum):
    """What a run becomes on the cluster."""

    JOB = "job"
    """`Job` of Kubernetes: one pod."""
    TRAIN_JOB = "trainjob"
    """`TrainJob` of Kubeflow Trainer: several pods that train together."""
    RAY_JOB = "rayjob"
    """`RayJob` of KubeRay: a Ray cluster that lives as long as the run."""


class Priority(Model):
    """How urgent a run is in its queue, as a WorkloadPriorityClass of Kueue."""

    display_name: Text
    """What users read."""
    value: int = Field(ge=-1_000_000, le=1_000_000, strict=True)
    """A higher one goes first."""
    default: Flag = False
    """Taken where a run names none; without one it is the first in the list."""
    access: Access | None = None
    """Who may choose it; left out, everyone who may hand off."""


class Jobs(Model):
    """What holds for all runs."""

    priorities: dict[Name, Priority] = Field(default_factory=dict)
    """How urgent runs may be, by the name that the WorkloadPriorityClass gets."""
    claims: tuple[ObjectName, ...] = ()
    """Volume claims of this catalog that exist in the namespace of the runs too, bound to the same data.
    Runs do not mount any other claim."""


class RunRules(Model):
    """How runs of a profile are made. What runs but is not a workspace has `state: hidden`."""

    kinds: tuple[RunKind, ...] = Field(default=(RunKind.JOB,), min_length=1)
    """What a run may become; the first is preselected."""
    max_nodes: Count = 1
    """Most pods with the profile's resources that one run may have."""
    max_duration: Duration | None = None
    """A run ends after this long, waiting in the queue not counted; left out, the service decides."""
    train_runtime: ObjectName | None = None
    """ClusterTrainingRuntime for `trainjob`."""
    ray_version: str | None = Field(default=None, pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")
    """Version of Ray in the images, for `rayjob`; 2.53 or newer."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse kinds of which nothing could be made."""
        if RunKind.TRAIN_JOB in self.kinds and self.train_runtime is None:
            raise BadValueError(
                "trainjob needs trainRuntime", code="missing-key", help="Name a ClusterTrainingRuntime."
            )
        if RunKind.RAY_JOB in self.kinds and self.ray_version is None:
            raise BadValueError(
                "rayjob needs rayVersion",
                code="missing-key",
                help='Write the version of Ray in the images: "2.60.0".',
            )
        return self
