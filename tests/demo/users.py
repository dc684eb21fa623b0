"""The demo's people. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    group: str
    """Group of the hub; the catalog's teams go by it."""
    password: str = "workspaces"
    """The same for all: the demo's hub takes one password."""


ADA = User(name="ada", group="nlp")
VERA = User(name="vera", group="vision")
USERS = (ADA, VERA)
