"""TCP ports for programs that have to be told theirs before they listen.

Shell: files, locks and sockets.
"""

from __future__ import annotations

import random

from tests.devcluster.addresses import SLOTS
from tests.devcluster.claims import try_lock
from tests.devcluster.errors import HostError
from tests.devcluster.record import FIRST_PORT, PORTS_PER_SLOT, is_free

FIRST = FIRST_PORT + SLOTS * PORTS_PER_SLOT
"""Above the ports of clusters, and below those that outgoing connections use."""
PORTS = range(FIRST, FIRST + 4000)


def free_port() -> int:
    """A port that nobody listens on, and that nobody else is given while this process lives."""
    for port in random.sample(PORTS, len(PORTS)):
        if is_free(port) and try_lock(f"port-{port}") is not None:
            return port
    raise HostError(
        f"no free TCP port between {PORTS[0]} and {PORTS[-1]}", "see `ss -ltnp` for what has them"
    )
