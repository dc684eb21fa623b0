"""What the prepuller may do.

Pure: no clock, no network.
"""

from __future__ import annotations

from typing import Final

from hub_ext.rights import Rights, Rule, Scope, Where

RIGHTS: Final = Rights(
    name="prepuller",
    scopes=(
        Scope(
            name="access:services!service=prepuller",
            why="lets the hub ask it what is warm, with the service's own token",
        ),
    ),
    rules=(
        Rule(
            where=Where.CLUSTER,
            resources=("nodes",),
            verbs=("list", "watch"),
            why="knows which nodes there are and which images they list",
        ),
        Rule(
            where=Where.PULLS,
            resources=("pods",),
            verbs=("list", "watch", "create", "delete"),
            why="makes the pods that fetch and pin images, in a namespace where nothing else is",
        ),
        Rule(
            where=Where.PULLS,
            resources=("events",),
            verbs=("list", "watch"),
            why="says why a pull failed and how long it took; without it, only what the pod's status tells",
            optional=True,
        ),
    ),
)
