"""The plan as JSON: what is done next, what waits and why, what letting go would free.

Pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hub_ext.errors import Finding, Severity
from hub_ext.spelling import did_you_mean

from .picture import Picture
from .plan import Plan
from .reasons import HOLD_TEXTS, NEEDS_ADMIN, Reason
from .summary import Summary
from .wants import Stray, Tier

UNKNOWN_NAME: Final = "unknown-name"
MOVING_TAG: Final = "moving-tag"
WRONG_ARCHITECTURE: Final = "wrong-architecture"
FINDINGS: Final = {
    MOVING_TAG: "a reference by tag: what is warm today may be another image tomorrow",
    WRONG_ARCHITECTURE: "an image that was not built for the processors of a pool that it is offered in",
    UNKNOWN_NAME: "the settings name a profile or pool that the catalog does not have: that has no effect",
}
"""Codes of findings beside those of `Reason`."""


def severity_of(reason: Reason) -> Severity:
    """Say how grave a failure is: an error is what waiting does not heal."""
    return Severity.ERROR if reason in NEEDS_ADMIN else Severity.WARNING


def plan_report(picture: Picture, made: Plan) -> dict[str, Any]:
    """Write a plan as JSON."""
    wants = picture.desired.wants
    return {
        "asOf": picture.at.isoformat(),
        "fetch": [
            {
                "image": one.want.image,
                "node": one.node,
                "pools": list(one.pools),
                "pullSecrets": list(one.want.secrets),
                "benefit": one.benefit,
            }
            for one in made.fetches
        ],
        "wait": [
            {
                "image": wants[want].image,
                "node": node,
                "hold": wait.hold.value,
                "text": HOLD_TEXTS[wait.hold],
                "until": wait.until.isoformat() if wait.until else None,
            }
            for (want, node), wait in made.waits.items()
        ],
        "letGo": [{"image": one.pod.image, "node": one.pod.node, "why": one.why.value} for one in made.drops],
        "wouldFree": [
            {"node": one.node, "images": list(one.images), "bytes": one.bytes} for one in made.freed
        ],
    }


def findings(picture: Picture, summary: Summary) -> Iterator[Finding]:
    """Say what an admin should do: faults of the catalog first, then what failed."""
    yield from map(find_stray, picture.desired.strays)
    wants = picture.desired.wants
    for want in wants.values():
        if want.moves and any(
            use.want == want.id and use.tier is Tier.REQUIRED for use in picture.desired.uses
        ):
            yield Finding(
                severity=Severity.WARNING,
                code=MOVING_TAG,
                message=f"{want.image} may mean another image tomorrow, and then it is not warm",
                path="images",
                help="Write the digest: name@sha256:….",
            )
    for (key, pool), arches in picture.layout.misfits.items():
        yield Finding(
            severity=Severity.WARNING,
            code=WRONG_ARCHITECTURE,
            message=f"{wants[key].image} was not built for {', '.join(sorted(arches))}",
            path=f"pools.{pool}" if pool else "profiles",
            help="Offer it in a pool of other nodes, or build it for these.",
        )
    for problem in summary.problems:
        one = problem.as_dict()
        yield Finding(
            severity=severity_of(problem.trouble.reason),
            code=problem.trouble.reason.value,
            message=f"{problem.subject} on {one['node']}: {one['detail'] or one['text']}",
            path=f"nodes/{one['node']}",
            help=one["text"],
        )


def find_stray(stray: Stray) -> Finding:
    """Say what was probably meant by a name that the catalog does not have."""
    known = f"The catalog has {', '.join(stray.known)}." if stray.known else "The catalog has none."
    return Finding(
        severity=Severity.ERROR,
        code=UNKNOWN_NAME,
        message=f"the catalog has no {stray.name!r}",
        path=stray.key,
        help=did_you_mean(stray.name, stray.known, known),
    )
