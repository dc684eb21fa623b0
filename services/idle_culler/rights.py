"""What the idle-culler may do.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final

from hub_ext.rights import Rights, Rule, Scope, Where

RIGHTS: Final = Rights(
    name="idle-culler",
    scopes=(
        Scope(name="list:users", why="finds the servers that run"),
        Scope(name="read:users:name", why="knows whose they are"),
        Scope(name="read:users:activity", why="knows when they were last used"),
        Scope(name="read:servers", why="knows since when they run, and that they did not change meanwhile"),
        Scope(name="delete:servers", why="stops them; it never removes one, nor its volume"),
    ),
    rules=(
        Rule(
            where=Where.WORKSPACES,
            resources=("pods",),
            verbs=("get", "list"),
            why="knows their profile, team and GPUs, and that a pod is gone after its stop",
        ),
        Rule(
            where=Where.WORKSPACES,
            resources=("persistentvolumeclaims",),
            verbs=("get",),
            why="makes sure after a stop that the volumes are still there; without it, that is not checked",
            optional=True,
        ),
    ),
    opened_by=("user", "server"),
)
