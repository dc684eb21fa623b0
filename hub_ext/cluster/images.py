"""Why an image does not come, read from what the container runtime says.

A message is a chain, each link the cause of the one before it: ``failed to pull and unpack image "REF":
failed to resolve reference "REF": unexpected status from HEAD request to URL: 403 Forbidden``. Only the
beginning of a link is read, for that is where its speaker begins. Names of images and hosts, ports, tags and
digests have no blank in them, so that none of them begins a link of these words; what stands in quotes is not
read at all.

Sources: kubelet 1.32 to 1.36 (`images/image_manager.go`, `images/helpers.go`); containerd 2.x and 1.7
(`core/remotes`, `core/unpack`, `client/pull.go`); CRI-O (`containers/image` `docker`, `internal/manifest`);
codes of the distribution specification. Seen with a registry that refuses, limits, cuts and hangs.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from http import HTTPStatus
from typing import Final

from .waits import WaitReason

PULL_STATES: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "RegistryUnavailable",
        "ImageInspectError",
        "SignatureValidationFailed",
    }
)
"""Reasons of a waiting container that are about its image."""

_BY_STATE: Final = {
    "InvalidImageName": WaitReason.IMAGE_INVALID,
    "SignatureValidationFailed": WaitReason.IMAGE_ACCESS,
    "ErrImageNeverPull": WaitReason.IMAGE_ABSENT,
}

_LINKS: Final = {
    WaitReason.IMAGE_PLATFORM: (
        r"no match for platform\b",
        r"no matching manifest for ",
        r"no image found in (?:manifest list|image index) for architecture\b",
        r"image with reference \S+ was found but .*does not match the specified platform",
    ),
    WaitReason.DISK_FULL: (r"no space left on device\b", r"disk quota exceeded\b"),
    WaitReason.REGISTRY_CERTIFICATE: (
        r"x509$",
        r"failed to verify certificate\b",
        r"certificate signed by unknown authority\b",
    ),
    WaitReason.REGISTRY_BUSY: (
        r"toomanyrequests\b",
        r"too many requests\b",
        r"rate limit\b",
        r"you have reached your .*rate limit\b",
        r"pull QPS exceeded$",
    ),
    WaitReason.IMAGE_ACCESS: (
        r"pull access denied\b",
        r"unauthorized\b",
        r"denied\b",
        r"requested access to the resource is denied\b",
        r"authorization failed\b",
        r"authentication required\b",
        r"no basic auth credentials\b",
        r"insufficient_scope\b",
        r"invalid username/password\b",
        r"image verifier \S+ blocked pull of ",
        r"source image rejected\b",
    ),
    WaitReason.REGISTRY_UNREACHABLE: (
        r"no such host\b",
        r"server misbehaving\b",
        r"i/o timeout\b",
        r"connection (?:refused|reset|timed out)\b",
        r"no route to host\b",
        r"network is unreachable\b",
        r"TLS handshake timeout\b",
        r"context (?:deadline exceeded|canceled)\b",
        r"request canceled\b",
        r"(?:unexpected )?EOF\b",
        r"server gave HTTP response\b",
        r"no (?:resolve|pull) hosts$",
        r"failed to copy$",
    ),
    WaitReason.IMAGE_NOT_FOUND: (
        r"not found$",
        r"(?:manifest|content) (?:for|at) \S+ not found\b",
        r"(?:manifest|name) unknown\b",
        r"no such image\b",
    ),
}
"""How links begin. Of one try, the first of these reasons counts that it names: a refused login may also say
that a repository does not exist, and what breaks off while it is copied did exist."""

_RULES: Final = tuple((re.compile("|".join(words), re.IGNORECASE), why) for why, words in _LINKS.items())

_BY_STATUS: Final[Mapping[int, WaitReason]] = {
    HTTPStatus.UNAUTHORIZED: WaitReason.IMAGE_ACCESS,
    HTTPStatus.FORBIDDEN: WaitReason.IMAGE_ACCESS,
    HTTPStatus.NOT_FOUND: WaitReason.IMAGE_NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT: WaitReason.REGISTRY_UNREACHABLE,
    HTTPStatus.TOO_MANY_REQUESTS: WaitReason.REGISTRY_BUSY,
    HTTPStatus.INTERNAL_SERVER_ERROR: WaitReason.REGISTRY_UNREACHABLE,
    HTTPStatus.BAD_GATEWAY: WaitReason.REGISTRY_UNREACHABLE,
    HTTPStatus.SERVICE_UNAVAILABLE: WaitReason.REGISTRY_UNREACHABLE,
    HTTPStatus.GATEWAY_TIMEOUT: WaitReason.REGISTRY_UNREACHABLE,
}
_STATUS: Final = re.compile(
    r"unexpected status (?:code )?(?P<code>[45][0-9]{2})\b|(?P<status>[45][0-9]{2}) [A-Za-z(]"
)
_PLAIN: Final = re.compile(r"\bStatusCode: (?=[45][0-9]{2},)")
"""What `containers/image` says before the status of an answer that is no JSON."""

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)')
_LINK: Final = re.compile(r": |, |; |\n|\bdesc = ")
_MIRRORS: Final = re.compile(r"\(Mirrors also failed: \[.*?\]\): ", re.DOTALL)
"""Of CRI-O: what it tried before the place that the image is named after, whose answer follows and counts."""
_TRIES: Final = re.compile(
    r", (?=rpc error: code = |failed to pull (?:and unpack )?image |initializing source )"
)
"""The kubelet tries one secret after the other, and joins what came of each."""
_UNPACKING: Final = re.compile(
    r"failed to extract layer\b|(?:failed|unable) to prepare extraction snapshot\b|"
    r"failed to unpack image on snapshotter\b|unpacking failed\b"
)
"""From here on the node is at work, on files that are named as the image's maker liked."""

