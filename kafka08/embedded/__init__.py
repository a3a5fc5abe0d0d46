"""ZooKeeper and a whole cluster as child processes, for tests, the demo and `kafka08 up`.

Start with `EmbeddedCluster` in cluster.py; `EmbeddedZooKeeper` (our own server, for tests) and
`ZooKeeperServer` (Apache's, for data that must last) are its ZooKeeper alone. guard.py ensures that
no process is left running, fork_server.py makes starts fast, relay_process.py cuts networks,
waits.py waits for states, pytest_plugin.py has the fixtures. For `kafka08 up`, supervisor.py
watches a cluster, detached.py makes it known to other commands, and control.py transports their
requests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka08.embedded.broker import EmbeddedBroker
    from kafka08.embedded.cluster import EmbeddedCluster
    from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
    from kafka08.embedded.zookeeper import ZooKeeperServer

__all__ = ["EmbeddedBroker", "EmbeddedCluster", "EmbeddedZooKeeper", "ZooKeeperServer"]

_HOMES = {
    "EmbeddedBroker": "kafka08.embedded.broker",
    "EmbeddedCluster": "kafka08.embedded.cluster",
    "EmbeddedZooKeeper": "kafka08.embedded.embedded_zookeeper",
    "ZooKeeperServer": "kafka08.embedded.zookeeper",
}


def __getattr__(name: str) -> object:
    """Imports on demand: every run of pytest loads our plugin, and with it this module."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
