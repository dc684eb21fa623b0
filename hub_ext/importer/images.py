"""Images of the draft: each reference with its start command once, under a name of its own.

Pure: no clock, no network.
"""

from typing import Any

from ..names import parse_image
from .facts import Facts
from .names import image_key


class Images:
    """Collects the images of all profiles."""

    def __init__(self) -> None:
        self._keys: dict[tuple[Any, ...], str] = {}
        self._data: dict[str, dict[str, Any]] = {}

    def add(self, facts: Facts, fallback: str, title: str = "") -> str:
        """Give the key of the image that facts ask for.

        Parameters
        ----------
        fallback
            What runs where no image is named.
        title
            What a choice calls the image; empty where it is not chosen by itself.
        """
        ref = facts.image or fallback
        identity = (ref, facts.pull_secrets, facts.command, facts.default_url)
        if identity not in self._keys:
            key = image_key(parse_image(ref), self._data)
            self._keys[identity] = key
            self._data[key] = _image(ref, facts, title)
        elif title and self._data[self._keys[identity]]["displayName"] == ref:
            self._data[self._keys[identity]]["displayName"] = title
        return self._keys[identity]

    def as_data(self) -> dict[str, Any]:
        """Write all images in the catalog's words."""
        return self._data


def _image(ref: str, facts: Facts, title: str) -> dict[str, Any]:
    image: dict[str, Any] = {"ref": ref, "displayName": title or ref}
    if not parse_image(ref).digest:
        image["allowTag"] = True
    if facts.pull_secrets:
        image["pullSecrets"] = list(facts.pull_secrets)
    if facts.command:
        image["command"] = list(facts.command)
    if facts.default_url:
        image["defaultUrl"] = facts.default_url
    return image


def home_of(ref: str) -> str:
    """Give the registry of an image, or the first part of its name on Docker Hub."""
    reference = parse_image(ref)
    return reference.registry or reference.repository.partition("/")[0]
