"""Names on Kubernetes objects: labels, annotations, object names, image references.

Sources: Kubernetes names and labels (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
and …/labels/), image references (https://pkg.go.dev/github.com/distribution/reference).

Pure: no clock, no network.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .errors import NameRuleError

DOMAIN: Final = "gpu-workspaces.jupyter.org"
"""Prefix of every label and annotation that this project writes."""

LABEL_PROFILE: Final = f"{DOMAIN}/profile"
LABEL_PROFILE_VERSION: Final = f"{DOMAIN}/profile-version"
LABEL_TEAM: Final = f"{DOMAIN}/team"
LABEL_GPU_SHARING: Final = f"{DOMAIN}/gpu-sharing"
LABEL_POOL: Final = f"{DOMAIN}/pool"
LABEL_IMAGE_DIGEST: Final = f"{DOMAIN}/image-digest"
LABEL_COST_CENTER: Final = f"{DOMAIN}/cost-center"
LABEL_NETWORK_PROFILE: Final = f"{DOMAIN}/network-profile"
LABEL_USER: Final = f"{DOMAIN}/user"
"""Label-safe form of the user name, for selectors; the exact name is in `ANNOTATION_USER`."""
LABEL_JOB: Final = f"{DOMAIN}/job"
"""Name of the run that an object belongs to; servers have none."""
ANNOTATION_USER: Final = f"{DOMAIN}/user"
ANNOTATION_SERVER: Final = f"{DOMAIN}/server"
ANNOTATION_CHOICES: Final = f"{DOMAIN}/choices"
"""What the user picked, as JSON, so that a running pod explains itself."""

HUB_USER: Final = "hub.jupyter.org/username"
"""KubeSpawner's, on pods and claims: the annotation is the user's name, the label a short form of it."""
HUB_SERVER: Final = "hub.jupyter.org/servername"
"""KubeSpawner's annotation with the server's name, which is empty for the user's own."""

MAX_LABEL: Final = 63
_HASH_LENGTH: Final = 10
"""Base32 digits of SHA-256: 50 bits, so a million names collide with a chance below one in two thousand."""

_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_NAME: Final = _LABEL_VALUE
_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_MARKED: Final = re.compile(rf".*--[a-z2-7]{{{_HASH_LENGTH}}}", re.DOTALL)
"""What our shortened names look like. A foreign name of this shape is shortened too: it could equal one."""


def server_of(annotations: Mapping[str, str]) -> tuple[str, str]:
    """Read the exact names of user and server from the annotations of a pod; empty where they tell none."""
    user = annotations.get(ANNOTATION_USER, annotations.get(HUB_USER, ""))
    return user, annotations.get(ANNOTATION_SERVER, annotations.get(HUB_SERVER, ""))


def is_dns_label(text: str) -> bool:
    """Say whether `text` may name a Service, a container or a volume (RFC 1123 label)."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Say whether `text` may name most objects: labels joined by dots, at most 253 characters."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Say whether `text` may be the value of a label; the empty value may."""
    return text == "" or _LABEL_VALUE.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Say whether `text` may be the key of a label, an annotation or an extended resource."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return _LABEL_NAME.fullmatch(name) is not None


def label_value(text: str) -> str:
    """Turn any text into a label value; different texts give different values.

    A text that is a label value already is kept. Anything else keeps its readable part and gets a hash of
    the exact text.
    """
    if is_label_value(text) and not _MARKED.fullmatch(text):
        return text
    return _marked(re.sub(r"[^A-Za-z0-9._-]+", "-", text), text)


def object_name(*parts: str) -> str:
    """Join parts into an object name of at most 63 characters that no other parts give.

    One part that is a valid name already is kept, so that names written by admins stay as they are.
    Several parts always carry a hash: ``("a-b", "c")`` and ``("a", "b-c")`` must differ.
    """
    if len(parts) == 1 and is_dns_label(parts[0]) and not _MARKED.fullmatch(parts[0]):
        return parts[0]
    readable = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower())
    return _marked(readable, "".join(f"{len(part)}:{part}" for part in parts))


