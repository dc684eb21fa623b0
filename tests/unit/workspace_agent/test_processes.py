"""Whose process is which, and what each used."""

from __future__ import annotations

from typing import Any

import pytest

from hub_ext.protocol import Origin
from services.workspace_agent.processes import (
    Roots,
    Shell,
    Stat,
    Use,
    foreground_command,
    measure,
    tree_cpu,
)

WINDOW = 30.0
BEGUN = 1_000_000.0
TINI, SERVER, KERNEL, BASH = 1, 10, 20, 30
ROOTS = Roots(server=SERVER, kernels={KERNEL: "k1"}, shells={BASH: Shell(name="1", foreground=BASH)})


def stat(pid: int, parent: int = TINI, **fields: Any) -> Stat:
    """A process that was there long before the window, alone in its group and session."""
    defaults: dict[str, Any] = {
        "group": pid,
        "session": pid,
        "command": f"p{pid}",
        "started": BEGUN - 1000,
        "cpu_seconds": 100.0,
        "io_bytes": 0,
    }
    return Stat(pid=pid, parent=parent, **{**defaults, **fields})


def base() -> list[Stat]:
    """What every workspace has, at rest."""
    return [
        stat(TINI, 0, command="tini"),
        stat(SERVER, command="jupyterhub-sing"),
        stat(KERNEL, SERVER, command="python3"),
        stat(BASH, SERVER, command="bash"),
    ]


def uses(before: list[Stat], after: list[Stat], *, roots: Roots = ROOTS) -> dict[int, Use]:
    found = measure(before, after, roots=roots, begun=BEGUN, seconds=WINDOW)
    return {use.stat.pid: use for use in found}


def test_processor_time_is_a_share_of_one_processor() -> None:
    before = [*base(), stat(21, KERNEL)]
    after = [*base(), stat(21, KERNEL, cpu_seconds=160.0, io_bytes=5)]
    found = uses(before, after)
    assert found[21].cpu == 2.0
    assert found[21].io_bytes == 5
    assert found[KERNEL].cpu == 0.0


def test_nothing_is_measured_by_one_look() -> None:
    found = measure((), base(), roots=ROOTS, begun=0, seconds=0)
    assert {use.cpu for use in found} == {None}


def test_a_process_that_began_in_the_window_is_measured_from_its_beginning() -> None:
    young = stat(21, KERNEL, started=BEGUN + 10, cpu_seconds=3.0)
    assert uses(base(), [*base(), young])[21].cpu == pytest.approx(0.1)


def test_a_process_that_was_overlooked_is_not_measured() -> None:
    assert uses(base(), [*base(), stat(21, KERNEL)])[21].cpu is None


def test_a_number_that_is_used_again_is_another_process() -> None:
    before = [*base(), stat(21, KERNEL, cpu_seconds=500.0)]
    after = [*base(), stat(21, BASH, started=BEGUN + 20, cpu_seconds=1.5)]
    found = uses(before, after)
    assert found[21].cpu == pytest.approx(0.05)
    assert found[21].origin is Origin.TERMINAL


def test_short_children_count_for_who_waited_for_them() -> None:
    shell = next(entry for entry in base() if entry.pid == BASH)
    others = [entry for entry in base() if entry.pid != BASH]
    after = [*others, stat(BASH, SERVER, children_seconds=shell.children_seconds + 6.0)]
    found = uses(base(), after)
    assert found[BASH].cpu == pytest.approx(0.2)
    assert tree_cpu(found.values(), BASH, "1", without_root=True) == pytest.approx(0.2)


def test_what_a_child_used_before_the_window_is_not_counted_when_it_ends() -> None:
    before = [*base(), stat(31, BASH, cpu_seconds=900.0)]
    others = [entry for entry in base() if entry.pid != BASH]
    after = [*others, stat(BASH, SERVER, children_seconds=903.0)]
    assert uses(before, after)[BASH].cpu == pytest.approx(0.1)


def test_a_child_that_ends_hides_no_other_that_works() -> None:
    before = [*base(), stat(21, KERNEL, cpu_seconds=900.0), stat(22, KERNEL)]
    after = [*base(), stat(22, KERNEL, cpu_seconds=115.0)]  # nobody waited for the other
    found = uses(before, after)
    assert tree_cpu(found.values(), KERNEL, "k1") == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("entry", "origin", "owner"),
    [
        (stat(21, KERNEL), Origin.KERNEL, "k1"),
        (stat(31, BASH), Origin.TERMINAL, "1"),
        (stat(22, TINI, session=KERNEL), Origin.KERNEL, "k1"),
        (stat(32, TINI, session=BASH), Origin.TERMINAL, "1"),
        (stat(40, TINI), Origin.DETACHED, ""),
        (stat(41, SERVER, command="code-server"), Origin.DETACHED, ""),
        (stat(42, 999), Origin.DETACHED, ""),
        (stat(50, SERVER), Origin.SERVER, ""),
        (stat(51, 50), Origin.SERVER, ""),
    ],
    ids=[
        "child-of-a-kernel",
        "child-of-a-shell",
        "orphan-of-a-kernel",
        "orphan-of-a-shell",
        "setsid",
        "app-beside-jupyterlab",
        "parent-not-seen",
        "self-test",
        "child-of-the-self-test",
    ],
)
def test_origins(entry: Stat, origin: Origin, owner: str) -> None:
    roots = Roots(server=SERVER, kernels=ROOTS.kernels, shells=ROOTS.shells, helpers=frozenset({50}))
    table = [*base(), stat(50, SERVER), entry]
    found = uses(table, table, roots=roots)[entry.pid]
    assert (found.origin, found.owner) == (origin, owner)


def test_the_server_and_what_keeps_it_are_no_work() -> None:
    found = uses(base(), base())
    assert {pid for pid, use in found.items() if use.origin is Origin.SERVER} == {TINI, SERVER}


def test_a_terminal_inside_a_kernel_is_the_nearest_owner_s() -> None:
    table = [*base(), stat(60, KERNEL), stat(61, 60)]
    roots = Roots(server=SERVER, kernels={KERNEL: "k1", 60: "k2"}, shells={})
    assert uses(table, table, roots=roots)[61].owner == "k2"


def test_a_loop_in_the_table_ends() -> None:
    table = [stat(70, 71), stat(71, 70)]
    assert {use.origin for use in uses(table, table).values()} == {Origin.DETACHED}


def test_foreground_and_background_jobs() -> None:
    shell = Shell(name="1", foreground=31)
    roots = Roots(server=SERVER, shells={BASH: shell})
    table = [
        *base(),
        stat(31, BASH, session=BASH, command="python3"),
        stat(32, 31, group=31, session=BASH, command="worker"),
        stat(33, BASH, session=BASH, command="rsync"),
        stat(34, 33, group=33, session=BASH, command="rsync"),
    ]
    found = uses(table, table, roots=roots)
    assert foreground_command(found.values(), shell) == "python3"
    assert {pid for pid, use in found.items() if use.foreground} == {31, 32}


def test_a_shell_that_waits_has_nothing_in_the_foreground() -> None:
    found = uses(base(), base())
    shell = ROOTS.shells[BASH]
    assert foreground_command(found.values(), shell) == ""


def test_a_tree_without_a_measured_root_is_not_measured() -> None:
    found = uses([stat(SERVER)], base())
    assert tree_cpu(found.values(), KERNEL, "k1") is None
    assert tree_cpu(found.values(), 999, "k9") is None
