"""The partitions of a cluster, and the ranges of their logs.

A partition without a leader is a fact and no error: other partitions and groups do not wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.errors import ApiError, KafkaError
from kafka08.migration.connections import Connections
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Children


class LogRange(NamedTuple):
    """log_start, log_end   None if the partition does not exist, or for the reason `unreadable`"""

    log_start: int | None = None
    log_end: int | None = None
    unreadable: str | None = None


class Partitions:
    """The partitions of the `topics`; None: of all topics. Read once, from ZooKeeper or, without
    it, from a broker; raises ZooKeeperError, NoBrokersAvailable.

    assigned   topic → the numbers of its partitions
    led        those that have had a leader (without ZooKeeper: that have one); no broker has heard
               of another one
    """

    def __init__(self, connections: Connections, topics: Collection[str] | None) -> None:
        self._connections = connections
        if connections.has_zookeeper:
            self._from_zookeeper(topics)
        else:
            self._from_brokers(topics)

    def _from_zookeeper(self, topics: Collection[str] | None) -> None:
        connections = self._connections
        assignments = connections.store.assignments(topics)
        self.assigned = {topic: tuple(numbers) for topic, numbers in assignments.items()}
        listed = connections.zk.pipeline([Children(paths.partitions(t)) for t in self.assigned])
        self.led = {
            tp
            for topic, names in zip(self.assigned, listed, strict=True)
            for tp in (TopicPartition(topic, n) for n in self.assigned[topic])
            if str(tp.partition) in unless_gone(names, [])
        }

    def _from_brokers(self, topics: Collection[str] | None) -> None:
        """All topics are asked for: to ask for one that does not exist may create it."""
        found = self._connections.cluster.refresh().topics
        wanted = found if topics is None else {t: found[t] for t in topics if t in found}
        self.assigned = {t: tuple(p.partition for p in of.partitions) for t, of in wanted.items()}
        self.led = set(
            self._connections.groups.leaders(
                TopicPartition(topic, n) for topic, of in self.assigned.items() for n in of
            )
        )

    def log_ranges(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, LogRange]:
        """partition → where its log starts and ends."""
        ranges = dict.fromkeys(partitions, LogRange())
        for tp in partitions:
            if tp.partition in self.assigned.get(tp.topic, ()) and tp not in self.led:
                ranges[tp] = LogRange(unreadable="it has not had a leader yet")
        led = sorted(self.led.intersection(partitions))
        try:
            return ranges | self._read(led)
        except KafkaError:
            return ranges | self._read_by_leader(led)

    def _read(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, LogRange]:
        """Raises ApiError or ClientError if one of them cannot be read."""
        cluster = self._connections.cluster
        starts, ends = log_starts(cluster, partitions), log_ends(cluster, partitions)
        return {tp: LogRange(starts[tp], ends[tp]) for tp in partitions}

    def _read_by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LogRange]:
        """The same, a leader that is not there noted for its own partitions alone."""
        leaders = self._live_leaders(partitions)
        ranges = dict.fromkeys(partitions, LogRange(unreadable="it has no live leader"))
        for leader in sorted(set(leaders.values())):
            led = [tp for tp in partitions if leaders.get(tp) == leader]
            try:
                ranges |= self._read(led)
            except ApiError:
                ranges |= {tp: self._read_one(tp) for tp in led}
            except KafkaError as error:
                ranges |= dict.fromkeys(led, LogRange(unreadable=str(error)))
        return ranges

    def _live_leaders(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not self._connections.has_zookeeper:
            return self._connections.groups.leaders(partitions)
        store = self._connections.store
        alive = set(store.live_broker_ids())
        states = store.leader_and_isr(partitions)
        return {tp: state.leader for tp, state in states.items() if state.leader in alive}

    def _read_one(self, tp: TopicPartition) -> LogRange:
        try:
            return self._read([tp])[tp]
        except KafkaError as error:
            return LogRange(unreadable=str(error))