def _marked(readable: str, exact: str) -> str:
    digest = hashlib.sha256(exact.encode("utf-8", "surrogatepass")).digest()
    mark = base64.b32encode(digest).decode("ascii").lower()[:_HASH_LENGTH]
    room = MAX_LABEL - len("--") - _HASH_LENGTH
    head = readable[:room].strip("-._") or "x"
    return f"{head}--{mark}"


def shown(text: str) -> str:
    """Quote what somebody sent for use in a sentence: one line, capped, nothing unprintable."""
    flat = "".join(char if char.isprintable() else "?" for char in text[:60])
    return f"“{flat}…”" if len(text) > 60 else f"“{flat}”"


# Components are bounded so that no input makes the pattern slow.
_DOMAIN_PART: Final = r"(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_HOST: Final = re.compile(
    rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[0-9a-fA-F:]+\])(?::(?P<port>[0-9]{{1,5}}))?"
)
_PATH_PART: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST_HEX: Final = {"sha256": 64, "sha512": 128}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReference:
    """Where an image is: ``registry/repository:tag@digest``."""

    registry: str
    """Host with port, empty where the reference names none (Docker Hub is meant then)."""
    repository: str
    tag: str = ""
    digest: str = ""
    """With its algorithm: ``sha256:…``."""

    @property
    def name(self) -> str:
        """Registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}" if self.registry else self.repository

    @property
    def short_digest(self) -> str:
        """First twelve digits of the digest, or empty; short enough for a label."""
        return self.digest.partition(":")[2][:12]

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.name}{tag}{digest}"


@lru_cache(maxsize=1024)
def parse_image(text: str) -> ImageReference:
    """Take an image reference apart, without guessing: nothing is added that is not written.

    Raises
    ------
    NameRuleError
        Code ``bad-image``; `help` names the part that is wrong.
    """
    rest, at, digest = text.partition("@")
    if at:
        _check_digest(text, digest)
    head, slash, path = rest.partition("/")
    registry = ""
    if slash and ("." in head or ":" in head or head == "localhost" or head != head.lower()):
        registry, rest = head, path
        _check_registry(text, registry)
    repository, colon, tag = rest.rpartition(":")
    if not colon:
        repository, tag = rest, ""
    elif not _TAG.fullmatch(tag):
        raise _bad_image(text, f"{shown(tag)} is not a tag: letters, digits, '_', '.' and '-', at most 128")
    _check_repository(text, repository)
    if len(registry) + 1 + len(repository) > 255:
        raise _bad_image(text, "the name is longer than 255 characters")
    return ImageReference(registry=registry, repository=repository, tag=tag, digest=digest)


def _check_digest(text: str, digest: str) -> None:
    algorithm, _, digits = digest.partition(":")
    length = _DIGEST_HEX.get(algorithm)
    if length is None:
        raise _bad_image(text, f"the digest starts with {shown(algorithm)}; it must be sha256: or sha512:")
    if len(digits) != length or not re.fullmatch(r"[0-9a-f]+", digits):
        raise _bad_image(
            text, f"a {algorithm} digest has {length} digits of 0-9 and a-f; this one is {len(digits)} long"
        )


def _check_registry(text: str, registry: str) -> None:
    match = _HOST.fullmatch(registry)
    if match is None:
        raise _bad_image(text, f"{shown(registry)} is not a registry host")
    if match["port"] and not 1 <= int(match["port"]) <= 65535:
        raise _bad_image(text, f"{match['port']} is not a port")


def _check_repository(text: str, repository: str) -> None:
    for part in repository.split("/"):
        if _PATH_PART.fullmatch(part):
            continue
        if part != part.lower():
            raise _bad_image(text, f"{shown(part)} has capital letters; repository names are lower case")
        raise _bad_image(text, f"{shown(part)} is not a part of a repository name")


def _bad_image(text: str, problem: str) -> NameRuleError:
    return NameRuleError(f"{shown(text)} is not an image reference", code="bad-image", help=f"{problem}.")
