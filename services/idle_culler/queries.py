"""What Prometheus is asked: five instant queries for all servers together, however many there are.

Sources: dcgm-exporter's default counters; its pod labels become ``exported_…`` where the scrape does not
honor them. Host names are never grouped by: they were renamed. A steady gauge has no `rate`.

Pure: no clock, no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ENGINE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTILIZATION: Final = "DCGM_FI_DEV_GPU_UTIL"
CPU_COUNTER: Final = "container_cpu_usage_seconds_total"
LABELS: Final = ("namespace", "pod", "exported_namespace", "exported_pod", "UUID", "GPU_I_ID", "instance")
METER: Final = "meter"
"""Label that tells the two meters of a card apart in one answer: without it ``or`` would drop one of them."""
_CPU_STEP: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The expressions of one pass."""

    largest: str
    """Largest value of each meter in the window, both as fractions."""
    samples: str
    """Samples of each meter in the window; NaN where one of them is NaN, which `largest` leaves out."""
    age: str
    """Seconds since the newest sample; ``timestamp`` of a function's result would be the time of asking."""
    cores: str
    """Most processors that each pod used in the window."""
    cores_samples: str


def build_queries(window_seconds: int, *, matchers: str = "", cpu_matchers: str = "") -> Queries:
    """Write the queries.

    Parameters
    ----------
    matchers
        Further label matchers that an admin gives, such as ``cluster="a"``.
    cpu_matchers
        Those that pick the servers' namespaces, already quoted.
    """
    engine, window = f"{ENGINE}{{{matchers}}}", f"[{window_seconds}s]"
    plain = ",".join(part for part in (matchers, 'GPU_I_ID=""') if part)
    utilization = f"{UTILIZATION}{{{plain}}}"
    where = ",".join(part for part in (matchers, 'container!=""', cpu_matchers) if part)
    cores = f"sum by (namespace, pod) (rate({CPU_COUNTER}{{{where}}}[{3 * _CPU_STEP}s]))"
    over = f"({cores})[{window_seconds}s:{_CPU_STEP}s]"
    return Queries(
        largest=_both(
            "max", f"max_over_time({engine}{window})", f"max_over_time({utilization}{window}) / 100"
        ),
        samples=_both("max", _numbers(engine + window), _numbers(utilization + window)),
        age=_both("min", f"time() - timestamp({engine})", f"time() - timestamp({utilization})"),
        cores=f"max_over_time({over})",
        cores_samples=f"count_over_time({over}) / {window_seconds // _CPU_STEP}",
    )


def _numbers(samples: str) -> str:
    return f"count_over_time({samples}) + 0 * sum_over_time({samples})"


def _both(how: str, engine: str, utilization: str) -> str:
    by = ", ".join(LABELS)
    return (
        f'label_replace({how} by ({by}) ({engine}), "{METER}", "engine", "", "")\n'
        f'or\nlabel_replace({how} by ({by}) ({utilization}), "{METER}", "utilization", "", "")'
    )
