"""The description of the REST interface (OpenAPI 3.1), made from the models that read the requests.

Pure: no clock, no network.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from .model import RunRequest
from .status import Phase
from .verdicts import RefusalReason

_RUN: Final = {
    "name": "run",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z0-9-]{1,63}$"},
}
_DIGEST: Final = {
    "name": "sha256",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
_TEXT: Final = {"type": "string"}
_TIME: Final = {"type": ["string", "null"], "format": "date-time"}


def describe(prefix: str) -> dict[str, Any]:
    """Give the description for a service below `prefix`."""
    return {**_document(), "servers": [{"url": prefix.rstrip("/") or "/"}]}


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    request = RunRequest.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
    parts = request.pop("$defs", {})
    schemas = {
        **parts,
        "RunRequest": request,
        "Run": _run(),
        "Submitted": _submitted(),
        "Refusal": _refusal(),
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Job-handoff",
            "version": "1",
            "description": "Runs of notebooks and scripts on the cluster. Everything is about the runs of "
            "the one who asks.",
        },
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`token …`",
                }
            },
        },
        "security": [{"token": []}],
    }


def _paths() -> dict[str, Any]:
    run, body = (
        _ref("Run"),
        {"required": True, "content": {"application/json": {"schema": _ref("RunRequest")}}},
    )
    empty = {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True}
    binary = {"schema": {"type": "string", "format": "binary"}}
    dry = {"name": "dryRun", "in": "query", "schema": {"type": "string", "enum": ["true", "false"]}}
    lines = {"name": "lines", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 5000}}
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    submitted = {"200": _answer(_ref("Submitted")), "201": _answer(_ref("Submitted"))}
    return {
        "/api/openapi.json": {
            "get": _call("description", "This description.", {"200": _answer({"type": "object"})})
        },
        "/api/offers": {"get": _call("offers", "What you may run.", {"200": _answer({"type": "object"})})},
        "/api/queues": {
            "get": _call("queues", "The queues of your teams.", {"200": _answer({"type": "object"})})
        },
        "/api/usage": {
            "get": _call("usage", "What you keep, and how much you may.", {"200": _answer(_usage())})
        },
        "/api/snapshots/{sha256}": {
            "parameters": [_DIGEST],
            "get": _call("findSnapshot", "Whether a source is there.", {"200": _answer({"type": "object"})}),
            "put": _call(
                "putSnapshot",
                "Upload a source, a tar.gz that is named by its hash.",
                {"201": _answer({"type": "object"})},
                body={"required": True, "content": {"application/octet-stream": binary}},
            ),
        },
        "/api/runs": {
            "get": _call("listRuns", "Your runs, the newest first.", {"200": _answer(_runs())}),
            "post": _call(
                "submit",
                "Submit a run. Send a `key`: the same key and request give the same run, however often.",
                submitted,
                body=body,
                parameters=[dry],
            ),
        },
        "/api/runs/{run}": {
            "parameters": [_RUN],
            "get": _call("getRun", "One run.", {"200": _answer(run)}),
            "delete": _call(
                "removeRun",
                "Remove a run that has ended, with its results, log and checkpoints.",
                {"200": _answer(_object({"files": {"type": "integer", "minimum": 0}}))},
            ),
        },
        "/api/runs/{run}/cancel": {
            "parameters": [_RUN],
            "post": _call("cancel", "End a run or a schedule.", {"200": _answer(run)}, body=empty),
        },
        "/api/runs/{run}/retry": {
            "parameters": [_RUN],
            "post": _call("retry", "Do a run again.", submitted, body=empty),
        },
        "/api/runs/{run}/pause": {
            "parameters": [_RUN],
            "post": _call("pause", "Let a schedule rest.", {"200": _answer(run)}, body=empty),
        },
        "/api/runs/{run}/resume": {
            "parameters": [_RUN],
            "post": _call("resume", "Let a schedule go on.", {"200": _answer(run)}, body=empty),
        },
        "/api/runs/{run}/log": {
            "parameters": [_RUN],
            "get": _call(
                "log",
                "The last lines of a run's log.",
                {"200": {"description": "The log.", "content": {"text/plain": {"schema": _TEXT}}}},
                parameters=[lines],
            ),
        },
        "/api/runs/{run}/files": {
            "parameters": [_RUN],
            "get": _call("listFiles", "The results of a run.", {"200": _answer({"type": "object"})}),
        },
        "/api/runs/{run}/files/{name}": {
            "parameters": [_RUN, name],
            "get": _call(
                "getFile",
                "One result.",
                {"200": {"description": "The file.", "content": {"application/octet-stream": binary}}},
            ),
        },
    }


def _call(
    name: str,
    summary: str,
    answers: dict[str, Any],
    *,
    body: dict[str, Any] | None = None,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    refusals = {"description": "Refused, with the reason.", "content": _json(_ref("Refusal"))}
    call: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {**answers, "4XX": refusals, "503": refusals, "507": refusals},
    }
    if body is not None:
        call["requestBody"] = body
    if parameters is not None:
        call["parameters"] = parameters
    return call


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _answer(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "Done.", "content": _json(schema)}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any], *, required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or list(properties)}


def _runs() -> dict[str, Any]:
    runs = {"type": "array", "items": _ref("Run")}
    return _object({"runs": runs, "notice": _TEXT}, required=["runs"])


def _usage() -> dict[str, Any]:
    names = ("files", "size", "mostFiles", "mostSize")
    return _object({name: {"type": "integer", "minimum": 0} for name in names})


def _status() -> dict[str, Any]:
    return _object(
        {
            "phase": {"type": "string", "enum": [phase.value for phase in Phase]},
            "reason": _TEXT,
            "text": _TEXT,
            "detail": _TEXT,
            "since": _TIME,
            "started": _TIME,
            "ended": _TIME,
            "attempts": {"type": "integer", "minimum": 0},
            "preemptions": {"type": "integer", "minimum": 0},
            "position": {"type": ["integer", "null"], "minimum": 0},
        }
    )


def _run() -> dict[str, Any]:
    texts = ("id", "title", "user", "team", "kind", "profile", "image", "queue", "submitted")
    return _object(
        {
            **dict.fromkeys(texts, _TEXT),
            "request": {"type": "object"},
            "schedule": {"type": "boolean"},
            "next": _TIME | {"description": "When a schedule starts its next run; null where it is paused."},
            "status": _status(),
            "steps": {"type": "array", "items": _object({"at": _TIME, "text": _TEXT, "kind": _TEXT})},
            "progress": {"type": ["object", "null"]},
            "seconds": {"type": "integer", "minimum": 0},
            "cost": {"type": ["object", "null"]},
        }
    )


def _submitted() -> dict[str, Any]:
    forecast = _object(
        {
            "when": {"type": "string", "enum": ["now", "wait", "never", "unknown"]},
            "reason": _TEXT,
            "text": _TEXT,
            "help": _TEXT,
            "ahead": {"type": ["integer", "null"]},
            "shortages": {"type": "array", "items": {"type": "object"}},
        }
    )
    texts = ("id", "title", "kind", "profile", "image", "queue", "url")
    return _object(
        {
            **dict.fromkeys(texts, _TEXT),
            "created": {"type": "boolean"},
            "forecast": forecast,
            "notices": {"type": "array", "items": _TEXT},
            "next": _TIME | {"description": "When a schedule starts its first run."},
            "released": {"type": "boolean"},
        }
    )


def _refusal() -> dict[str, Any]:
    known = ", ".join(f"`{reason.value}`" for reason in RefusalReason)
    return _object(
        {
            "status": {"type": "integer"},
            "message": _TEXT,
            "reason": {"type": "string", "description": f"One word, such as {known}."},
            "help": _TEXT,
            "field": _TEXT,
            "allowed": {"type": "array", "items": _TEXT},
            "retry": {"type": "boolean"},
        },
        required=["status", "message"],
    )
