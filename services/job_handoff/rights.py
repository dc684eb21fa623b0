"""What the service may do, at the hub and on the cluster, and why.

Pure: no clock, no network.
"""

from __future__ import annotations

from hub_ext.rights import Rights, Rule, Scope, Where

_LOOK = ("get", "list", "watch")
_RUNS = ("get", "list", "create", "patch", "delete")

RIGHTS = Rights(
    name="job-handoff",
    scopes=(
        Scope(name="read:users:name", why="knows who asks"),
        Scope(name="read:users:groups", why="judges access by the groups of this moment"),
        Scope(name="list:users", why="finds a user by name"),
        Scope(name="read:servers", why="offers the image of a running server, and to release it"),
        Scope(name="delete:servers", why="stops the server that a user releases with a run"),
    ),
    rules=(
        Rule(where=Where.JOBS, group="batch", resources=("jobs", "cronjobs"), verbs=_RUNS, why="makes runs"),
        Rule(
            where=Where.JOBS,
            group="trainer.kubeflow.org",
            resources=("trainjobs",),
            verbs=_RUNS,
            why="makes runs of several pods that train together",
            optional=True,
        ),
        Rule(
            where=Where.JOBS,
            group="ray.io",
            resources=("rayjobs",),
            verbs=_RUNS,
            why="makes runs on a Ray cluster",
            optional=True,
        ),
        Rule(
            where=Where.JOBS,
            resources=("configmaps",),
            verbs=_RUNS,
            why="gives runs their program and small sources",
        ),
        Rule(
            where=Where.JOBS,
            resources=("pods", "events"),
            verbs=_LOOK,
            why="says in plain words how a run stands",
        ),
        Rule(
            where=Where.JOBS,
            group="networking.k8s.io",
            resources=("networkpolicies",),
            verbs=("list", "create", "patch", "delete"),
            why="keeps the pods of a run with several of them apart from those of other runs",
        ),
        Rule(where=Where.JOBS, resources=("pods/log",), verbs=("get",), why="shows and keeps logs"),
        Rule(
            where=Where.JOBS,
            group="kueue.x-k8s.io",
            resources=("workloads",),
            verbs=(*_LOOK, "patch"),
            why="says what a run waits for, and takes quota back from one that cannot start",
        ),
        Rule(
            where=Where.JOBS,
            group="kueue.x-k8s.io",
            resources=("localqueues",),
            verbs=_LOOK,
            why="says before a submission whether it would start",
        ),
        Rule(
            where=Where.CLUSTER,
            group="kueue.x-k8s.io",
            resources=("clusterqueues", "resourceflavors"),
            verbs=_LOOK,
            why="says before a submission whether it would start, and what would be needed",
        ),
        Rule(
            where=Where.JOBS,
            group="visibility.kueue.x-k8s.io",
            resources=("localqueues/pendingworkloads",),
            verbs=("get",),
            why="tells the place in the queue; without it, only that a run waits",
            optional=True,
        ),
        Rule(
            where=Where.JOBS,
            resources=("persistentvolumeclaims",),
            verbs=("get",),
            why="refuses a run whose home cannot be mounted; without it, such a run is taken and hangs",
            optional=True,
        ),
        Rule(
            where=Where.CLUSTER,
            resources=("persistentvolumes",),
            verbs=("get",),
            why="refuses a run whose home is in a zone without nodes for it; without it, nobody is told",
            optional=True,
        ),
        Rule(
            where=Where.CLUSTER,
            resources=("nodes",),
            verbs=("list",),
            why="knows the zones of a profile's nodes, for the same",
            optional=True,
        ),
        Rule(
            where=Where.WORKSPACES,
            resources=("pods",),
            verbs=("list",),
            why="counts servers and runs against the same limits, and finds the digest of a server's image",
        ),
    ),
    opened_by=("user", "server"),
)
