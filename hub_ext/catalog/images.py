"""Images: what runs in a workspace, pinned by digest.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field, WithJsonSchema

from ..errors import BadValueError, NameRuleError
from ..names import ImageReference, parse_image, shown
from .base import EnvName, Flag, Key, Model, ObjectName, Text


def _check_reference(text: str) -> str:
    parse_image(text)
    return text


def _check_version(text: str) -> str:
    parts = text.split(".")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise BadValueError(f"{text!r} is not a version", help='Write it in quotes: "13.0".')
    return text


_REFERENCE: Final = r"^[^\s@]+(@sha(256:[0-9a-f]{64}|512:[0-9a-f]{128}))?$"
_VERSION: Final = r"^[0-9]+(\.[0-9]+){0,2}$"
ImageRef = Annotated[
    str, AfterValidator(_check_reference), WithJsonSchema({"type": "string", "pattern": _REFERENCE})
]
DottedVersion = Annotated[
    str, AfterValidator(_check_version), WithJsonSchema({"type": "string", "pattern": _VERSION})
]


class Image(Model):
    """An image, described once and named by profiles."""

    ref: ImageRef
    """Registry, repository and digest: `registry.example.com/ai/pytorch@sha256:…`."""
    display_name: Text
    """What users read."""
    description: str = ""
    """What is inside, in a sentence."""
    allow_tag: Flag = False
    """Accept a reference without digest. A tag can be moved: two starts may then run different code."""
    cuda: DottedVersion | None = None
    """CUDA version inside, in quotes: `"13.0"`. Absent means that the image brings no CUDA."""
    min_driver: DottedVersion | None = None
    """Oldest GPU driver that runs it; left out, it follows from `cuda`."""
    architectures: tuple[Key, ...] = ()
    """Processor architectures that the image is built for (`amd64`, `arm64`); empty is not known."""
    pull_secrets: tuple[ObjectName, ...] = ()
    """Secrets with the registry's credentials, in the namespace of the workspace."""
    command: tuple[Text, ...] = ()
    """Start command; empty keeps the one of the hub."""
    default_url: str | None = Field(default=None, pattern=r"^/[^\s]*$")
    """Page that opens first: `/lab`. Left out, the hub's."""
    environment: dict[EnvName, str] = Field(default_factory=dict)
    """Variables that this image needs."""

    @property
    def reference(self) -> ImageReference:
        return parse_image(self.ref)


class CustomImage(Model):
    """Permission to type an image that is not listed, within bounds."""

    display_name: Text = "Another image"
    """Label of the field."""
    registries: tuple[Text, ...] = Field(min_length=1)
    """Where it may come from: registry, or registry and path, such as `registry.example.com/nlp`."""
    allow_tag: Flag = False
    """Accept a reference without digest."""
    pull_secrets: tuple[ObjectName, ...] = ()
    """Secrets with the registry's credentials."""
    help: str = ""
    """Shown beside the field."""

    def check(self, text: str) -> ImageReference:
        """Read what a user typed.

        Raises
        ------
        NameRuleError
            Not a reference, from elsewhere, or without digest where one is asked for.
        """
        image = parse_image(text)
        if not any(image.name.startswith(place.rstrip("/") + "/") for place in self.registries):
            raise NameRuleError(
                f"{image.name} does not come from a permitted registry",
                code="bad-image",
                help=f"Permitted: {', '.join(self.registries)}.",
            )
        if not image.digest and not self.allow_tag:
            raise NameRuleError(f"{shown(text)} has no digest", code="bad-image", help="Add @sha256:….")
        return image
