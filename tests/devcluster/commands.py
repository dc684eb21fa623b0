"""Commands that run to their end.

Shell: runs them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.devcluster.errors import CommandFailedError
from tests.devcluster.waiting import PATIENCE_SECONDS

INPUT_SHOWN = 500
"""Characters of the input that a message repeats."""


def execute(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    input: str | None = None,  # noqa: A002
    timeout: float = PATIENCE_SECONDS,
    shown: Sequence[str | Path] | None = None,
) -> str:
    """Run a command and return what it printed to standard output.

    `shown` is the command as a message names it, where `argv` only says how it is reached. Raises
    `CommandFailedError`, also when it cannot be started (code 127) or takes too long (code 124).
    """
    named = [str(word) for word in shown or argv]
    try:
        done = subprocess.run(
            [str(word) for word in argv],
            input=input or "",
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(env),
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(named, 124, f"it did not end within {timeout:.0f} s") from error
    except OSError as error:
        raise CommandFailedError(named, 127, str(error)) from error
    if done.returncode:
        given = f"\n(its input began:\n{input[:INPUT_SHOWN]})" if input else ""
        raise CommandFailedError(named, done.returncode, done.stderr + done.stdout + given)
    return done.stdout
