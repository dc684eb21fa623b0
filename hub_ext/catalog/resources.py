"""Processors, memory and GPUs of one workspace.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import model_validator

from .base import Count, Cpu, Memory, Model, Name, ShortModel, Text, quantity_schema


class _Amount(ShortModel):
    """A request and a limit. One plain value stands for both."""

    short: ClassVar = quantity_schema("Request and limit at once.")

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return {"request": value, "limit": value}
        return value


class CpuAmount(_Amount):
    """Processors. `cpu: 4` is short for a request and a limit of 4."""

    request: Cpu
    """Reserved for the workspace (millicores)."""
    limit: Cpu | None = None
    """Never more than this (millicores); left out, the workspace may use what the node has free."""


class MemoryAmount(_Amount):
    """Memory. `memory: 16Gi` is short for a request and a limit of 16Gi."""

    request: Memory
    """Reserved for the workspace (bytes)."""
    limit: Memory | None = None
    """Above this the workspace is killed (bytes); left out, it may use what the node has free."""


class GpuRequest(Model):
    """GPUs from one pool. Request and limit are the same, as Kubernetes demands."""

    pool: Name
    """Where they come from, and with that what they are."""
    count: Count = 1
    """How many cards, slices or shares."""
    slice: Text | None = None
    """MIG profile such as `1g.18gb`; may be left out if the pool has one size only."""


class Resources(Model):
    """What a workspace gets."""

    cpu: CpuAmount
    """Processors: one value, or a request and a limit."""
    memory: MemoryAmount
    """Memory: one value, or a request and a limit."""
    gpu: GpuRequest | None = None
    """GPUs of exactly one kind, such as `{pool: gpu, count: 1}`; left out for none."""
    pool: Name | None = None
    """Where a workspace without GPU is placed; with GPUs their pool decides."""


class PartialResources(Model):
    """What an option changes; what it leaves out stays as in the profile."""

    cpu: CpuAmount | None = None
    """Replaces request and limit."""
    memory: MemoryAmount | None = None
    """Replaces request and limit; a request alone takes the limit away."""
    gpu: GpuRequest | None = None
    """Replaces the GPU of the profile as a whole; an explicit `null` takes it away."""
    pool: Name | None = None
    """Where the workspace is placed if it has no GPU."""

    def apply_to(self, base: Resources) -> Resources:
        """Give `base` with what is written here put in its place; with a GPU its pool decides the place."""
        gpu = self.gpu if "gpu" in self.model_fields_set else base.gpu
        pool = self.pool if "pool" in self.model_fields_set else base.pool
        return Resources.model_construct(
            cpu=self.cpu or base.cpu,
            memory=self.memory or base.memory,
            gpu=gpu,
            pool=None if self.gpu else pool,
        )
