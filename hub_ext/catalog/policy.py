"""Session limits, security, access and price of a profile.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..errors import BadValueError
from .base import Duration, Flag, LabelValue, Model, Name, ObjectName, Text, number_schema


class Session(Model):
    """How long a workspace lives."""

    idle_timeout: Duration | None = None
    """Stopped after this long without activity; left out, the hub decides."""
    max_duration: Duration | None = None
    """Stopped after this long in any case; left out, there is no limit."""
    warn_before: tuple[Duration, ...] = ()
    """When the user is warned before a stop, longest first."""
    start_timeout: Duration | None = None
    """How long a start may take, with a new node and the pull; left out, the hub decides."""


class Security(Model):
    """What the workspace may do on the cluster. The defaults are the closed ones."""

    service_account_token: Flag = False
    """Mount a token for the Kubernetes API."""
    service_account: ObjectName | None = None
    """ServiceAccount of the pod; left out, the hub's setting."""
    network_profile: LabelValue | None = None
    """Put on the pod as a label that NetworkPolicies select by."""
    run_as_user: int | None = Field(default=None, ge=0, strict=True)
    """User id; left out, the hub's setting."""
    run_as_group: int | None = Field(default=None, ge=0, strict=True)
    """Group id; left out, the hub's setting."""
    fs_group: int | None = Field(default=None, ge=0, strict=True)
    """Group that owns mounted volumes; left out, the hub's setting."""
    allow_privilege_escalation: Flag = False
    """Let programs gain rights (sudo, setuid)."""
    seccomp_profile: Literal["RuntimeDefault", "Unconfined"] = "RuntimeDefault"
    """System calls that are filtered."""


class Access(Model):
    """Who may start it: anyone that one of the lists names."""

    everyone: Flag = False
    """Anyone who may log in."""
    teams: tuple[Name, ...] = ()
    """Teams of this catalog."""
    groups: tuple[Text, ...] = ()
    """Groups of the hub, exactly as it spells them."""
    users: tuple[Text, ...] = ()
    """Users of the hub, exactly as it spells them."""
    show_to_others: Flag = False
    """Show the profile to everyone else too: greyed out, and for which teams it is."""


def _money(value: object) -> object:
    if isinstance(value, bool):
        raise BadValueError(f"{value!r} is not an amount of money", code="wrong-type")
    return str(value) if isinstance(value, float) else value


Money = Annotated[Decimal, BeforeValidator(_money), WithJsonSchema(number_schema())]


def _check_currency(text: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", text):
        raise BadValueError(
            f"{text!r} is not the code of a currency", help="Write three capitals: EUR, USD, CHF."
        )
    return text


Currency = Annotated[
    str, AfterValidator(_check_currency), WithJsonSchema({"type": "string", "pattern": "^[A-Z]{3}$"})
]


class Price(Model):
    """What a workspace costs while it runs; used or idle makes no difference."""

    per_hour: Money = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    """Amount for one hour."""
    currency: Currency
    """ISO 4217 code: EUR, USD, CHF."""
