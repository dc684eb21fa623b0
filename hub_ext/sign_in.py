"""Groups of a person, from what an identity provider says: the one place that reads such claims.

Providers write them as a list, as one text, nested, under a key that has dots itself, or not at all. Whatever
cannot be read is no group: a mistake closes, it never opens.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def groups_of(key: str, *, separator: str = "") -> Callable[[Mapping[str, Any]], frozenset[str]]:
    """Make what `OAuthenticator.auth_state_groups_key` takes::

        c.GenericOAuthenticator.auth_state_groups_key = groups_of("oauth_user.groups")

    Parameters
    ----------
    key
        Where the claim is in `auth_state`, step by step: ``oauth_user.resource_access.hub.roles``. A key that
        has dots itself, such as ``https://example.com/groups``, is found too.
    separator
        What stands between groups where the claim is one text; without it, a text is one group.
    """
    return lambda auth_state: read_groups(auth_state, key, separator=separator)


def read_groups(claims: Mapping[str, Any], key: str, *, separator: str = "") -> frozenset[str]:
    """Read groups; see `groups_of`. Names stay exactly as the provider spells them."""
    found = _at(claims, key)
    if isinstance(found, str):
        found = found.split(separator) if separator else [found]
    if not isinstance(found, Iterable) or isinstance(found, Mapping | bytes):
        return frozenset()
    return frozenset(name for one in found if (name := _name(one, trim=bool(separator))))


def _at(node: Any, key: str) -> Any:
    """Follow a key; the longest that is there goes first, for keys may have dots."""
    if not isinstance(node, Mapping):
        return None
    if key in node:
        return node[key]
    parts = key.split(".")
    for length in range(len(parts) - 1, 0, -1):
        head = ".".join(parts[:length])
        if head in node and (found := _at(node[head], ".".join(parts[length:]))) is not None:
            return found
    return None


def _name(value: Any, *, trim: bool) -> str:
    """Give a group's name; empty for what is none."""
    if not isinstance(value, str):
        return ""
    text = value.strip() if trim else value
    return text if text.strip() and text.isprintable() else ""
