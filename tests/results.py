"""What the test runs say, and the closing lines made of it.

Pure, but for reading JUnit reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 5
"""How many tests of each run the closing lines name."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one pytest process said. `tests` counts all, the others are parts of it."""

    title: str
    seconds: float
    tests: int = 0
    failed: int = 0
    skipped: int = 0
    slowest: tuple[tuple[float, str], ...] = ()
    """Seconds and names; what is set up for several tests counts for the first of them."""
    problem: str = ""
    """Why the run as a whole is no pass, in words; empty when it is one."""

    @property
    def passed(self) -> int:
        return self.tests - self.failed - self.skipped


def read_report(report: Path) -> tuple[int, int, int]:
    """Return tests, failures (errors included) and skips of a JUnit report."""
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    tests = failed = skipped = 0
    for suite in suites:
        tests += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return tests, failed, skipped


def slowest_tests(report: Path, count: int = SLOWEST) -> tuple[tuple[float, str], ...]:
    """Return seconds and names of the slowest tests of a JUnit report, slowest first."""
    cases = ElementTree.parse(report).getroot().iter("testcase")
    timed = [
        (float(case.get("time", 0)), f"{case.get('classname', '')}::{case.get('name', '')}") for case in cases
    ]
    return tuple(sorted(timed, reverse=True)[:count])


def judge(*, returncode: int, tests: int, skipped: int) -> str:
    """Say why a finished pytest process is no pass, or return an empty string."""
    if returncode == 5 or tests == 0:
        return "no test ran"
    if returncode:
        return f"pytest ended with {returncode}"
    if skipped:
        return f"{skipped} tests were skipped; every test of a tier that runs must run"
    return ""


def summarize(results: Sequence[Result], *, seconds: float) -> str:
    """Return the closing lines; the last one is `N passed, N failed, N skipped`.

    `seconds` is what all of them took together.
    """
    lines = [""]
    for result in results:
        if result.slowest:
            lines.append(f"Slowest of {result.title}:")
            lines += [f"  {took:6.1f} s  {name}" for took, name in result.slowest]
    lines.append("")
    for result in results:
        verdict = f"FAILED: {result.problem}" if result.problem else "ok"
        lines.append(f"{result.title:48} {result.passed:5} passed  {result.seconds:6.0f} s  {verdict}")
    lines.append(f"{'all':48} {'':5}         {seconds:6.0f} s")
    passed, failed, skipped = (
        sum(getattr(result, field) for result in results) for field in ("passed", "failed", "skipped")
    )
    # A tier that could not run is a failure even when no test in it was counted.
    failed += sum(1 for result in results if result.problem and not result.failed)
    lines.append(f"{passed} passed, {failed} failed, {skipped} skipped")
    return "\n".join(lines)
