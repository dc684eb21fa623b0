"""Real Kubernetes for tests and the demo, without a container engine: `python -m tests.devcluster up`.

Imitated are only the GPU driver library below NVIDIA's own device plugin and, for load tests, whole machines
(kwok). See `tests.devcluster.spec` for what a cluster file says, `tests.devcluster.cluster` for what a running
cluster offers, and `running` for starting one from Python.
"""
