"""The whole product on one machine: `python -m tests.demo`, or `make demo`.

A real cluster (`tests.devcluster`), a real hub and proxy, and the bundle as an admin would install it. What
is the demo's own: the catalog, the users and the cluster file, all in this folder.
"""
