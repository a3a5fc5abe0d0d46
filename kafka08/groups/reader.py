"""Reads the state of groups from ZooKeeper and the brokers. Changes nothing.

    with GroupReader("localhost:2181") as reader:
        print(reader.groups())
        for finding in explain(reader.facts("readers")):
            print(finding)

Questions that fail (no broker is up, a coordinator is loading) are listed in the facts, so that you
can look at a group while half of its cluster is down. For a ZooKeeper group only ZooKeeper must
respond; groups that have a coordinator need no ZooKeeper.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TypeAlias

from kafka08.client import PLAINTEXT, Security
from kafka08.errors import KafkaError
from kafka08.lifecycle import Closeable
from kafka08.observe.commit_times import RECENT_RECORDS, CommitTimes, KafkaCommit
from kafka08.observe.coordinated import CoordinatedGroups
from kafka08.observe.coordinator_reader import CoordinatorReader, may_coordinate
from kafka08.observe.group import (
    CoordinatedFacts,
    GroupFacts,
    GroupSummary,
    PartitionFacts,
    coordinated_facts,
    group_facts,
)
from kafka08.observe.reader import GROUP_S, ClusterReader
from kafka08.observe.snapshot import ClusterView
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.errors import unless_gone
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Children
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

KafkaCommits: TypeAlias = dict[TopicPartition, KafkaCommit]


class GroupReader(Closeable):
    """Connects at once; raises ZooKeeperError. Usable in a `with` statement.

    zookeeper   connect string of the cluster; None: ZooKeeper groups cannot be read
    bootstrap   brokers to ask, of the same cluster; None: those registered in ZooKeeper.
                ConfigError if they are not those of `zookeeper`
    security    of the connections to them
    """

    def __init__(
        self,
        zookeeper: str | None = None,
        bootstrap: str | None = None,
        security: Security = PLAINTEXT,
        *,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self._runtime = runtime
        self._name = zookeeper or bootstrap
        self._reader = ClusterReader(zookeeper, bootstrap, security=security, runtime=runtime)

    def __repr__(self) -> str:
        return f"<GroupReader {self._name}>"

    def close(self) -> None:
        self._reader.close()

    @property
    def has_zookeeper(self) -> bool:
        return self._reader.store is not None

    def may_be_in_zookeeper(self, group: str) -> bool:
        """Whether ZooKeeper is read, and can have a group of this name."""
        return self.has_zookeeper and paths.can_be_group(group)

    def check_registered(self) -> None:
        """NoBrokersAvailable, with the clusters that there are, if no broker is registered in
        ZooKeeper: the chroot may be wrong, or missing."""
        self._zookeeper.broker_addresses()

    def groups(self) -> list[GroupSummary]:
        """The groups in ZooKeeper, sorted. A group that commits to Kafka without ever being a
        member has no znode: 0.8.2.2 cannot list it, for later brokers see `coordinated_groups`."""
        zk = self._zookeeper.zk
        names = GroupStore(zk).groups()
        reads = [
            Children(path(name)) for name in names for path in (paths.consumer_ids, paths.offsets)
        ]
        found = [unless_gone(result, []) for result in zk.pipeline(reads)]
        return [
            GroupSummary(name, len(members), tuple(topics))
            for name, members, topics in zip(names, found[::2], found[1::2], strict=True)
        ]

    def coordinated_groups(self) -> CoordinatedGroups:
        """The groups that brokers coordinate; none in a cluster of 0.8. Brokers that do not respond
        are listed in `failed_requests`."""
        if self.has_zookeeper and not may_coordinate(self._zookeeper):
            return CoordinatedGroups(())
        try:
            with self._reader.within(GROUP_S):
                return CoordinatorReader(self._reader.client(), self._runtime).groups()
        except KafkaError as error:
            return CoordinatedGroups((), (f"groups that brokers coordinate: {error}",))

    def snapshot(self, group: str) -> ClusterView:
        """The snapshot that `facts` and `coordinated_facts` are made of. Raises ZooKeeperError;
        without ZooKeeper, NoBrokersAvailable."""
        return self._reader.read_groups([group])

    def facts(self, group: str) -> GroupFacts:
        """Everything about `group` in ZooKeeper. An offset znode that cannot be read affects its
        partition alone. Raises ZooKeeperError, and ConfigError for a name that no group can
        have."""
        paths.check_group(group)
        assert self._zookeeper
        return group_facts(self.snapshot(group), group)

    def coordinated_facts(self, group: str) -> CoordinatedFacts | None:
        """Everything about a group that has a coordinator; None if no coordinator knows the name.
        Raises KafkaError if the coordinator does not respond."""
        return coordinated_facts(self.snapshot(group), group)

    def commit_times(self, records: int) -> CommitTimes:
        """Reads when offsets were committed to Kafka, from the last `records` of each partition of
        the offsets topic. Raises NoBrokersAvailable."""
        return CommitTimes(self._reader.client(), self._runtime, records=records)

    def commits(self, group: str, partitions: Iterable[PartitionFacts]) -> KafkaCommits:
        """partition → its newest commit to Kafka, of `partitions` with an offset there, by the last
        RECENT_RECORDS of the group's partition of the offsets topic. Raises nothing."""
        in_kafka = [p.topic_partition for p in partitions if p.kafka is not None]
        try:
            with self._reader.within(GROUP_S):
                times = self.commit_times(RECENT_RECORDS) if in_kafka else None
                return times.commits(group, in_kafka) if times else {}
        except KafkaError as error:
            logger.warning("when offsets of group %s were committed is not known: %s", group, error)
            return {}

    @property
    def _zookeeper(self) -> ClusterStore:
        assert self._reader.store is not None, "a ZooKeeper group needs the connect string"
        return self._reader.store
