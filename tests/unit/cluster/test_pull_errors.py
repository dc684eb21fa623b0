"""Why an image does not come: by what is said, whatever images, hosts and sizes are called."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub_ext.cluster.images import HEALS, classify, says_no_cause
from hub_ext.cluster.waits import WaitReason
from tests.unit.cluster.legal_names import hosts, images, parts

PULL = 'failed to pull and unpack image "{ref}": '
RESOLVE = PULL + 'failed to resolve reference "{ref}": '
COPY = PULL + "failed to copy: httpReadSeeker: failed open: "
HEAD = "unexpected status from HEAD request to https://{host}/v2/x/manifests/{tag}: "
DO = RESOLVE + 'failed to do request: Head "https://{host}/v2/x/manifests/{tag}": '
TOKEN = (
    "unexpected status from GET request to https://{host}/token?scope=repository%3A{tag}%3Apull&service=r: "
)
EXTRACT = (
    PULL
    + "failed to extract layer (application/vnd.oci.image.layer.v1.tar+gzip sha256:{tag}) to overlayfs as "
    '"extract-429-{tag} sha256:403": '
)
CRIO = "initializing source docker://{ref}: "
READ = CRIO + "reading manifest {tag} in {host}/x: "

SAID = {
    WaitReason.IMAGE_NOT_FOUND: [
        "rpc error: code = NotFound desc = " + RESOLVE + "{ref}: not found",
        RESOLVE + HEAD + "404 Not Found",
        READ + "manifest unknown",
        READ + "name unknown: repository {tag} not known",
        "Error response from daemon: manifest for {ref} not found: manifest unknown: manifest unknown",
    ],
    WaitReason.IMAGE_ACCESS: [
        RESOLVE + "pull access denied, repository does not exist or may require authorization: "
        "server message: insufficient_scope: authorization failed",
        RESOLVE + "pull access denied, repository does not exist or may require authorization: "
        "authorization failed: no basic auth credentials",
        RESOLVE + HEAD + "403 Forbidden",
        RESOLVE + HEAD + "401 Unauthorized\nunauthorized: authentication required",
        RESOLVE + "failed to authorize: failed to fetch oauth token: " + TOKEN + "401 Unauthorized",
        COPY + "unexpected status from GET request to https://{host}/v2/x/blobs/{tag}: 403 Forbidden\n"
        "denied: project {tag} not found",
        READ + "requested access to the resource is denied",
        READ + 'StatusCode: 403, "<html>\\r\\n<p>: 429 Too Many Requests: not found..."',
        CRIO
        + "unable to retrieve auth token: invalid username/password: unauthorized: authentication required",
        PULL
        + "image verifier signatures blocked pull of {ref} with digest sha256:{tag} for reason: not found",
    ],
    WaitReason.REGISTRY_BUSY: [
        RESOLVE + HEAD + "429 Too Many Requests",
        RESOLVE + "failed to authorize: failed to fetch anonymous token: " + TOKEN + "429 Too Many Requests",
        "toomanyrequests: You have reached your pull rate limit. You may increase it: https://{host}/{tag}",
        READ + "too many requests to registry",
        "pull QPS exceeded",
    ],
    WaitReason.REGISTRY_UNREACHABLE: [
        DO + "dial tcp 10.0.4.3:429: connect: connection refused",
        DO + "dial tcp: lookup {host} on 10.0.4.1:53: no such host",
        DO + "dial tcp: lookup {host} on 10.0.4.3:53: read udp 10.1.4.1:404->10.0.4.3:53: i/o timeout",
        DO + "net/http: TLS handshake timeout",
        DO + "http: server gave HTTP response to HTTPS client",
        DO + "EOF",
        RESOLVE + HEAD + "500 Internal Server Error",
        RESOLVE
        + "failed to authorize: failed to fetch anonymous token: "
        + TOKEN
        + "503 Service Unavailable",
        COPY + "unexpected status from GET request to https://{host}/v2/x/blobs/{tag}: 502 Bad Gateway",
        PULL + "failed to copy: read tcp 10.1.4.3:404->10.0.4.1:443: read: connection reset by peer",
        PULL + "context canceled",
        COPY + "content at https://{host}/v2/x/blobs/{tag} not found: not found",
        COPY + "could not fetch content descriptor sha256:{tag} (application/vnd) from remote: not found",
        PULL + "something that nobody has said before about {ref}",
        EXTRACT + "failed to get reader from content store: content digest sha256:{tag}: not found",
        EXTRACT
        + "mount callback failed on /mnt/{tag}: open /mnt/home/x: unauthorized: denied/y: is a directory",
    ],
    WaitReason.REGISTRY_CERTIFICATE: [
        DO + "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        DO + "tls: failed to verify certificate: x509: certificate is valid for {host}, not {host}",
        CRIO + 'pinging container registry {host}: Get "https://{host}/v2/": x509: certificate has expired',
    ],
    WaitReason.IMAGE_PLATFORM: [
        PULL + "no match for platform in manifest: not found",
        'choosing image instance: no image found in image index for architecture "arm64", OS "linux"',
        READ
        + 'choosing image instance: no image found in manifest list for architecture "arm64", OS "linux"',
    ],
    WaitReason.DISK_FULL: [
        EXTRACT + "write /mnt/{tag}/not found: 404 x: no space left on device: unknown",
        PULL + "failed to copy: failed to send write: write /var/lib/{tag}/data: no space left on device: "
        "unknown",
        CRIO + "copying system image: writing blob: adding layer with blob: unpacking failed "
        "(error: exit status 1; output: open /denied: x/{tag}: no space left on device)",
    ],
}
"""By reason, what containerd and CRI-O say, with the places where names stand."""
ALL = [(reason, said) for reason, texts in SAID.items() for said in texts]


def named(said: str, ref: str, host: str, tag: str) -> str:
    return said.replace("{ref}", ref).replace("{host}", host).replace("{tag}", tag)


def check(reason: WaitReason, message: str, ref: str) -> None:
    """In the state of the failure, while a kubelet backs off, in an event, and said of two secrets."""
    backs_off = f'Back-off pulling image "{ref}"'
    assert classify("ErrImagePull", message) is reason
    assert classify("ImagePullBackOff", f"{backs_off}: ErrImagePull: {message}") is reason
    assert classify("ImagePullBackOff", backs_off, f'Failed to pull image "{ref}": {message}') is reason
    assert classify("ErrImagePull", f"[{message}, {message}]") is reason


@pytest.mark.parametrize(("reason", "said"), ALL)
def test_reasons(reason: WaitReason, said: str) -> None:
    check(reason, named(said, "registry.example.com/ai/torch:1", "registry.example.com", "1"), "torch")


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(ALL), images, hosts, parts)
def test_names_do_not_change_the_reason(told: tuple[WaitReason, str], ref: str, host: str, tag: str) -> None:
    check(told[0], named(told[1], ref, host, tag), ref)


@settings(max_examples=30, deadline=None)
@given(images)
def test_what_a_state_says_is_not_read_off_a_name(ref: str) -> None:
    message = f'Failed to apply default image tag "{ref}": invalid reference format'
    assert classify("InvalidImageName", message) is WaitReason.IMAGE_INVALID
    message = f'Container image "{ref}" is not present with pull policy of Never'
    assert classify("ErrImageNeverPull", message) is WaitReason.IMAGE_ABSENT
    assert (
        classify("RegistryUnavailable", f"image pull failed for {ref} because the registry is unavailable")
        in HEALS
    )
    assert says_no_cause(f'Back-off pulling image "{ref}"')
    assert not says_no_cause(f'Back-off pulling image "{ref}": ErrImagePull: {ref}: not found')


@pytest.mark.parametrize(
    "image",
    [
        "registry.example.com/denied/no-space-left:404",
        "registry.example.com/unauthorized/torch:401",
        "registry.example.com:403/ai/torch:x509",
        "registry.example.com:429/toomanyrequests@sha256:" + "0503" * 16,
    ],
)
def test_a_registry_that_is_away_stays_away(image: str) -> None:
    """Read anywhere in the message, each of these would be something that ends the start for good."""
    message = named(
        DO + "dial tcp 10.0.0.1:443: connect: connection refused", image, "registry.example.com", "404"
    )
    assert classify("ErrImagePull", message) is WaitReason.REGISTRY_UNREACHABLE


TRY = 'failed to pull and unpack image "r.example.com/x:1": failed to resolve reference "r.example.com/x:1": '
LOGIN = TRY + "unexpected status from HEAD request to https://r.example.com/v2/x/manifests/1: 403 Forbidden"
GONE = TRY + "r.example.com/x:1: not found"
AWAY = TRY + 'failed to do request: Head "https://r.example.com/v2/": dial tcp 10.0.0.1:443: i/o timeout'
BUSY = (
    TRY
    + "unexpected status from HEAD request to https://r.example.com/v2/x/manifests/1: 429 Too Many Requests"
)


@pytest.mark.parametrize(
    ("tries", "reason"),
    [
        ((LOGIN, GONE), WaitReason.IMAGE_ACCESS),
        ((GONE, LOGIN), WaitReason.IMAGE_ACCESS),
        ((LOGIN, AWAY), WaitReason.REGISTRY_UNREACHABLE),
        ((BUSY, LOGIN), WaitReason.REGISTRY_BUSY),
        ((AWAY, GONE), WaitReason.REGISTRY_UNREACHABLE),
    ],
)
def test_of_several_secrets_one_that_met_with_bad_luck_may_be_the_right_one(
    tries: tuple[str, ...], reason: WaitReason
) -> None:
    assert classify("ErrImagePull", f"[{', '.join(tries)}]") is reason


@pytest.mark.parametrize(
    ("mirror", "origin", "reason"),
    [
        ("manifest unknown", "unauthorized: authentication required", WaitReason.IMAGE_ACCESS),
        ("unauthorized: authentication required", "manifest unknown", WaitReason.IMAGE_NOT_FOUND),
        ("dial tcp 10.0.0.1:443: i/o timeout", "manifest unknown", WaitReason.IMAGE_NOT_FOUND),
        (
            "manifest unknown",
            "received unexpected HTTP status: 503 Service Unavailable",
            "registry-unreachable",
        ),
    ],
)
def test_where_mirrors_failed_too_the_origin_counts(mirror: str, origin: str, reason: WaitReason) -> None:
    message = (
        "initializing source docker://r.example.com/x:1: (Mirrors also failed: [m.example.com/x:1: reading "
        f"manifest 1 in m.example.com/x: {mirror}]\n[n.example.com/x:1: {mirror}]): r.example.com/x:1: "
        f"reading manifest 1 in r.example.com/x: {origin}"
    )
    assert classify("ErrImagePull", message) == reason


def test_the_newest_message_counts_if_it_has_a_cause() -> None:
    assert classify("ErrImagePull", GONE, f'Failed to pull image "x": {BUSY}') is WaitReason.IMAGE_NOT_FOUND
    assert classify("ErrImagePull", "", f'Failed to pull image "x": {BUSY}') is WaitReason.REGISTRY_BUSY
    assert classify("ErrImagePull") is WaitReason.REGISTRY_UNREACHABLE


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert classify("ErrImagePull", text) in WaitReason
