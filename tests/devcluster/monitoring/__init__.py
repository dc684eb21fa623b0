"""Metrics as a GPU cluster has them: a real Prometheus, fed by an imitation of NVIDIA's dcgm-exporter.

Both are processes of the host. They need no cluster and no root, so any tier may have them:

    with running_exporter(folder) as exporter, running_prometheus(folder, job_of(exporter)) as prometheus:
        exporter.show(*whole_card(card, Use(engine=0.4, util=38), pod=pod))
        prometheus.wait_for('DCGM_FI_DEV_GPU_UTIL > 0')

A cluster with the addon `prometheus` has one exporter for each GPU node; see that module.
"""

from tests.devcluster.monitoring.dcgm import (
    Card,
    Field,
    Pod,
    Reading,
    Slice,
    Use,
    render,
    shared_card,
    sliced_card,
    whole_card,
)
from tests.devcluster.monitoring.exporter import Exporter, job_of, running_exporter
from tests.devcluster.monitoring.history import Series, past
from tests.devcluster.monitoring.prometheus import Prometheus, running_prometheus
from tests.devcluster.monitoring.scrape import Convention, Job

__all__ = [
    "Card",
    "Convention",
    "Exporter",
    "Field",
    "Job",
    "Pod",
    "Prometheus",
    "Reading",
    "Series",
    "Slice",
    "Use",
    "job_of",
    "past",
    "render",
    "running_exporter",
    "running_prometheus",
    "shared_card",
    "sliced_card",
    "whole_card",
]
