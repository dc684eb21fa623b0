"""Why an image does not come, read from what the container runtime says.

Sources: containerd 2.x and CRI-O messages as the kubelet passes them on (1.32 to 1.36), seen with a registry
that refuses, limits, cuts and hangs.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
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

_WORDS: Final = {
    WaitReason.IMAGE_PLATFORM: (
        "no match for platform",
        "no matching manifest for",
        "does not match the specified platform",
    ),
    WaitReason.DISK_FULL: ("no space left on device", "disk quota exceeded"),
    WaitReason.REGISTRY_CERTIFICATE: ("x509:", "certificate signed by unknown", "tls: failed to verify"),
    WaitReason.REGISTRY_BUSY: (r"\b429\b", "toomanyrequests", "rate limit", "pull QPS exceeded"),
    WaitReason.IMAGE_ACCESS: (
        "pull access denied",
        r"\b40[13]\b",
        "unauthorized",
        "authorization failed",
        "authentication required",
        "no basic auth credentials",
        "insufficient_scope",
        "proper credentials",
        ": denied",
    ),
    WaitReason.REGISTRY_UNREACHABLE: (
        "no such host",
        "server misbehaving",
        "i/o timeout",
        "connection refused",
        "connection reset",
        "no route to host",
        "handshake timeout",
        "deadline exceeded",
        "unexpected EOF",
        "failed to copy",
        "httpReadSeeker",
        r"\b50[0234]\b",
        "http: server gave HTTP response",
    ),
    WaitReason.IMAGE_NOT_FOUND: ("not found", "manifest unknown", "name unknown", "no such image"),
}
"""In this order: a refused login may also say that a repository does not exist."""

_RULES: Final = tuple(
    (re.compile("|".join(words), re.IGNORECASE), reason) for reason, words in _WORDS.items()
)

HEALS: Final = frozenset({WaitReason.REGISTRY_BUSY, WaitReason.REGISTRY_UNREACHABLE})
"""What the kubelet's next try may well overcome."""


def classify(state: str, message: str) -> WaitReason:
    """Say why an image does not come; what is not known is taken for something that may pass.

    A registry that hides what it has answers ``pull access denied, repository does not exist or may require
    authorization`` to both: it counts as a matter of access.
    """
    if state in _BY_STATE and "credentials" not in message:
        return _BY_STATE[state]
    for pattern, reason in _RULES:
        if pattern.search(message):
            return reason
    return WaitReason.REGISTRY_UNREACHABLE


def short_name(image: str) -> str:
    """Shorten a reference for people: the digest to twelve digits."""
    name, _, digest = image.partition("@")
    return f"{name}@{digest.partition(':')[2][:12]}" if digest else name
