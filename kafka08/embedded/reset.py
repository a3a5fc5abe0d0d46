"""Makes a cluster as new: no topic, no group, no offset and no override is left.

The controller deletes all topics at once, with the offsets topic and so the groups of coordinators;
groups in ZooKeeper and dynamic configuration are znodes. Brokers keep running.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka08.errors import NodeExists, ZooKeeperError
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Create
from kafka08.zk.store import ClusterStore

EMPTIED: Final = (
    paths.CONSUMERS,
    paths.MIGRATIONS,
    paths.MIGRATION_SNAPSHOTS,
    paths.TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
)
"""The znodes whose children go, if they are there."""


def delete_all(zk: ZkClient, pause: Callable[[list[str]], object]) -> None:
    """Delete everything that clients have made. `pause` is called again and again with the topics
    that are still there, and may give up. Raises ZooKeeperError."""
    store = ClusterStore(zk)
    topics = store.topics()
    marks = [Create(paths.delete_topic(name), nodes.encode_delete_topic()) for name in topics]
    for result in zk.write_all(marks):
        if isinstance(result, ZooKeeperError) and not isinstance(result, NodeExists):
            raise result
    # A topic goes together with its mark. One of that name that is there later is a new one.
    while left := sorted(set(store.topics_to_delete()).intersection(topics)):
        pause(left)
    for path in EMPTIED:
        zk.delete_below(path)
