"""Pools: where workspaces are placed, and what a GPU is there.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from ..errors import BadValueError
from ..gpu.resources import KARPENTER, is_accelerator
from ..gpu.sharing import Sharing, Strategy
from .base import Count, Duration, Flag, LabelKey, LabelValue, Model, ObjectName, Text, number_schema
from .images import DottedVersion


class Toleration(Model):
    """A taint that workspaces of this pool accept, in the spelling of Kubernetes."""

    key: LabelKey | None = None
    """Taint key; left out (with `operator: Exists`) it means every taint."""
    operator: Literal["Exists", "Equal"] = "Equal"
    """Exists, or Equal to `value`."""
    value: LabelValue | None = None
    """Taint value for Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect that is tolerated; left out it means all."""
    toleration_seconds: int | None = Field(default=None, ge=0)
    """How long after NoExecute the pod may stay, in seconds."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse what the API server would refuse in every pod (core/v1 validation of tolerations)."""
        if self.operator == "Exists" and self.value is not None:
            raise BadValueError("Exists goes without value", help="Remove value, or write operator: Equal.")
        if self.operator == "Equal" and not self.key:
            raise BadValueError(
                "key is missing", code="missing-key", help="Name the taint; operator: Exists alone means all."
            )
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise BadValueError(
                "tolerationSeconds belongs to NoExecute", help="Write effect: NoExecute, or remove it."
            )
        return self


Weight = Annotated[Decimal, WithJsonSchema(number_schema())]


class _Gpu(Model):
    product: LabelValue | None = None
    """The card, as in the node label `nvidia.com/gpu.product` but without `-SHARED` and `-MIG-…`."""
    via: Literal["device-plugin", "dra"] = "device-plugin"
    """How pods ask for it. `dra` is reserved for resource claims and not usable yet."""
    device_class: ObjectName | None = None
    """Device class, with `via: dra`."""
    select: Text | None = None
    """CEL expression that picks devices, with `via: dra`."""
    weight: Weight = Field(default=Decimal(1), ge=0, le=1000)
    """GPU equivalents of one whole card; slices and shares count their fraction of it."""
    driver: DottedVersion | None = None
    """Driver version on these nodes, for the check against the CUDA version of images."""
    per_node: Count | None = None
    """Cards on one node of this pool; a profile cannot ask for more."""


class ExclusiveGpu(_Gpu):
    """Whole cards: nobody else is on the card."""

    sharing: Literal[Sharing.EXCLUSIVE]
    """How a card is given out."""
    resource_name: LabelKey = "nvidia.com/gpu"
    """Resource that the device plugin offers; `amd.com/gpu` for AMD's."""


class MigGpu(_Gpu):
    """Slices of a card (Multi-Instance GPU): each with its own memory and its own faults."""

    sharing: Literal[Sharing.MIG]
    """How a card is given out."""
    product: LabelValue
    """The card, as in the node label `nvidia.com/gpu.product`; it decides which slices exist."""
    strategy: Strategy = Strategy.MIXED
    """`mixed`: one resource name per slice size. `single`: all slices alike, named `nvidia.com/gpu`."""
    geometry: dict[Text, Count] = Field(min_length=1)
    """Slices per card, such as `{1g.18gb: 7}`; it must fit the card."""


class TimeSlicedGpu(_Gpu):
    """Turns on a card: neither memory nor faults are kept apart."""

    sharing: Literal[Sharing.TIME_SLICING]
    """How a card is given out."""
    replicas: int = Field(ge=2, le=256, strict=True)
    """Shares per card."""
    rename_by_default: Flag = False
    """The device plugin adds `.shared` to the resource name."""
    fail_requests_greater_than_one: Flag = True
    """The device plugin refuses to give one pod two shares; NVIDIA recommends true (its default is false)."""
    resource_name: LabelKey | None = None
    """Resource name, if the device plugin's configuration renames it to something else."""


class MpsGpu(_Gpu):
    """Shares of a card by NVIDIA's Multi-Process Service: equal parts, memory capped, faults shared."""

    sharing: Literal[Sharing.MPS]
    """How a card is given out."""
    replicas: int = Field(ge=2, le=48, strict=True)
    """Shares per card; each gets this fraction of memory and threads."""
    rename_by_default: Flag = False
    """The device plugin adds `.shared` to the resource name."""
    fail_requests_greater_than_one: Flag = True
    """The device plugin refuses to give one pod two shares."""
    resource_name: LabelKey | None = None
    """Resource name, if the device plugin's configuration renames it to something else."""


Gpu = Annotated[ExclusiveGpu | MigGpu | TimeSlicedGpu | MpsGpu, Field(discriminator="sharing")]


class Pool(Model):
    """A set of nodes, by labels and taints."""

    display_name: str = ""
    """What users read about the place."""
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: tuple[Toleration, ...] = ()
    """Added to those that the hub sets for all user pods."""
    runtime_class: ObjectName | None = None
    """RuntimeClass of the pods. Not needed where the container toolkit works by CDI."""
    priority_class: ObjectName | None = None
    """PriorityClass of the pods."""
    scheduler: ObjectName | None = None
    """Scheduler to ask, if not the cluster's default."""
    scale_up: Duration | None = None
    """How long a new node usually takes where nodes are added on demand; absent where they are not."""
    autoscaler: Literal["cluster-autoscaler", "karpenter"] | None = None
    """What adds the nodes. `karpenter` adds none for MIG slices and renamed shares. For these,
    `cluster-autoscaler` needs the resource as a tag of the node group that it starts from zero."""
    nodes: Count | None = None
    """Most nodes this pool can have; with `gpu.perNode` it says what the pool can hold at all."""
    gpu: Gpu | None = None
    """What a GPU is here; absent for processors only."""

    def unscaled(self, resources: Iterable[str]) -> tuple[str, ...]:
        """Name those of some GPU resources for which the autoscaler is known to add no node."""
        if self.autoscaler != "karpenter":
            return ()
        return tuple(name for name in resources if is_accelerator(name) and name not in KARPENTER)
