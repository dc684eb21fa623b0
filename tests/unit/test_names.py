"""Labels, object names and image references."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub_ext.errors import NameRuleError
from hub_ext.names import (
    ImageReference,
    is_dns_label,
    is_label_key,
    is_label_value,
    label_value,
    object_name,
    parse_image,
    server_of,
)

HEX = "0123456789abcdef" * 4
NASTY = [
    "",
    "a",
    "A",
    "user@example.org",
    "ö",
    "a" * 63,
    "a" * 64,
    "-",
    "--",
    "a--b",
    "_",
    "x\N{ROCKET}",
    "a/b",
    "{x}",
]


@given(st.text())
def test_any_text_becomes_a_label_value(text: str) -> None:
    assert is_label_value(label_value(text))


@given(st.text(), st.text())
def test_different_texts_become_different_label_values(one: str, other: str) -> None:
    assert (label_value(one) == label_value(other)) == (one == other)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_parts_become_an_object_name(parts: list[str]) -> None:
    name = object_name(*parts)
    assert is_dns_label(name)
    assert len(name) <= 63


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3))
def test_different_parts_become_different_object_names(one: list[str], other: list[str]) -> None:
    assert (object_name(*one) == object_name(*other)) == (one == other)


def test_parts_are_told_apart_where_they_are_joined() -> None:
    assert object_name("a-b", "c") != object_name("a", "b-c") != object_name("a-b-c")


@pytest.mark.parametrize("text", NASTY)
def test_a_made_name_cannot_be_taken_by_writing_it(text: str) -> None:
    made = label_value(text)
    if made != text:
        assert label_value(made) != made
    named = object_name("job", text)
    assert object_name(named) != named


def test_names_that_are_valid_stay_readable() -> None:
    assert label_value("CC-123") == "CC-123"
    assert object_name("team-nlp") == "team-nlp"
    assert object_name("home", "Ada Lovelace").startswith("home-ada-lovelace--")


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("nvidia.com/gpu.product", True),
        ("a", True),
        ("a/b/c", False),
        ("/b", False),
        ("Upper.example/x", False),
        ("a" * 64, False),
        ("example.com/", False),
    ],
)
def test_label_keys(key: str, valid: bool) -> None:
    assert is_label_key(key) is valid


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("base", "", "base", "", ""),
        ("base:1", "", "base", "1", ""),
        ("library/base:1.2_x", "", "library/base", "1.2_x", ""),
        ("registry.example.com/ai/x:1", "registry.example.com", "ai/x", "1", ""),
        ("registry:5000/x", "registry:5000", "x", "", ""),
        ("localhost/x:1", "localhost", "x", "1", ""),
        ("[::1]:5000/x", "[::1]:5000", "x", "", ""),
        (f"r.io/a/b__c:1@sha256:{HEX}", "r.io", "a/b__c", "1", f"sha256:{HEX}"),
        (f"a/b@sha512:{HEX}{HEX}", "", "a/b", "", f"sha512:{HEX}{HEX}"),
    ],
)
def test_image_references(text: str, registry: str, repository: str, tag: str, digest: str) -> None:
    image = parse_image(text)
    assert image == ImageReference(registry=registry, repository=repository, tag=tag, digest=digest)
    assert str(image) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":1",
        "Base:1",
        "r.io/Upper",
        "r.io/a:",
        "r.io/a b",
        "r.io//a",
        "r.io:99999/a",
        "r.io/a:" + "t" * 129,
        "r.io/a@sha256:123",
        f"r.io/a@md5:{HEX}",
        f"r.io/a@sha256:{HEX.upper()}",
        f"r.io/a:1@sha256:{HEX}:",
        "a" * 256,
        "r.io/a\n",
        "https://r.io/a",
        "a..b/c",
        "r.io/a___b",
    ],
)
def test_what_is_no_image_reference(text: str) -> None:
    with pytest.raises(NameRuleError) as caught:
        parse_image(text)
    assert caught.value.code == "bad-image"
    assert caught.value.help


def test_a_short_digest_fits_a_label() -> None:
    short = parse_image(f"r.io/a@sha256:{HEX}").short_digest
    assert re.fullmatch(r"[0-9a-f]{12}", short)
    assert parse_image("r.io/a:1").short_digest == ""


@given(st.text(alphabet="ab.:/@_-0A[]", max_size=40))
def test_any_text_is_a_reference_or_an_error(text: str) -> None:
    with suppress(NameRuleError):
        assert str(parse_image(text)) == text


@pytest.mark.parametrize(
    ("annotations", "server"),
    [
        ({"hub.jupyter.org/username": "ada", "hub.jupyter.org/servername": "lab"}, ("ada", "lab")),
        ({"hub.jupyter.org/username": "a-64a", "gpu-workspaces.jupyter.org/user": "ada"}, ("ada", "")),
        ({}, ("", "")),
    ],
    ids=["KubeSpawner's", "ours first", "none"],
)
def test_whose_server_a_pod_is(annotations: dict[str, str], server: tuple[str, str]) -> None:
    assert server_of(annotations) == server
