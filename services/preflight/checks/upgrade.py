"""Traps of upgrades: names that newer hubs do not take, and homes that would not be found again.

Sources: JupyterHub 6's guide to upgrading (names of servers), KubeSpawner 7 (`slug_scheme`, `pvc_name`).

Pure: no clock, no network.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hub_ext.errors import Severity
from hub_ext.names import HUB_SERVER, HUB_USER

from ..problems import Check, Problem
from ..scene import Object, Scene

_SERVER_NAME: Final = re.compile(r"[a-z](?:-?[a-z0-9])*")
_LONGEST: Final = 30
_KEPT: Final = frozenset(string.ascii_lowercase + string.digits)
"""What KubeSpawner before version 7 left in names as it is."""
_TEMPLATE: Final = re.compile(
    r"\{(?:username|user_server|servername|escaped_user_server|unescaped_username)\}"
)


def is_server_name(name: str) -> bool:
    """Say whether JupyterHub 6 lets a server be made with this name."""
    return len(name) <= _LONGEST and _SERVER_NAME.fullmatch(name) is not None


def server_names(scene: Scene) -> Iterator[Problem]:
    for claim in _homes(scene):
        server = _annotation(claim, HUB_SERVER)
        if server and not is_server_name(server):
            yield Problem(
                message=f"JupyterHub 6 makes no server with the name {server!r} of "
                f"{_annotation(claim, HUB_USER)!r}",
                evidence=f"claim {claim['metadata']['name']}",
                help="It still starts with allow-start; autorename would give it a new, empty home.",
                path=f"persistentvolumeclaims/{claim['metadata']['name']}",
                severity=Severity.WARNING,
            )


def old_claim_names(scene: Scene) -> Iterator[Problem]:
    """Homes named by older hubs are found by the name that the hub remembers, else by their annotations."""
    old = [claim for claim in _homes(scene) if _is_old(claim)]
    if old:
        names = ", ".join(claim["metadata"]["name"] for claim in old[:3])
        yield Problem(
            message=f"{len(old)} homes have names that a newer KubeSpawner would not give",
            evidence=names + (", …" if len(old) > 3 else ""),
            help="Keep the hub's database over the upgrade: it remembers the names. Do not set slug_scheme, "
            "and leave the claims their labels and annotations.",
            severity=Severity.NOTE,
        )


def _is_old(claim: Object) -> bool:
    name = claim["metadata"]["name"]
    parts = (_annotation(claim, HUB_USER), _annotation(claim, HUB_SERVER))
    return any(escaped(part) != part and escaped(part) in name for part in parts)


def escaped(name: str) -> str:
    """Write a name as KubeSpawner before version 7 did; a hyphen is escaped too."""
    return "".join(char if char in _KEPT else _hex(char) for char in name).lower()


def _hex(char: str) -> str:
    return "".join(f"-{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))


def one_home_each(scene: Scene) -> Iterator[Problem]:
    """Where a user has two claims for one server, one of them is the home and the other was lost."""
    homes = defaultdict(list)
    for claim in _homes(scene):
        key = (
            claim["metadata"].get("namespace", ""),
            _annotation(claim, HUB_USER),
            _annotation(claim, HUB_SERVER),
        )
        homes[key].append(claim["metadata"]["name"])
    for (_, user, server), names in homes.items():
        if len(names) > 1:
            yield Problem(
                message=f"{user!r} has {len(names)} claims for "
                f"{f'server {server!r}' if server else 'their server'}",
                evidence=", ".join(sorted(names)),
                help="Find out which one is mounted before you delete a user or a claim; nothing is deleted "
                "by guess.",
                path=f"persistentvolumeclaims/{sorted(names)[0]}",
                severity=Severity.WARNING,
            )


def volumes_follow_claims(scene: Scene) -> Iterator[Problem]:
    """A volume that names its claim by a template does not follow the name that the hub remembers."""
    for path in ("singleuser.storage.extraVolumes", "hub.config.KubeSpawner.volumes"):
        for volume in _volumes(scene.value(path)):
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
            if _TEMPLATE.search(str(claim)):
                yield Problem(
                    message=f"{path} names the home by a template: after an upgrade it may name one that "
                    "does not exist",
                    evidence=f"claimName: {claim}",
                    help="Write {pvc_name}, which is the name that the hub remembers.",
                    path=path,
                )


def _volumes(found: Any) -> list[Mapping[str, Any]]:
    values = found.values() if isinstance(found, Mapping) else found
    return [one for one in values or [] if isinstance(one, Mapping)]


def _homes(scene: Scene) -> Iterator[Object]:
    for namespace in scene.namespaces:
        for claim in scene.objects.inside("PersistentVolumeClaim", namespace):
            if _annotation(claim, HUB_USER):
                yield claim


def _annotation(item: Object, key: str) -> str:
    return str((item["metadata"].get("annotations") or {}).get(key, ""))


CHECKS = (
    Check(
        code="server-names",
        title="Names of servers are those of JupyterHub 6",
        kinds=("PersistentVolumeClaim",),
        run=server_names,
    ),
    Check(
        code="old-claim-names",
        title="Homes have the names that KubeSpawner gives now",
        kinds=("PersistentVolumeClaim",),
        run=old_claim_names,
    ),
    Check(
        code="one-home",
        title="Each server has one home",
        kinds=("PersistentVolumeClaim",),
        run=one_home_each,
    ),
    Check(
        code="volume-template",
        title="Volumes follow the names of claims",
        needs=("values",),
        run=volumes_follow_claims,
    ),
)
