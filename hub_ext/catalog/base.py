"""What every part of the vocabulary shares: strict models, and the types of single values.

Values are parsed once, here: a quantity becomes a number, a duration a `timedelta`. The readers in `units`
and `names` raise errors that carry a finding code and a remedy; `load` puts the place to them.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    StrictBool,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from ..errors import BadValueError, NameRuleError, QuantityError
from ..names import is_dns_label, is_dns_subdomain, is_label_key, is_label_value
from ..units import parse_count, parse_cpu, parse_duration, parse_memory, parse_quantity


class Model(BaseModel):
    """Base of the vocabulary: frozen, no unknown keys, ``camelCase`` in YAML and ``snake_case`` in Python."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )


class ShortModel(Model):
    """Base of models that may also be written as one plain value."""

    short: ClassVar[dict[str, Any]]
    """JSON Schema of the plain value."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(core_schema))
        description = {"description": text} if (text := long.get("description")) else {}
        return {"anyOf": [cls.short, long], **description}


SMALLEST_AMOUNT: Final = 2**20
"""Bytes. Smaller amounts of memory or disk are mistakes."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""What moves the cursor of a terminal; line feeds and tabs are text."""

_KEY: Final = r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?"
_NAME: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_OBJECT_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL_KEY: Final = rf"(?:[a-z0-9.-]{{1,253}}/)?{_LABEL}"
_MOUNT_PATH: Final = r"(?:/(?!\.{1,2}(?:/|$))[^/:]+)+"
_ENV_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"


def _slug_help(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode()
    guess = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:63].strip("-")
    return f"Write {guess}." if guess else "Use lower-case letters, digits and dashes."


def _check_name(text: str) -> str:
    if not is_dns_label(text):
        raise NameRuleError(
            f"{text!r} is not a name: lower-case letters, digits and dashes, at most 63, "
            "a letter or digit at both ends",
            help=_slug_help(text),
        )
    return text


def _check_key(text: str) -> str:
    if not re.fullmatch(_KEY, text):
        raise NameRuleError(
            f"{text!r} is not a key: lower-case letters, digits, '-', '_' and '.', at most 63, "
            "a letter or digit at both ends",
            help="Write the reference into images, and here the key that it has there."
            if "/" in text
            else _slug_help(text),
        )
    return text


def _check_object_name(text: str) -> str:
    if not is_dns_subdomain(text):
        raise NameRuleError(
            f"{text!r} is not an object name: lower-case letters, digits, dashes and dots, at most 253",
            help=_slug_help(text),
        )
    return text


def _memory(value: object) -> int:
    """Read an amount; one that nothing can run in is a number whose unit was forgotten."""
    amount = parse_quantity(value)
    if 0 < amount < SMALLEST_AMOUNT and not str(value).endswith("m"):
        number = str(value).rstrip("KMGTPEkib")
        raise QuantityError(
            f"{value!r} is next to nothing", help=f"Say which unit: {number}Gi or {number}Mi."
        )
    return parse_memory(value)


def _check_label_key(text: str) -> str:
    if not is_label_key(text):
        raise NameRuleError(f"{text!r} is not a label key", help="Write name or prefix.example.com/name.")
    return text


def _check_label_value(value: object) -> object:
    if isinstance(value, bool):
        word = str(value).lower()
        raise BadValueError(
            f"a label value is text, and YAML reads {word} as a boolean",
            code="wrong-type",
            help=f'Put quotes around it: "{word}".',
        )
    if isinstance(value, str) and not is_label_value(value):
        raise NameRuleError(
            f"{value!r} is not a label value: letters, digits, '-', '_' and '.', at most 63, "
            "a letter or digit at both ends",
            help=f"Write {guess}." if (guess := re.sub(r"\s+", "-", value.strip())) != value else "",
        )
    return value


def _check_mount_path(text: str) -> str:
    if (
        not text.startswith("/")
        or ":" in text
        or any(part in {"", ".", ".."} for part in text[1:].split("/"))
    ):
        raise BadValueError(
            f"{text!r} is not an absolute path",
            code="bad-path",
            help="Start with /, no .. and no trailing slash; the root itself cannot be mounted over.",
        )
    return text


def _check_env_name(text: str) -> str:
    if not re.fullmatch(_ENV_NAME, text):
        raise NameRuleError(f"{text!r} is not the name of an environment variable", help="Write UPPER_CASE.")
    return text


def _check_text(text: str) -> str:
    if not text.strip():
        raise BadValueError("the text is empty", code="empty-text")
    if control := _CONTROL.search(text):
        raise BadValueError(f"the text holds the control character {control[0]!r}", help="Take it out.")
    return text


_NUMBER: Final = r"[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_QUANTITY: Final = rf"{_NUMBER}([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?"


def quantity_schema(description: str, *, number: str = "number") -> dict[str, Any]:
    """Give the schema of a quantity; as a plain `number` it may be whole only (`integer`)."""
    plain = {"type": number, "minimum": 0}
    return {"anyOf": [_text_schema(_QUANTITY), plain], "description": description}


def number_schema() -> dict[str, Any]:
    """Give the schema of a number that may stand in quotes, for the sake of its digits."""
    return {"anyOf": [{"type": "number", "minimum": 0}, _text_schema(rf"{_NUMBER}([eE][+-]?[0-9]+)?")]}


def _text_schema(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern}$"}


Flag = StrictBool
"""True or false, and no word that looks like it."""

Text = Annotated[str, AfterValidator(_check_text), WithJsonSchema({"type": "string", "pattern": r"\S"})]
"""Plain text for people, not empty. It is escaped wherever it is shown."""

Name = Annotated[str, AfterValidator(_check_name), WithJsonSchema(_text_schema(_NAME))]
"""What becomes a label or an object name: profiles, pools, teams."""

ObjectName = Annotated[str, AfterValidator(_check_object_name), WithJsonSchema(_text_schema(_OBJECT_NAME))]
"""Name of an object on the cluster that somebody else made: a claim, a Secret, a class."""

Key = Annotated[str, AfterValidator(_check_key), WithJsonSchema(_text_schema(_KEY))]
"""What other places of the catalog refer to: images, choices, options."""

LabelKey = Annotated[str, AfterValidator(_check_label_key), WithJsonSchema(_text_schema(_LABEL_KEY))]
LabelValue = Annotated[str, BeforeValidator(_check_label_value), WithJsonSchema(_text_schema(f"({_LABEL})?"))]
MountPath = Annotated[str, AfterValidator(_check_mount_path), WithJsonSchema(_text_schema(_MOUNT_PATH))]
EnvName = Annotated[str, AfterValidator(_check_env_name), WithJsonSchema(_text_schema(_ENV_NAME))]

Cpu = Annotated[
    int, BeforeValidator(parse_cpu), WithJsonSchema(quantity_schema("Processors: 2, 0.5 or 500m."))
]
"""Millicores."""

Memory = Annotated[int, BeforeValidator(_memory), WithJsonSchema(quantity_schema("An amount such as 16Gi."))]
"""Bytes."""

Count = Annotated[
    int, BeforeValidator(parse_count), WithJsonSchema(quantity_schema("A whole number.", number="integer"))
]
"""Whole devices."""

Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema(_text_schema(r"(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?")),
]
