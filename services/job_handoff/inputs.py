"""What a run may be given: variables, a repository, a kernel.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

from hub_ext.errors import BadValueError

from .model import Git, Notebook, RunRequest, Schedule
from .schedules import next_start, zone_of
from .settings import HandoffSettings
from .snapshot import find_credential
from .verdicts import RefusalReason, RunRefusedError

NEVER_ALLOWED: Final = (
    "LD_*",
    "PYTHON*",
    "PATH",
    "HOME",
    "IFS",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "KUBERNETES_*",
    "JUPYTERHUB_*",
    "JPY_*",
    "HANDOFF_*",
    "RUN_*",
    "CHECKPOINT_*",
    "PET_*",
    "RAY_*",
    "NVIDIA_*",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MPS_*",
    "AWS_*",
    "GIT_*",
    "SSL_*",
    "*_PROXY",
    "*_proxy",
)
"""Variables that no setting gives to users: they change who the run is, what it may reach or what it runs."""
_SECRET: Final = re.compile(
    r"(?:TOKEN|SECRET|PASSW(?:OR)?D|API_?KEY|ACCESS_?KEY|CREDENTIALS?|PRIVATE_?KEY)\d*(?:_|$)", re.I
)
"""What ends a word of a name: `HF_TOKEN` is one, `TOKENIZERS_PARALLELISM` and `MAX_TOKENS` are none."""


_SECRETS_OF_TEAMS: Final = "Ask an administrator for a Secret of your team."


def check_environment(request: RunRequest, settings: HandoffSettings) -> None:
    """Refuse variables that are not allowed, and credentials in them, in parameters and in arguments.

    Raises
    ------
    RunRefusedError
        `environment-not-allowed` or `credential-in-environment`.
    """
    for name in request.environment:
        never = any(fnmatchcase(name, pattern) for pattern in NEVER_ALLOWED)
        if never or not any(fnmatchcase(name, pattern) for pattern in settings.environment):
            raise RunRefusedError(
                RefusalReason.ENVIRONMENT_NOT_ALLOWED,
                f"The variable {name} may not be set.",
                field=f"environment.{name}",
                allowed=settings.environment,
                help="Notebooks take parameters, scripts take arguments.",
            )
        if _SECRET.search(name):
            raise RunRefusedError(
                RefusalReason.CREDENTIAL_IN_ENVIRONMENT,
                f"{name} looks like a credential, and variables of a run are kept in plain text.",
                field=f"environment.{name}",
                help=_SECRETS_OF_TEAMS,
            )
    for field, values in _written(request):
        if what := find_credential(json.dumps(values, ensure_ascii=False).encode()):
            raise RunRefusedError(
                RefusalReason.CREDENTIAL_IN_ENVIRONMENT,
                f"{field} holds {what}, and what a run is asked for is kept in plain text.",
                field=field,
                help=_SECRETS_OF_TEAMS,
            )


def _written(request: RunRequest) -> Iterable[tuple[str, Any]]:
    """Give what users write freely, and what stays readable with a run."""
    yield "environment", dict(request.environment)
    if isinstance(request.entry, Notebook):
        yield "entry.parameters", dict(request.entry.parameters)
    else:
        yield "entry.arguments", list(request.entry.arguments)


def check_git(request: RunRequest, settings: HandoffSettings) -> None:
    """Refuse a repository on a host that is not allowed.

    Raises
    ------
    RunRefusedError
        `git-not-allowed`.
    """
    if not isinstance(request.source, Git):
        return
    host = urlsplit(request.source.url).hostname or ""
    if host not in settings.git_hosts:
        raise RunRefusedError(
            RefusalReason.GIT_NOT_ALLOWED,
            f"Commits from {host} are not allowed.",
            field="source.url",
            allowed=settings.git_hosts,
            help="Send a snapshot of the folder instead.",
        )


def check_schedule(schedule: Schedule, today: date) -> None:
    """Refuse a schedule that the cluster would not take, and one that never starts anything.

    Raises
    ------
    RunRefusedError
        `bad-schedule`.
    """
    try:
        zone_of(schedule.time_zone)
    except BadValueError as error:
        raise RunRefusedError(
            RefusalReason.BAD_SCHEDULE,
            f"The schedule is not valid: {error}.",
            field="schedule.timeZone",
            help="Names are those of the IANA data base, such as Europe/Berlin.",
        ) from error
    try:
        midnight = datetime.combine(today, time(), tzinfo=UTC)
        first = next_start(schedule.cron, schedule.time_zone, midnight)
    except BadValueError as error:
        raise RunRefusedError(
            RefusalReason.BAD_SCHEDULE,
            f"The schedule is not valid: {error}.",
            field="schedule.cron",
            help="Write minute, hour, day, month and weekday, such as `0 6 * * 1-5`, or @daily.",
        ) from error
    if first is None:
        raise RunRefusedError(
            RefusalReason.BAD_SCHEDULE,
            f"The schedule would never start anything: {schedule.cron!r} names no day that exists.",
            field="schedule.cron",
            help="The 30th of February, for one, never comes.",
        )


def check_kernel(named: str | None, override: str | None, kernels: Sequence[str]) -> str | None:
    """Say which kernel a notebook runs with; another one only if the user asks for it.

    Parameters
    ----------
    named
        In the notebook's metadata; None if it names none.

    Raises
    ------
    RunRefusedError
        `kernel-missing`, naming those that there are.
    """
    wanted = override or named
    if wanted is None or wanted in kernels:
        return wanted
    raise RunRefusedError(
        RefusalReason.KERNEL_MISSING,
        f"The image has no kernel {wanted!r}.",
        field="entry.kernel",
        allowed=kernels,
        help=f"Choose one of: {', '.join(kernels) or 'none is installed'}.",
    )


def no_kernel(path: str, kernels: Sequence[str]) -> RunRefusedError:
    """Make the error for a notebook that papermill would not begin, once it had its turn in the queue."""
    return RunRefusedError(
        RefusalReason.KERNEL_MISSING,
        f"{path!r} names no kernel, or is not a whole notebook.",
        field="entry.kernel",
        allowed=kernels,
        help="Open it in JupyterLab and save it, or say which kernel is to run it.",
    )
