"""RequestZnodes: what tools ask of the controller in ZooKeeper, read with watches and taken away.

/admin/reassign_partitions and /admin/preferred_replica_election hold one request at a time; the
controller removes what it has done. A request that cannot be read is logged and removed, since
nobody could act on it and no other could be made. Source: kafka.controller 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from kafka08.errors import NoNode, ZooKeeperError
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Get, Node, WatchCallback, Watcher
from kafka08.zk.store import ClusterStore

log = logging.getLogger(__name__)

T = TypeVar("T")


class RequestZnodes:
    """`changed` hears the path of everything that is read here, when it changes. All switch."""

    def __init__(self, store: ClusterStore, changed: WatchCallback) -> None:
        self._zk = store.zk
        self._changed = changed

    def reassignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The moves that are asked for; {} while there is no request."""
        return self._request(paths.REASSIGN_PARTITIONS, nodes.decode_reassignment) or {}

    def preferred_elections(self) -> Collection[TopicPartition]:
        """The partitions to give back to their preferred replicas."""
        return self._request(paths.PREFERRED_ELECTION, nodes.decode_preferred_election) or ()

    def remove_preferred_elections(self) -> None:
        self._zk.delete(paths.PREFERRED_ELECTION, missing_ok=True)

    def _request(self, path: str, decode: Callable[[str | None], T]) -> T | None:
        node = self._zk.watch_data(path, self._changed)
        if node is None:
            return None
        try:
            return decode(node.data)
        except ZooKeeperError as error:
            log.error("Removing %s, which cannot be read: %s", path, error)
            self._zk.delete(path, missing_ok=True)
            return None

    def watch_states(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """See ReassignmentZnodes."""
        wanted = {tp: paths.partition_state(*tp) for tp in partitions}
        reads = [Get(path, Watcher(path, self._changed)) for path in wanted.values()]
        found = {}
        for tp, answer in zip(wanted, self._zk.pipeline(reads), strict=True):
            if isinstance(answer, Node):
                found[tp] = nodes.decode_leader_and_isr(answer.data, zk_version=answer.version)
            elif not isinstance(answer, NoNode):
                raise answer
        return found

    def write_assignment(self, topic: str, replicas: Mapping[int, tuple[int, ...]]) -> None:
        """See ReassignmentZnodes."""
        self._zk.set(paths.topic(topic), nodes.encode_assignment(replicas))

    def remove_reassignments(self, partitions: Collection[TopicPartition]) -> None:
        """See ReassignmentZnodes."""
        node = self._zk.get_or_none(paths.REASSIGN_PARTITIONS)
        if node is None:
            return
        left = {
            tp: replicas
            for tp, replicas in nodes.decode_reassignment(node.data).items()
            if tp not in partitions
        }
        if left:
            self._zk.set(paths.REASSIGN_PARTITIONS, nodes.encode_reassignment(left), node.version)
        else:
            self._zk.delete(paths.REASSIGN_PARTITIONS, node.version, missing_ok=True)
