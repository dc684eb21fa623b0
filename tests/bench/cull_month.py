"""Many simulated months with a look every minute, by other seeds than the unit test's.

    python -m tests.bench.cull_month --months 4 --sessions 500 --every 60

Prints one line a month; ends with 1 if work was killed or too little came back.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fakes.culler_month import Result, build_month, live

LEAST = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=4)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--every", type=float, default=60.0, metavar="SECONDS")
    args = parser.parse_args()
    results = [_month(seed, args) for seed in range(args.months)]
    return int(any(one.killed or one.share_returned < LEAST for one in results))


def _month(seed: int, args: argparse.Namespace) -> Result:
    began = time.monotonic()
    result = live(*build_month(seed, args.sessions), step=args.every)
    took = time.monotonic() - began
    print(
        f"month {seed}: {result.sessions} sessions, {len(result.killed)} killed at work, "
        f"{result.share_returned:.1%} of {result.idle_hours:,.0f} idle GPU hours returned ({took:.0f} s)",
        *result.killed[:5],
        flush=True,
    )
    return result


if __name__ == "__main__":
    sys.exit(main())
