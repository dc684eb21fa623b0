"""What a run has cost so far, by the price of its profile.

Pure: no clock, no network.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from hub_ext.units import format_money

from .record import Record


def cost_of(record: Record, span: timedelta) -> dict[str, Any] | None:
    """Give the cost of a run that ran for `span`, all its pods together; None without a price."""
    if not record.price_per_hour:
        return None
    hours = Decimal(int(span.total_seconds())) / 3600
    amount = (Decimal(record.price_per_hour) * hours * record.nodes).quantize(
        Decimal("0.01"), rounding=ROUND_HALF_UP
    )
    return {"amount": str(amount), "currency": record.currency, "text": format_money(amount, record.currency)}
