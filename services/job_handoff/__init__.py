"""Job-handoff: a notebook or script becomes a run on the cluster, and the workspace may end.

Observes the catalog, the user's groups and servers at the hub, queues and runs on the cluster; judges what
may run and why not; creates, follows, explains, ends and files away Jobs, TrainJobs and RayJobs. The
cluster's objects are the truth while they exist, the object store afterwards: the service itself remembers
nothing.
"""
