"""Real Kubernetes for tests and the demo, without a container engine: `python -m tests.devcluster up`.

Imitated are only the GPU driver library below NVIDIA's own device plugin and, for load tests, whole machines
(kwok). `tests.devcluster.spec` says what a cluster file may say, `tests.devcluster.cluster` what a running
cluster offers, `tests.devcluster.client.running` starts one from Python.
"""
