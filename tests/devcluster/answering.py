"""Waiting for an address that answers HTTP.

Shell: asks over the network.
"""

from __future__ import annotations

import httpx

from tests.devcluster.waiting import Check, nothing, until

ASK_SECONDS = 5
"""How long one answer may take."""


def until_answering(url: str, *, what: str, refusals: bool = False, check: Check = nothing) -> None:
    """Ask an address until it answers with success; with `refusals`, until it answers anything at all.

    Raises `NotReadyError`, or what `check` raises.
    """

    def missing() -> str | None:
        try:
            answer = httpx.get(url, timeout=ASK_SECONDS, trust_env=False)
        except httpx.TransportError as error:
            return repr(error)
        return None if refusals or answer.is_success else f"HTTP {answer.status_code}: {answer.text[:200]}"

    until(missing, what=what, check=check)
