"""What every part of the vocabulary shares: strict models, and the types of single values.

Values are parsed once, here: a quantity becomes a number, a duration a `timedelta`. The readers in `units`
and `names` raise errors that carry a finding code and a remedy; `load` puts the place to them.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
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

from ..errors import BadValueError, NameRuleError
from ..names import is_dns_label, is_label_key, is_label_value
from ..units import parse_count, parse_cpu, parse_duration, parse_memory


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


_KEY: Final = r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?"
_NAME: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ENV_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"


def _slug_help(text: str) -> str:
    guess = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-")
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
            help=_slug_help(text),
        )
    return text


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
            "a letter or digit at both ends"
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
    return text


def quantity_schema(description: str) -> dict[str, Any]:
    pattern = r"^[0-9]*\.?[0-9]*([eE][+-]?[0-9]+|[munkMGTPE]|[KMGTPE]i)?$"
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "number"}], "description": description}


def _text_schema(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern}$"}


Flag = StrictBool
"""True or false, and no word that looks like it."""

Text = Annotated[str, AfterValidator(_check_text)]
"""Plain text for people, not empty. It is escaped wherever it is shown."""

Name = Annotated[str, AfterValidator(_check_name), WithJsonSchema(_text_schema(_NAME))]
"""What becomes a label or an object name: profiles, pools, teams."""

Key = Annotated[str, AfterValidator(_check_key), WithJsonSchema(_text_schema(_KEY))]
"""What other places of the catalog refer to: images, choices, options."""

LabelKey = Annotated[str, AfterValidator(_check_label_key)]
LabelValue = Annotated[str, BeforeValidator(_check_label_value)]
MountPath = Annotated[str, AfterValidator(_check_mount_path), WithJsonSchema(_text_schema("/.+"))]
EnvName = Annotated[str, AfterValidator(_check_env_name), WithJsonSchema(_text_schema(_ENV_NAME))]

Cpu = Annotated[
    int, BeforeValidator(parse_cpu), WithJsonSchema(quantity_schema("Processors: 2, 0.5 or 500m."))
]
"""Millicores."""

Memory = Annotated[
    int, BeforeValidator(parse_memory), WithJsonSchema(quantity_schema("An amount such as 16Gi."))
]
"""Bytes."""

Count = Annotated[int, BeforeValidator(parse_count), WithJsonSchema(quantity_schema("A whole number."))]
"""Whole devices."""

Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema(_text_schema(r"([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?")),
]
