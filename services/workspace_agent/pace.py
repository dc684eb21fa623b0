"""When to report next: as asked while all goes well, ever more seldom while it does not.

Pure: chance is an argument.
"""

from __future__ import annotations

SHORTEST_SECONDS = 1.0
"""Even when the culler is in a hurry; one report takes milliseconds."""
LONGEST_SECONDS = 600.0
"""A culler that comes back is told of the workspace within this time."""
SPREAD = 0.1
"""Reports of many workspaces that started together drift apart by this part of the interval."""


def seconds_until_next(asked: float, failures: int, chance: float) -> float:
    """How long to wait after a report.

    Parameters
    ----------
    asked
        What the culler wants, in seconds; bounded here, whatever it says.
    failures
        Reports that failed since one was answered.
    chance
        From 0 to 1, drawn anew each time.
    """
    usual = min(max(asked, SHORTEST_SECONDS), LONGEST_SECONDS)
    backed_off: float = min(usual * 2 ** min(failures, 16), LONGEST_SECONDS)
    return backed_off * (1 + SPREAD * (2 * chance - 1))
