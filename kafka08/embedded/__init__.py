"""A real ZooKeeper and a whole cluster as child processes, for tests, the demo and `kafka08 up`.

`EmbeddedCluster` is the way in; `ZooKeeperServer` is its ZooKeeper alone. Start reading with
cluster.py; guard.py is why nothing is left running.
"""

from __future__ import annotations

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.zookeeper import ZooKeeperServer

__all__ = ["EmbeddedBroker", "EmbeddedCluster", "ZooKeeperServer"]
