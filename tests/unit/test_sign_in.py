"""Groups as identity providers write them; what cannot be read is no group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oauthenticator.generic import GenericOAuthenticator

from hub_ext.sign_in import groups_of, read_groups


@pytest.mark.parametrize(
    ("claims", "key", "expected"),
    [
        ({"groups": ["a", "b"]}, "groups", {"a", "b"}),
        ({"groups": ["/teams/nlp"]}, "groups", {"/teams/nlp"}),
        ({"groups": "nlp"}, "groups", {"nlp"}),  # and not n, l and p
        ({"groups": "a,b"}, "groups", {"a,b"}),
        ({"groups": []}, "groups", set()),
        ({}, "groups", set()),
        ({"groups": None}, "groups", set()),
        ({"groups": True}, "groups", set()),
        ({"groups": 7}, "groups", set()),
        ({"groups": {"nlp": True}}, "groups", set()),
        ({"groups": ["a", None, 3, {"name": "b"}, "", " ", "c\n"]}, "groups", {"a"}),
        ({"oauth_user": {"realm_access": {"roles": ["a"]}}}, "oauth_user.realm_access.roles", {"a"}),
        (
            {"oauth_user": {"https://example.com/groups": ["a"]}},
            "oauth_user.https://example.com/groups",
            {"a"},
        ),
        ({"a.b": {"c": ["x"]}, "a": {"b": {"c": ["y"]}}}, "a.b.c", {"x"}),
        ({"a.b": {}, "a": {"b": {"c": ["y"]}}}, "a.b.c", {"y"}),
        ({"a": "text"}, "a.b", set()),
        ({"groups": ["ADMIN", "admin"]}, "groups", {"ADMIN", "admin"}),
    ],
)
def test_groups_are_read(claims, key, expected):
    assert read_groups(claims, key) == expected


def test_a_text_may_hold_several():
    assert read_groups({"g": "a, b,,c "}, "g", separator=",") == {"a", "b", "c"}
    assert read_groups({"g": "a b"}, "g", separator=" ") == {"a", "b"}


json = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["a", "a.b", "b"]), json), st.sampled_from(["a", "a.b", "a.b.c"]))
def test_nothing_is_a_crash(claims, key):
    assert all(isinstance(name, str) and name for name in read_groups(claims, key))


@pytest.mark.parametrize("value", [None, "nlp", ["nlp"]])
async def test_oauthenticator_takes_it(value):
    authenticator = GenericOAuthenticator(
        manage_groups=True,
        auth_state_groups_key=groups_of("oauth_user.groups"),
        oauth_callback_url="http://hub/hub/oauth_callback",
        allow_all=True,
    )
    found = await authenticator.get_user_groups({"oauth_user": {"groups": value}})
    assert found == ({"nlp"} if value else set())
