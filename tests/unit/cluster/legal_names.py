"""Names that people may choose, with a liking for those that look like something else."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

WORDS: Final = (
    "403", "404", "429", "503", "507.076", "denied", "unauthorized", "not-found", "no-space-left", "x509",
    "eof", "toomanyrequests", "insufficient_scope", "preempted", "multi-attach", "topology", "taint",
    "stockout", "exhausted", "limit", "quotaexceeded", "exceeded-quota", "inactive", "stopped",
    "unschedulable", "credentials", "a", "gpu-0", "jupyter-ada",
)  # fmt: skip
labels = st.sampled_from([word.replace("_", "-").replace(".", "-") for word in WORDS])
"""Of Kubernetes: containers, claims, queues, flavors, pods without a dot."""
dotted = st.lists(labels, min_size=1, max_size=3).map(".".join)
"""Of Kubernetes, where dots may be: pods, nodes, secrets, storage classes."""
resources = st.tuples(dotted, labels).map("/".join)
parts = st.sampled_from(WORDS)
digests = st.integers(0, 2**256 - 1).map(lambda number: f"@sha256:{number:064x}")
hosts = st.tuples(dotted, st.sampled_from(["", ":5000", ":403", ":429"])).map(
    lambda host: f"h.{''.join(host)}"
)
repositories = st.lists(parts, min_size=1, max_size=3).map("/".join)
images = st.tuples(hosts, st.just("/"), repositories, parts.map(":{}".format) | digests).map("".join)
"""As a container runtime writes them: with their host."""
durations = st.tuples(st.floats(0.001, 999), st.sampled_from(["ns", "µs", "ms", "s", "m"])).map(
    lambda told: f"{told[0]:.3f}{told[1]}"
)
