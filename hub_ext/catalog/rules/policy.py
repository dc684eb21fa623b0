"""Sessions, security, access and prices.

Pure: no clock, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from ...names import DOMAIN
from ...units import format_duration
from ..codes import Code
from ..model import Profile, State
from ..problems import Loc, Problem
from .context import Context

_OWNED: Final = (f"{DOMAIN}/", "hub.jupyter.org/")
_CHART_LABELS: Final = {
    *("app", "component", "release", "chart", "heritage", "helm.sh/chart"),
    *(f"app.kubernetes.io/{name}" for name in ("name", "instance", "component", "managed-by")),
}
"""What Zero to JupyterHub (charts 3 and 4) and KubeSpawner put on user pods."""
_HUB: Final = re.compile(
    r"JPY_API_TOKEN|JUPYTERHUB_(?:ACTIVITY_URL|ADMIN_ACCESS|API_TOKEN|API_URL|BASE_URL|CLIENT_ID|HOST"
    r"|OAUTH_.*|PUBLIC_.*|SERVER_NAME|SERVICE_PREFIX|SERVICE_URL|SSL_.*|USER)"
)
"""What `Spawner.get_env` tells a server about its hub and its user."""
VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
_SECRET: Final = re.compile(r"TOKEN|SECRET|PASSW(?:OR)?D|API_?KEY|ACCESS_?KEY|CREDENTIAL|PRIVATE_?KEY", re.I)
_NOT_SECRET: Final = re.compile(r"|/.*|[a-z][a-z0-9+.-]*://[^@]*|true|false|[0-9]{1,6}", re.I)
"""Paths, addresses, switches, small numbers: the name speaks of a secret, the value is none."""


def _offered(context: Context) -> Iterator[tuple[Loc, Profile]]:
    return ((loc, profile) for loc, profile in context.profiles() if profile.state is not State.RETIRED)


def check_session(context: Context) -> Iterator[Problem]:
    """Limits that contradict each other."""
    for loc, profile in _offered(context):
        session = profile.session
        ends = [span for span in (session.idle_timeout, session.max_duration) if span is not None]
        for index, span in enumerate(session.warn_before):
            if ends and span >= max(ends):
                yield Problem(
                    code=Code.WARNING_TOO_EARLY,
                    message=f"{profile.label}: a warning {format_duration(span)} before the end is due "
                    "before the session begins",
                    loc=(*loc, "session", "warnBefore", index),
                    help="Warn later, or let the session last longer.",
                )
        if session.idle_timeout and session.max_duration and session.idle_timeout >= session.max_duration:
            yield Problem(
                code=Code.IDLE_ABOVE_MAXIMUM,
                message=f"{profile.label}: idle after {format_duration(session.idle_timeout)}, but stopped "
                f"after {format_duration(session.max_duration)}",
                loc=(*loc, "session", "idleTimeout"),
                help="Make idleTimeout shorter, or leave it out.",
            )
        yield from _check_start(context, loc, profile, session.start_timeout)


def _check_start(
    context: Context, loc: Loc, profile: Profile, timeout: timedelta | None
) -> Iterator[Problem]:
    if timeout is None:
        return
    for variant in context.variants(profile):
        resources = variant.resources
        name = resources.gpu.pool if resources.gpu else resources.pool
        pool = context.catalog.pools.get(name or "")
        if pool is not None and pool.scale_up is not None and timeout <= pool.scale_up:
            yield Problem(
                code=Code.START_TIMEOUT_SHORT,
                message=f"{profile.label}: a new node in {name} takes {format_duration(pool.scale_up)}, "
                f"the start may take {format_duration(timeout)}",
                loc=(*loc, "session", "startTimeout"),
                help="Add the time for a node and for the pull of the image.",
            )
            return


def check_security(context: Context) -> Iterator[Problem]:
    """What opens the cluster to a workspace; allowed, and said."""
    for loc, profile in _offered(context):
        security = profile.security
        if security.run_as_user == 0:
            yield Problem(
                code=Code.RUNS_AS_ROOT,
                message=f"{profile.label} runs as root",
                loc=(*loc, "security", "runAsUser"),
                help="Write another user id, 1000 in Jupyter's images.",
            )
        if security.allow_privilege_escalation:
            yield Problem(
                code=Code.PRIVILEGE_ESCALATION,
                message=f"{profile.label}: programs can gain rights",
                loc=(*loc, "security", "allowPrivilegeEscalation"),
                help="Leave it out; install what sudo was for into the image.",
            )
        if security.service_account_token:
            yield Problem(
                code=Code.TOKEN_MOUNTED,
                message=f"{profile.label} carries a token for the Kubernetes API",
                loc=(*loc, "security", "serviceAccountToken"),
                help="Leave it out, unless the service account may do nothing.",
            )


def check_environment(context: Context) -> Iterator[Problem]:
    """Variables that open GPUs or give away secrets."""
    for loc, environment in _environments(context):
        for name, value in environment.items():
            if name == VISIBLE_DEVICES:
                yield Problem(
                    code=Code.GPU_ENVIRONMENT,
                    message=f"{VISIBLE_DEVICES} opens GPUs that were not asked for",
                    loc=(*loc, name),
                    help="Remove it: the device plugin sets it, and workspaces without GPU get void.",
                )
            elif _HUB.fullmatch(name):
                yield Problem(
                    code=Code.ENVIRONMENT_RESERVED,
                    message=f"{name} is the hub's to say: a workspace knows by it whose it is",
                    loc=(*loc, name),
                    help="Remove it; the hub sets what workspaces need to know of it.",
                )
            elif _SECRET.search(name) and not _NOT_SECRET.fullmatch(value):
                yield Problem(
                    code=Code.SECRET_IN_ENVIRONMENT,
                    message=f"{name} looks like a secret in plain text",
                    loc=(*loc, name),
                    help="Mount a Secret, or let users bring their own.",
                )


def _environments(context: Context) -> Iterator[tuple[Loc, Mapping[str, str]]]:
    yield ("defaults", "environment"), context.written.defaults.environment
    for key, image in context.written.images.items():
        yield ("images", key, "environment"), image.environment
    for loc, profile in context.written_profiles():
        yield (*loc, "environment"), profile.environment
    for loc, choice in context.written_choices():
        for key, option in choice.options.items():
            yield (*loc, "options", key, "environment"), option.environment


def check_labels(context: Context) -> Iterator[Problem]:
    """Labels by which the hub sees its pods and the chart's NetworkPolicies select them."""
    for loc, profile in context.written_profiles():
        for section, keys in (("labels", profile.labels), ("annotations", profile.annotations)):
            for key in keys:
                if key.startswith(_OWNED) or (section == "labels" and key in _CHART_LABELS):
                    yield Problem(
                        code=Code.LABEL_RESERVED,
                        message=f"{key} belongs to the hub, which finds its pods by it",
                        loc=(*loc, section, key),
                        help="Write a key of your own, such as example.com/name.",
                    )


def check_open(context: Context) -> Iterator[Problem]:
    """A GPU that is open to everyone should be so on purpose."""
    if context.written.defaults.access is not None or "defaults" in context.left_out:
        return
    for loc, profile in context.written_profiles():
        if (
            profile.access is None
            and profile.resources.gpu is not None
            and profile.state is not State.RETIRED
        ):
            yield Problem(
                code=Code.ACCESS_IMPLICIT,
                message=f"{profile.label} has a GPU and is open to everyone",
                loc=loc,
                help="Write access: {teams: […]}, or access: {everyone: true} if it is meant.",
            )


def check_prices(context: Context) -> Iterator[Problem]:
    """Prices in several currencies cannot be compared or added."""
    first = ""
    for loc, profile in context.profiles():
        options = [o.price for choice in profile.questions.values() for o in choice.options.values()]
        for price in (profile.price, *options):
            if price is None:
                continue
            first = first or price.currency
            if price.currency != first:
                yield Problem(
                    code=Code.CURRENCIES_DIFFER,
                    message=f"{profile.label} is priced in {price.currency}, others in {first}",
                    loc=(*loc, "price", "currency"),
                    help="Use one currency.",
                )
                break
