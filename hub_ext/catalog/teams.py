"""Teams, and how much they and each of their members may use at once.

Pure: no clock, no network.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from ..errors import BadValueError
from ..gpu.resources import PLUS_HELP, dotted
from ..names import is_label_key
from ..units import parse_quantity
from .base import Count, Cpu, LabelValue, Memory, Model, Name, Text, quantity_schema


def _number(value: Any) -> Decimal:
    number = parse_quantity(value)
    if number < 0:
        raise BadValueError(f"{value!r} is negative")
    return Decimal(number.numerator) / Decimal(number.denominator)


def _check_resource_name(key: str) -> None:
    """Refuse what Kubernetes would ignore: extended resources are bounded by their plain name only."""
    prefix, dot, plain = key.partition(".")
    if dot and prefix in {"requests", "limits"} and "/" in plain:
        raise PydanticCustomError(
            "bad-quota-key",
            "{key} is not a resource name",
            {"key": key, "help": f"Write {plain}; the rendered ResourceQuota bounds requests.{plain}."},
        )
    if "/" not in key or not is_label_key(key):
        raise PydanticCustomError("unknown-key", "{key} is not a key", {"key": key, "help": _meant(key)})


_WORDS: Final = {"pods": "servers", "requests.cpu": "cpu", "requests.memory": "memory"}
"""Words of Kubernetes' ResourceQuota, and what stands for them here."""


def _meant(key: str) -> str:
    if key in _WORDS:
        return f"Write {_WORDS[key]}."
    if key.lower().startswith("gpu"):
        return "Write nvidia.com/gpu, or gpuEquivalents."
    name = dotted(key)
    if name != key and is_label_key(name):
        return PLUS_HELP.format(name=name)
    return ""


Number = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema(quantity_schema("A number."))]


class Quota(Model):
    """Upper bounds on what runs at once; what is not named is not bounded.

    Extended resources are written by their plain name (`nvidia.com/gpu: 4`).
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "additionalProperties": False,
            "patternProperties": {
                r"^(?!(requests|limits)\.)[a-z0-9.-]+/.+$": quantity_schema(
                    "A whole number.", number="integer"
                )
            },
        },
        serialize_by_alias=True,
    )
    __pydantic_extra__: dict[str, Count]

    servers: Count | None = None
    """Workspaces at the same time."""
    cpu: Cpu | None = None
    """Requested processors (millicores)."""
    memory: Memory | None = None
    """Requested memory (bytes)."""
    gpu_equivalents: Number | None = None
    """Whole cards that all GPUs, slices and shares together are worth."""

    @property
    def extended(self) -> dict[str, int]:
        """Bounds of extended resources, by plain name."""
        return dict(self.__pydantic_extra__)

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        for key in self.__pydantic_extra__:
            _check_resource_name(key)
        return self


class Team(Model):
    """Who belongs together and shares a quota."""

    display_name: str = ""
    """What users read; the key, if empty."""
    groups: tuple[Text, ...] = ()
    """Groups of the hub whose members are in the team, exactly as the hub spells them."""
    users: tuple[Text, ...] = ()
    """Further members by user name."""
    cost_center: LabelValue | None = None
    """Written on every object of the team."""
    namespace: Name | None = None
    """Namespace of the team's objects; left out, the hub's."""
    quota: Quota = Quota()
    """For the team as a whole."""
    per_user: Quota = Quota()
    """For each member."""
