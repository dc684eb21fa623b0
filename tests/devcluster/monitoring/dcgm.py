"""What NVIDIA's dcgm-exporter says of cards, slices and shares, with its own gaps and mistakes. Pure.

The text is that of dcgm-exporter 4.5: names, order and escaping of labels, `# HELP` and `# TYPE`, whole
numbers for what DCGM counts and six digits for what it measures. Source: its `internal/pkg/rendermetrics`,
`etc/default-counters.csv` and `internal/pkg/transformation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Limit


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Field(StrEnum):
    """DCGM's fields that the exporter's usual list has and somebody here asks for."""

    UTIL = "DCGM_FI_DEV_GPU_UTIL"
    MEMORY_COPY = "DCGM_FI_DEV_MEM_COPY_UTIL"
    MEMORY_FREE = "DCGM_FI_DEV_FB_FREE"
    MEMORY_USED = "DCGM_FI_DEV_FB_USED"
    POWER = "DCGM_FI_DEV_POWER_USAGE"
    XID = "DCGM_FI_DEV_XID_ERRORS"
    ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
    DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"


HELP: Mapping[Field, str] = {
    Field.UTIL: "GPU utilization (in %).",
    Field.MEMORY_COPY: "Memory utilization (in %).",
    Field.MEMORY_FREE: "Framebuffer memory free (in MiB).",
    Field.MEMORY_USED: "Framebuffer memory used (in MiB).",
    Field.POWER: "Power draw (in W).",
    Field.XID: "Value of the last XID error encountered.",
    Field.ENGINE: "Ratio of time the graphics engine is active.",
    Field.TENSOR: "Ratio of cycles the tensor (HMMA) pipe is active.",
    Field.DRAM: "Ratio of cycles the device memory interface is active sending or receiving data.",
}
MEASURED = frozenset({Field.POWER, Field.ENGINE, Field.TENSOR, Field.DRAM})
"""Fields that DCGM gives as floating-point numbers."""
PER_PROCESS = frozenset({Field.UTIL, Field.MEMORY_USED})
"""Fields that the exporter takes apart by process where pods share a card."""

Share = Annotated[float, Limit(ge=0, le=1)]


class Pod(Model):
    """Whose container holds a device."""

    namespace: str
    name: str
    container: str = "notebook"


class Card(Model):
    """A card in its slot."""

    index: int = 0
    uuid: str
    model: str = "NVIDIA H200"
    bus: str = "00000000:10:00.0"
    node: str = "gpu-1"


class Use(Model):
    """How much a card, slice or pod does. None: the exporter does not have that field, and leaves it out."""

    engine: Share | None = None
    """`ENGINE`, of the time."""
    util: Annotated[float, Limit(ge=0, le=100)] | None = None
    """`UTIL`, percent."""
    memory_mib: float | None = None
    more: Mapping[Field, float] = {}

    def values(self) -> dict[Field, float]:
        named = {Field.ENGINE: self.engine, Field.UTIL: self.util, Field.MEMORY_USED: self.memory_mib}
        return {**{field: value for field, value in named.items() if value is not None}, **self.more}


class Slice(Model):
    """A MIG slice."""

    profile: str
    """As NVIDIA names it: `1g.18gb`."""
    instance: int
    """The GPU instance's id on its card."""
    use: Use
    pod: Pod | None = None


class Reading(Model):
    """Lines of one thing: of a card, a slice, or a card once more for one of the pods that share it."""

    card: Card
    profile: str = ""
    instance: int | None = None
    pod: Pod | None = None
    virtual: int | None = None
    """The share's number, label `vgpu`."""
    values: Mapping[Field, float]

    def labels(self) -> dict[str, str]:
        """In the exporter's order."""
        card = self.card
        labels = {
            "gpu": str(card.index),
            "UUID": card.uuid,
            "pci_bus_id": card.bus,
            "device": f"nvidia{card.index}",
            "modelName": card.model,
        }
        if self.profile:
            labels |= {"GPU_I_PROFILE": self.profile, "GPU_I_ID": str(self.instance)}
        labels["Hostname"] = card.node
        if self.pod:
            pod = self.pod
            labels |= {"container": pod.container, "namespace": pod.namespace, "pod": pod.name}
        if self.virtual is not None:
            labels["vgpu"] = str(self.virtual)
        return labels


def whole_card(card: Card, use: Use, *, pod: Pod | None = None) -> tuple[Reading, ...]:
    """A card that nobody or one pod has.

    Without a pod it is also what is said of a share whose resource was renamed: the exporter knows
    `nvidia.com/gpu` and `nvidia.com/mig-*` only.
    """
    return (Reading(card=card, pod=pod, values=use.values()),)


def sliced_card(card: Card, *slices: Slice) -> tuple[Reading, ...]:
    """A card cut by MIG: its slices, not itself, and without `UTIL`, which DCGM does not have for them."""
    return tuple(
        Reading(
            card=card,
            profile=part.profile,
            instance=part.instance,
            pod=part.pod,
            values={field: value for field, value in part.use.values().items() if field is not Field.UTIL},
        )
        for part in slices
    )


def shared_card(
    card: Card, use: Use, pods: Mapping[Pod, Use] | Sequence[Pod], *, virtual: bool = True
) -> tuple[Reading, ...]:
    """A card that several pods share by time-slicing or MPS.

    Parameters
    ----------
    use
        What the card itself does.
    pods
        Who shares it, in the order of their shares, with what the exporter finds out about each by its
        processes. Without that, or for what is None, it writes zeros, as it does when it cannot see them.
    virtual
        Whether the exporter runs with `KUBERNETES_VIRTUAL_GPUS`. Else the last pod is taken for the owner of
        the card, and the others are not mentioned.
    """
    found = pods if isinstance(pods, Mapping) else dict.fromkeys(pods, Use())
    if not virtual or not found:
        return whole_card(card, use, pod=list(found)[-1] if found else None)
    own = use.values()
    shares = (
        Reading(
            card=card,
            pod=pod,
            virtual=number,
            values={
                **{field: value for field, value in own.items() if field not in PER_PROCESS},
                **{field: found[pod].values().get(field, 0) for field in own if field in PER_PROCESS},
            },
        )
        for number, pod in enumerate(found)
    )
    device = {field: value for field, value in own.items() if field in PER_PROCESS}
    return (Reading(card=card, values=device), *shares)


def render(readings: Iterable[Reading]) -> str:
    """The exporter's page."""
    lines: list[str] = []
    said = list(readings)
    for field in Field:
        these = [(reading.labels(), reading.values[field]) for reading in said if field in reading.values]
        if these:
            lines += [f"# HELP {field} {HELP[field]}", f"# TYPE {field} gauge"]
            lines += [f"{field}{braced(labels)} {number(field, value)}" for labels, value in these]
    return "".join(f"{line}\n" for line in lines)


def braced(labels: Mapping[str, str]) -> str:
    """Labels as the exposition format has them."""
    escape = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{name}="{value.translate(escape)}"' for name, value in labels.items()) + "}"


def number(field: Field, value: float) -> str:
    return f"{value:.6f}" if field in MEASURED else f"{value:.0f}"
