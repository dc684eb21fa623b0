"""The form of a new run, read into the same request that the REST interface takes, and back.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any, NoReturn

from .verdicts import RefusalReason, RunRefusedError


def request_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Give the body of the request that a form describes; what is left empty is left out.

    Raises
    ------
    RunRefusedError
        `bad-request`: parameters that are no JSON, or arguments with a quote that does not end.
    """
    path, profile = fields.get("path", ""), fields.get("profile", "")
    entry: dict[str, Any]
    if path.endswith(".ipynb"):
        entry = {"type": "notebook", "path": path, "parameters": _parameters(fields.get("parameters", ""))}
        if fields.get("kernel"):
            entry["kernel"] = fields["kernel"]
    else:
        launcher = "bash" if path.endswith(".sh") else fields.get("launcher") or "python"
        entry = {
            "type": "script",
            "path": path,
            "arguments": _arguments(fields.get("arguments", "")),
            "launcher": launcher,
        }
    body: dict[str, Any] = {
        "key": fields.get("key", ""),
        "name": fields.get("name", ""),
        "profile": profile,
        "team": fields.get("team", ""),
        "kind": fields.get(f"kind:{profile}", ""),
        "entry": entry,
        "source": {"type": "snapshot", "sha256": fields.get("snapshot", "")},
        "priority": fields.get("priority", ""),
        "maxDuration": fields.get("maxDuration", ""),
        "resumeFrom": fields.get("resumeFrom", ""),
        "choices": _choices(fields),
        **_numbers(fields),
        **_server(fields),
    }
    if fields.get("cron"):
        body["schedule"] = {"cron": fields["cron"], "timeZone": fields.get("timeZone") or "Etc/UTC"}
    # The default server has the empty name.
    return {name: value for name, value in body.items() if name == "server" or value not in ("", {}, None)}


def fields_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Give the fields of the form that describe a request; `request_of` reads them back.

    What the form has no field for is left out. So is the version of the profile: a form has today's.
    """
    profile = str(request.get("profile") or "").partition("@")[0]
    entry, source = request.get("entry") or {}, request.get("source") or {}
    schedule, server = request.get("schedule") or {}, request.get("server")
    plain = ("key", "name", "team", "priority", "maxDuration", "retries", "resumeFrom")
    fields = {
        **{name: request.get(name) for name in plain},
        "profile": profile,
        f"kind:{profile}": request.get("kind"),
        f"nodes:{profile}": request.get("nodes"),
        **{f"choice:{profile}:{name}": answer for name, answer in (request.get("choices") or {}).items()},
        **{name: entry.get(name) for name in ("path", "kernel", "launcher")},
        "parameters": "\n".join(f"{k} = {json.dumps(v)}" for k, v in (entry.get("parameters") or {}).items()),
        "arguments": shlex.join(map(str, entry.get("arguments") or ())),
        "snapshot": source.get("sha256"),
        **{name: schedule.get(name) for name in ("cron", "timeZone")},
    }
    filled = {name: str(value) for name, value in fields.items() if value not in (None, "")}
    if server is None:
        return filled
    release = {"release": "on"} if request.get("release") else {}
    return filled | {"server": str(server), "image": str(request.get("image") or "profile")} | release


def _choices(fields: Mapping[str, str]) -> dict[str, str]:
    """Give the answers to the questions of the profile that was picked; the others belong to other cards."""
    prefix = f"choice:{fields.get('profile', '')}:"
    return {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}


def _numbers(fields: Mapping[str, str]) -> dict[str, int]:
    found = {}
    profile = fields.get("profile", "")
    for name, field in (("nodes", f"nodes:{profile}"), ("retries", "retries")):
        text = fields.get(field, "").strip()
        if not text:
            continue
        if not text.isascii() or not text.isdigit() or len(text) > 4:
            raise RunRefusedError(
                RefusalReason.BAD_REQUEST, f"{name}: a whole number is expected.", field=name
            )
        found[name] = int(text)
    return found


def _server(fields: Mapping[str, str]) -> dict[str, Any]:
    if "server" not in fields:
        return {}
    image = "server" if fields.get("image") == "server" else "profile"
    return {"server": fields["server"], "image": image, "release": fields.get("release") == "on"}


def _parameters(text: str) -> dict[str, Any]:
    """Read parameters as a JSON object, or as lines ``name=value`` with values in JSON or plain text."""
    if not text.strip():
        return {}
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise RunRefusedError(
                RefusalReason.BAD_REQUEST, f"The parameters are not JSON: {error}.", field="entry.parameters"
            ) from error
        if isinstance(found, dict):
            return found
    return dict(read_parameter(line) for line in text.splitlines() if line.strip())


def read_parameter(text: str) -> tuple[str, Any]:
    """Read ``name=value``; what is no JSON is a text.

    Raises
    ------
    RunRefusedError
        There is no ``=``.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise RunRefusedError(
            RefusalReason.BAD_REQUEST, f"{text[:80]!r}: write name=value.", field="entry.parameters"
        )
    try:
        return name.strip(), json.loads(value, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return name.strip(), value.strip()


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _finite(text: str) -> float:
    """Read a number; `1e999` is none that JSON could carry."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _arguments(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise RunRefusedError(
            RefusalReason.BAD_REQUEST, f"The arguments cannot be read: {error}.", field="entry.arguments"
        ) from error
