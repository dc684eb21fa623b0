"""Write the reference page of the interface for programs from its models, so that it cannot go stale.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from .answer import Fact, WorkspaceList

_HEAD: Final = """\
<!-- Written by `pytest tests/unit/form --update-golden`; do not edit. -->

# What may I start? For programs

`GET /hub/api/users/<user>/workspaces` gives the facts of a user's spawn page as JSON: which workspaces, with
which choices, how many more, what is free, warm or cold, the price, and why not. It is made of the same
entries as the page, and a start is checked again whatever it says.

- `?server=<name>` asks for a named server, which need not exist yet. What runs under the name is not counted
  against the user.
- `?opt-profile=<name>&opt-<choice>=<option>` fills answers in as a link to the page does: size, price and
  room of that workspace are told for them.
- Rights: `read:servers` of that user; on JupyterHub 6 `start:servers` does as well. All users have it for
  themselves, administrators for everybody.
- `Authorization: token …`; with the cookie of a browser also the header `X-XSRFToken`.
- 403 means no valid token, or one without these rights for anybody; 404 a user that does not exist, or for
  whom the token has no rights; 400 a name that no server can have, or that named servers are not enabled.

To start one, send its `options`, with other answers if you like: on JupyterHub 6
`POST /hub/api/users/<user>/server` with `{"user_options": {…}}`, on 5.x with the options themselves.

`configure()` puts the interface into the hub by `JupyterHub.extra_handlers`; the hub notes in its log that
services are preferred to that. It stays there because what it tells is in the hub's own process.

"""


def reference() -> str:
    """Give the page as Markdown."""
    return _HEAD + "\n".join(_section(model) for model in _models(WorkspaceList))


def _models(first: type[Fact]) -> list[type[Fact]]:
    """Give a model and all that it is made of, in the order in which a reader meets them."""
    found: list[type[Fact]] = []
    todo = [first]
    while todo:
        model = todo.pop(0)
        if model not in found:
            found.append(model)
            todo = [
                *(one for field in model.model_fields.values() for one in _facts(field.annotation)),
                *todo,
            ]
    return found


def _facts(kind: Any) -> Iterator[type[Fact]]:
    if isinstance(kind, type) and issubclass(kind, Fact):
        yield kind
    for inside in get_args(kind):
        yield from _facts(inside)


def _section(model: type[Fact]) -> str:
    rows = "".join(_row(field) for field in model.model_fields.values())
    return f"## {model.__name__}\n\n{model.__doc__}\n\n| field | type | |\n|---|---|---|\n{rows}"


def _row(field: FieldInfo) -> str:
    words = dict.fromkeys(_words(field.annotation))
    named = [word for word in words if word != "null"]
    kind = " or ".join([*named, *(["null"] if len(named) < len(words) else [])])
    return f"| `{field.alias}` | {kind} | {field.description or ''} |\n"


def _words(kind: Any) -> Iterator[str]:
    """Name a type as JSON has it."""
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        for one in get_args(kind):
            yield from _words(one)
    elif origin is tuple:
        yield f"list of {' or '.join(dict.fromkeys(_words(get_args(kind)[0])))}"
    elif origin is dict:
        yield "object"
    elif issubclass(kind, StrEnum):
        yield ", ".join(f"`{word}`" for word in kind)
    elif issubclass(kind, Fact):
        yield f"[{kind.__name__}](#{kind.__name__.lower()})"
    else:
        yield next(word for types, word in _JSON if issubclass(kind, types))


_JSON: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (type(None), "null"),
    (bool, "true, false"),
    ((int, float), "number"),
    ((str, Decimal), "text"),
)
