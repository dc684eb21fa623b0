"""What the API server says when it creates nothing, read into one shape.

Sources, at Kubernetes 1.36: apiserver `admission/plugin/{resourcequota,webhook,policy}`, kubernetes
`plugin/pkg/admission/{limitranger,serviceaccount,priority,runtimeclass,security/podsecurity}`. The message is
read, never the text of a client's exception, and only from where its speaker begins: what a webhook or a
policy says is theirs even if it speaks of quotas, and a value that is not valid is only quoted.

Pure: no clock, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import QuantityError
from . import ranges, texts, words
from .arithmetic import read_amount
from .verdicts import Fault, Reason, Refusal, Scope, Shortage

_DETAIL_LENGTH: Final = 600
"""Longest part of a server's message that is passed on: rules of webhooks can be pages long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The status that an API server sent instead of an object."""

    code: int
    """HTTP status; 0 if nobody answered."""
    reason: str = ""
    """Kubernetes' own word, such as ``Forbidden``."""
    message: str = ""
    kind: str = ""
    """`details.kind`: what the answer is about, in the plural (``pods``, ``resourcequotas``)."""


def read_answer(code: int, body: str | bytes | None) -> Answer:
    """Read the body of an error; anything that is not a Status of Kubernetes is taken as its message."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    try:
        status = json.loads(text)
    except ValueError:
        return Answer(code=code, message=text)
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return Answer(code=code, message=text)
    details = status.get("details") or {}
    return Answer(
        code=code,
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        kind=details.get("kind") or "",
    )


def explain(answer: Answer) -> Refusal:
    """Say in one shape why nothing was created; an answer of no known shape is an `API_ERROR`."""
    for rule in _RULES:
        match = rule.pattern.match(answer.message)
        if match and (rule.code is None or rule.code == answer.code):
            return rule.read(answer, match)
    reason, fault, retry = _by_code(answer.code)
    return _refusal(reason, answer, fault=fault, retry=retry)


def _refusal(
    reason: Reason,
    answer: Answer,
    *,
    what: str = "",
    fault: Fault = Fault.ADMIN,
    retry: bool = False,
    component: str = "",
) -> Refusal:
    return Refusal(
        reason=reason,
        text=texts.refused(reason, what),
        fault=fault,
        retry=retry,
        component=component,
        detail=answer.message[:_DETAIL_LENGTH],
    )


_BY_CODE: Final = {
    0: (Reason.API_UNAVAILABLE, Fault.CLUSTER, True),
    400: (Reason.INVALID_POD, Fault.ADMIN, False),
    401: (Reason.NOT_PERMITTED, Fault.ADMIN, False),
    403: (Reason.NOT_PERMITTED, Fault.ADMIN, False),
    404: (Reason.MISSING_OBJECT, Fault.ADMIN, False),
    409: (Reason.NAME_TAKEN, Fault.CLUSTER, True),
    422: (Reason.INVALID_POD, Fault.ADMIN, False),
    429: (Reason.API_BUSY, Fault.CLUSTER, True),
    502: (Reason.API_UNAVAILABLE, Fault.CLUSTER, True),
    503: (Reason.API_UNAVAILABLE, Fault.CLUSTER, True),
    504: (Reason.API_UNAVAILABLE, Fault.CLUSTER, True),
}
"""What a status means where the message has no known shape: reason, whose matter, worth a retry."""


def _by_code(code: int) -> tuple[Reason, Fault, bool]:
    broken = code >= 500
    other = (Reason.API_ERROR, Fault.CLUSTER if broken else Fault.ADMIN, broken)
    return _BY_CODE.get(code, other)


def shortages_of(requested: str, used: str, limited: str) -> tuple[Shortage, ...]:
    """Read the three lists of ``exceeded quota``; resources that cannot be read are left out."""
    asked, taken, most = _pairs(requested), _pairs(used), _pairs(limited)
    found = []
    for name, quantity in asked.items():
        try:
            found.append(
                Shortage(
                    resource=name,
                    asked=read_amount(name, quantity),
                    used=read_amount(name, taken.get(name, "0")),
                    limit=read_amount(name, most[name]),
                )
            )
        except (KeyError, QuantityError):
            continue
    return tuple(found)


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)


def _exceeded(answer: Answer, match: re.Match[str]) -> Refusal:
    shortages = shortages_of(match["requested"], match["used"], match["limited"])
    text = texts.over_limit(Scope.NAMESPACE, shortages) if shortages else texts.refused(Reason.API_ERROR)
    return Refusal(
        reason=Reason.NAMESPACE_QUOTA,
        text=text,
        fault=Fault.USER,
        shortages=shortages,
        component=match["quota"],
        detail=answer.message[:_DETAIL_LENGTH],
    )


def _limits_required(answer: Answer, match: re.Match[str]) -> Refusal:
    named = re.split(r"[,;]", match["what"])
    missing = dict.fromkeys(part.strip().partition(" for:")[0] for part in named if part.strip())
    return _refusal(Reason.LIMITS_REQUIRED, answer, what=words.unstated(missing), component=match["quota"])


def _absent(answer: Answer, match: re.Match[str]) -> Refusal:
    keys = (key.strip() for key in match["what"].split(","))
    what = words.listed([words.named(key) for key in keys]) if match["how"] == "consume" else _SUCH
    return _refusal(Reason.QUOTA_ABSENT, answer, what=what, component=match["what"][:200])


def _limit_range(answer: Answer, match: re.Match[str]) -> Refusal:
    try:
        what = ranges.in_words(answer.message)
    except QuantityError:
        what = match["said"]
    return _refusal(Reason.LIMIT_RANGE, answer, what=what)


def _named(
    reason: Reason, *, group: str = "what", fault: Fault = Fault.ADMIN, retry: bool = False
) -> Callable[[Answer, re.Match[str]], Refusal]:
    """Make a reader for messages that name one thing."""

    def read(answer: Answer, match: re.Match[str]) -> Refusal:
        name = (match.groupdict().get(group) or "")[:200]
        component = match.groupdict().get("component") or name
        return _refusal(reason, answer, what=name, fault=fault, retry=retry, component=component)

    return read


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    read: Callable[[Answer, re.Match[str]], Refusal]
    code: int | None = None


_SUCH: Final = "workspaces of this priority"
"""What scopes of a quota are about, of those that a cluster can require for pods."""

_SPEAKS: Final = r"(?:[a-z0-9./-]+(?: \"(?:[^\"\\]|\\.)*\")? is forbidden: |Internal error occurred: )?"
"""What the API server puts before what one of its own plugins says."""


def _said(words: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    return re.compile(_SPEAKS + words, flags)


_RULES: Final[Sequence[_Rule]] = (
    _Rule(
        _said(
            r"exceeded quota: (?P<quota>[^,]+), requested: (?P<requested>\S+), "
            r"used: (?P<used>\S+), limited: (?P<limited>\S+)"
        ),
        _exceeded,
    ),
    _Rule(
        _said(r"failed quota: (?P<quota>[^:]+): must specify (?P<what>.+)", re.DOTALL),
        _limits_required,
    ),
    _Rule(
        _said(r"status unknown for quota: (?P<what>[^,]+), resources: "),
        _named(Reason.QUOTA_NOT_READY, fault=Fault.CLUSTER, retry=True),
    ),
    _Rule(
        _said(r"insufficient quota to (?P<how>consume|match these scopes): (?P<what>.+)"),
        _absent,
    ),
    _Rule(
        _said(r"resource quota evaluation timed out"),
        _named(Reason.QUOTA_TIMEOUT, fault=Fault.CLUSTER, retry=True),
    ),
    _Rule(
        re.compile(r"Operation cannot be fulfilled on resourcequotas \"(?P<what>[^\"]+)\""),
        _named(Reason.QUOTA_CONFLICT, fault=Fault.CLUSTER, retry=True),
        code=409,
    ),
    _Rule(_said(rf"\[?(?P<said>{ranges.SIZE.pattern})"), _limit_range),
    _Rule(_said(rf"\[?(?P<said>{ranges.RATIO.pattern})"), _limit_range),
    _Rule(
        _said(r"violates PodSecurity \"(?P<what>[^\"]+)\": (?P<why>.+)", re.DOTALL),
        _named(Reason.POD_SECURITY),
    ),
    _Rule(
        _said(r"failed calling webhook \"(?P<what>[^\"]+)\""),
        _named(Reason.WEBHOOK_UNREACHABLE, fault=Fault.CLUSTER, retry=True),
    ),
    _Rule(
        re.compile(
            r"admission webhook \"(?P<component>[^\"]+)\" denied the request"
            r"(?:: (?P<what>.+)| without explanation)",
            re.DOTALL,
        ),
        _named(Reason.WEBHOOK_DENIED),
    ),
    _Rule(
        _said(
            r"ValidatingAdmissionPolicy '(?P<component>[^']+)'(?: with binding '[^']+')? "
            r"denied request: (?P<what>.+)",
            re.DOTALL,
        ),
        _named(Reason.POLICY_DENIED),
    ),
    _Rule(
        _said(r"unable to create new content in namespace (?P<what>\S+) because it is being terminated"),
        _named(Reason.NAMESPACE_ENDING),
    ),
    _Rule(
        _said(r"error looking up service account [^/]+/[^:]+: (?P<what>serviceaccount \"[^\"]+\") not found"),
        _named(Reason.MISSING_OBJECT),
    ),
    _Rule(_said(r"no (?P<what>PriorityClass with name \S+) was found"), _named(Reason.MISSING_OBJECT)),
    _Rule(
        _said(r"pod rejected: (?P<what>RuntimeClass \"[^\"]+\") not found"),
        _named(Reason.MISSING_OBJECT),
    ),
    _Rule(re.compile(r"(?P<what>namespaces \"[^\"]+\") not found"), _named(Reason.MISSING_OBJECT)),
    _Rule(
        re.compile(r"pods \"[^\"]+\" already exists|object is being deleted: pods"),
        _named(Reason.NAME_TAKEN, fault=Fault.CLUSTER, retry=True),
        code=409,
    ),
)
