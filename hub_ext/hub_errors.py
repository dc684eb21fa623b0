"""A refusal as an exception of the hub, alike on both lines: one text everywhere, no failure of the hub.

JupyterHub 6 has `SpawnException` for it, but looks for its text only where it is not kept: the form and the
progress page show `jupyterhub_message` (`utils.format_exception`), which is therefore set on both lines.
JupyterHub 5 has no such exception.

Shell: names the hub's classes, does nothing by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import jupyterhub.spawner
from tornado import web

from .selection import Refusal

_SpawnException: Callable[..., web.HTTPError] | None = getattr(jupyterhub.spawner, "SpawnException", None)


class LinkOnly(web.HTTPError):
    """Raised for a link with options: the page is shown with them filled in, and nothing is started."""

    jupyterhub_message = ""

    def __init__(self) -> None:
        super().__init__(HTTPStatus.OK)


def without_false_alarms(record: logging.LogRecord) -> bool:
    """Keep the hub's log to what is wrong with the hub; a filter for its logger.

    A link that was only shown is no failed start, and a refusal is no crash: its line stays, without trace.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, LinkOnly):
        return False
    if error is None or hasattr(error, "jupyterhub_message"):
        record.exc_info = None  # JupyterHub 5 also asks for a trace where there is none to show
    return True


def hub_error(refusal: Refusal, settings: dict[str, Any] | None) -> web.HTTPError:
    """Make the exception that ends an attempt.

    Parameters
    ----------
    settings
        Those of the web application that handles the attempt, None where there is none. JupyterHub 5 adds
        one to `failure_count` for every failed start and exits at a limit; this one is taken off beforehand.
    """
    if _SpawnException is not None:
        error = _SpawnException(refusal.text, reason=refusal.reason, status_code=refusal.status)
    else:
        error = web.HTTPError(refusal.status, refusal.text)
        if settings is not None:
            settings["failure_count"] = settings.get("failure_count", 0) - 1
    error.jupyterhub_message = refusal.text  # type: ignore[attr-defined]
    return error