PULL_FAILED: Final = "Failed to pull image "
"""How the event begins that has the cause; others of the same reason only repeat the state."""
_BACK_OFF: Final = re.compile(r'Back-off pulling image "[^"]*"\s*')

HEALS: Final = frozenset({WaitReason.REGISTRY_BUSY, WaitReason.REGISTRY_UNREACHABLE})
"""What the kubelet's next try may well overcome."""
_OF_TRIES: Final = (*(why for why in _LINKS if why in HEALS), *(why for why in _LINKS if why not in HEALS))
"""Of several tries: the right secret may be the one whose try met with bad luck."""


def classify(state: str, *messages: str) -> WaitReason:
    """Say why an image does not come; what is not known is taken for something that may pass.

    A registry that hides what it has answers ``pull access denied, repository does not exist or may require
    authorization`` to both: it counts as a matter of access.

    Parameters
    ----------
    messages
        The one that counts most first; others are only read where it names no cause.
    """
    if state in _BY_STATE:
        return _BY_STATE[state]
    found = (_cause(message) for message in messages)
    return next((reason for reason in found if reason is not None), WaitReason.REGISTRY_UNREACHABLE)


def _cause(message: str) -> WaitReason | None:
    tries = _TRIES.split(_MIRRORS.sub("", message))
    return _first({_cause_of_try(one) for one in tries}, _OF_TRIES)


def _cause_of_try(message: str) -> WaitReason | None:
    plain = _QUOTED.sub('""', _PLAIN.sub("unexpected status code ", message))
    if _UNPACKING.search(plain):
        return _of_disk(plain)
    return _first({_of_link(link.strip("[]() ")) for link in _LINK.split(plain)}, _LINKS)


def _of_disk(message: str) -> WaitReason | None:
    """Judge by the error of the operating system, which is the last but for containerd's own ``unknown``."""
    last = message.removesuffix(": unknown").rpartition(": ")[2].strip("[]() ")
    return WaitReason.DISK_FULL if _of_link(last) is WaitReason.DISK_FULL else None


def _of_link(link: str) -> WaitReason | None:
    if match := _STATUS.match(link):
        return _BY_STATUS.get(int(match["code"] or match["status"]))
    return next((reason for pattern, reason in _RULES if pattern.match(link)), None)


def _first(found: Collection[WaitReason | None], order: Iterable[WaitReason]) -> WaitReason | None:
    return next((reason for reason in order if reason in found), None)


def says_no_cause(message: str) -> bool:
    """Say whether a kubelet only tells that it backs off: those before 1.32 leave the cause to an event."""
    return not message or _BACK_OFF.fullmatch(message) is not None


def short_name(image: str) -> str:
    """Shorten a reference for people: the digest to twelve digits."""
    name, _, digest = image.partition("@")
    return f"{name}@{digest.partition(':')[2][:12]}" if digest else name
