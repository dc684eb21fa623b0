"""The idle-culler: takes back GPUs that nobody uses, and never anybody's work.

Observes the hub, pods, what workspaces report, and GPUs in Prometheus; judges each server as busy, idle or
unknown against the policy and the limits of its profile; warns, has documents saved, stops, and verifies.

``python -m services.idle_culler --config FILE``. Rights and their reasons: `rights`; words, settings and
metrics: ``REFERENCE.md``.
"""
