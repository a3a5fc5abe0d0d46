"""Reads the state of groups from ZooKeeper and the brokers. Changes nothing.

    with GroupReader("localhost:2181") as reader:
        print(reader.groups())
        for finding in explain(reader.facts("readers")):
            print(finding)

Questions that fail (no broker is up, a coordinator is loading) are listed in the facts, so that you
can look at a group while half of its cluster is down. For a ZooKeeper group only ZooKeeper must
response; groups that have a coordinator need no ZooKeeper.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.consumer.zookeeper.offset_store import Offsets
from kafka08.consumer.zookeeper.one_cluster import addresses_in_cluster
from kafka08.errors import KafkaError, NoBrokersAvailable
from kafka08.groups.commit_times import CommitTimes, KafkaCommit
from kafka08.groups.coordinated import CoordinatedFacts, CoordinatedGroups
from kafka08.groups.coordinator_reader import CoordinatorReader, may_coordinate
from kafka08.groups.facts import (
    GroupFacts,
    GroupSummary,
    PartitionFacts,
    PartitionOffsets,
    partitions_of,
)
from kafka08.groups.members import read_members, topics_read
from kafka08.groups.trees import read_offsets, read_owners
from kafka08.lifecycle import Closeable
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.runtime.transport import Address
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Children
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

RETRIES = RetryPolicy(tries=3, backoff_ms=200)
RECENT_RECORDS: Final = 20_000
"""Takes well below a second to read."""

KafkaCommits: TypeAlias = dict[TopicPartition, KafkaCommit]


class GroupReader(Closeable):
    """Connects at once; raises ZooKeeperError. Usable in a `with` statement.

    zookeeper   connect string of the cluster; None: ZooKeeper groups cannot be read
    bootstrap   brokers to ask, of the same cluster; None: those registered in ZooKeeper.
                ConfigError if they are not those of `zookeeper`
    """

    def __init__(
        self,
        zookeeper: str | None = None,
        bootstrap: str | None = None,
        *,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        assert zookeeper or bootstrap, "give the connect string of ZooKeeper, or brokers"
        self._bootstrap = parse_bootstrap(bootstrap) if bootstrap is not None else None
        self._runtime = runtime
        self._cluster: ClusterClient | None = None
        self._store: ClusterStore | None = None
        if zookeeper is not None:
            zk = ZkClient(zookeeper, adapter=runtime.zookeeper, name="group reader", clock=runtime)
            zk.start()
            self._store = ClusterStore(zk)
            if self._bootstrap is not None:
                try:
                    self._bootstrap = addresses_in_cluster(
                        self._store, self._bootstrap, self._new_client
                    )
                except NoBrokersAvailable as error:
                    logger.warning("%s", error)  # each read that needs a broker will say so
                    self._bootstrap = None
                except BaseException:
                    zk.close()
                    raise

    def __repr__(self) -> str:
        where = self._bootstrap if self._store is None else self._store.zk.connect
        return f"<GroupReader {where}>"

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        if self._store is not None:
            self._store.zk.close()

    @property
    def has_zookeeper(self) -> bool:
        return self._store is not None

    def may_be_in_zookeeper(self, group: str) -> bool:
        """Whether ZooKeeper is read, and can have a group of this name."""
        return self.has_zookeeper and paths.can_be_group(group)

    def groups(self) -> list[GroupSummary]:
        """The groups in ZooKeeper, sorted. A group that commits to Kafka without ever being a
        member has no znode: 0.8.2.2 cannot list it, for later brokers see `coordinated_groups`."""
        zk = self._zookeeper.zk
        names = GroupStore(zk).groups()
        reads = [Children(path(name)) for name in names for path in (paths.consumer_ids, _offsets)]
        found = [unless_gone(result, []) for result in zk.pipeline(reads)]
        return [
            GroupSummary(name, len(members), tuple(topics))
            for name, members, topics in zip(names, found[::2], found[1::2], strict=True)
        ]

    def coordinated_groups(self) -> CoordinatedGroups:
        """The groups that brokers coordinate; none in a cluster of 0.8. Brokers that do not respond
        are listed in `failed_requests`."""
        if not self._may_coordinate():
            return CoordinatedGroups(())
        try:
            return CoordinatorReader(self._client(), self._runtime).groups()
        except KafkaError as error:
            return CoordinatedGroups((), (f"groups that brokers coordinate: {error}",))

    def coordinated_facts(self, group: str) -> CoordinatedFacts | None:
        """Everything about a group that has a coordinator; None if no coordinator knows the name.
        Raises KafkaError if the coordinator does not respond."""
        if not self._may_coordinate():
            return None
        return CoordinatorReader(self._client(), self._runtime).facts(group)

    def commit_times(self, records: int) -> CommitTimes:
        """Reads when offsets were committed to Kafka, from the last `records` of each partition of
        the offsets topic. Raises NoBrokersAvailable."""
        return CommitTimes(self._client(), self._runtime, records=records)

    def commits(self, group: str, partitions: Iterable[PartitionOffsets]) -> KafkaCommits:
        """partition → its newest commit to Kafka, of `partitions` with an offset there, by the last
        RECENT_RECORDS of the group's partition of the offsets topic. Raises nothing."""
        in_kafka = [p.topic_partition for p in partitions if p.kafka is not None]
        try:
            return self.commit_times(RECENT_RECORDS).commits(group, in_kafka) if in_kafka else {}
        except KafkaError as error:
            logger.warning("when offsets of group %s were committed is not known: %s", group, error)
            return {}

    @property
    def _zookeeper(self) -> ClusterStore:
        assert self._store is not None, "a ZooKeeper group needs the connect string of ZooKeeper"
        return self._store

    def _may_coordinate(self) -> bool:
        return self._store is None or may_coordinate(self._store)

    def facts(self, group: str) -> GroupFacts:
        """Everything about `group`. An offset znode that cannot be read affects its partition
        alone. Raises ZooKeeperError, and ConfigError for a name that no group can have."""
        paths.check_group(group)
        store = self._zookeeper
        zk = store.zk
        brokers = store.brokers()
        assignments = store.readable_assignments()
        topics = {name: tuple(numbers) for name, numbers in assignments.items()}
        members = read_members(zk, group)
        existing = [TopicPartition(name, n) for name, numbers in topics.items() for n in numbers]
        owners = read_owners(zk, [group])[group]
        committed = read_offsets(zk, [group])[group]
        in_zookeeper, unreadable = committed.values, committed.unreadable
        failed_requests: list[str] = []
        in_kafka = self._kafka_offsets(
            group, topics, sorted({*existing, *in_zookeeper, *unreadable}), failed_requests
        )
        coordinator_responded = not failed_requests
        concerned = partitions_of(
            topics,
            topics_read(members, topics) | owners.topics | committed.topics,
            {*owners.values, *in_zookeeper, *unreadable, *in_kafka},
        )
        leaders = self._leaders(concerned, set(brokers))
        starts, ends = self._log_ranges(leaders, failed_requests)
        return GroupFacts(
            group,
            tuple(brokers),
            topics,
            members,
            tuple(
                PartitionFacts(
                    tp,
                    in_zookeeper.get(tp),
                    in_kafka.get(tp),
                    starts.get(tp),
                    ends.get(tp),
                    exists=tp.partition in topics.get(tp.topic, ()),
                    leader=leaders.get(tp),
                    owner=owners.values.get(tp),
                    coordinator_responded=coordinator_responded,
                    zookeeper_fault=unreadable.get(tp),
                )
                for tp in concerned
            ),
            tuple(failed_requests),
            tuple(owners.strays),
            in_zookeeper=zk.exists(paths.group(group)),
        )

    def _leaders(
        self, partitions: Iterable[TopicPartition], alive: set[int]
    ) -> dict[TopicPartition, int]:
        """partition → leader, of those whose leader is registered."""
        states = self._zookeeper.leader_and_isr(partitions)
        return {tp: state.leader for tp, state in states.items() if state.leader in alive}

    def _kafka_offsets(
        self,
        group: str,
        topics: Iterable[str],
        partitions: list[TopicPartition],
        failed_requests: list[str],
    ) -> Offsets:
        """Kafka cannot list a group's offsets, so this asks for every partition of the cluster. It
        does not ask before the offsets topic exists, since the request would create it."""
        if OFFSETS_TOPIC not in topics:
            return {}
        try:
            reader = CoordinatorReader(self._client(), self._runtime)
            return reader.committed(group, partitions)
        except KafkaError as error:
            failed_requests.append(f"offsets in Kafka: {error}")
            return {}

    def _log_ranges(
        self, led: Iterable[TopicPartition], failed_requests: list[str]
    ) -> tuple[Offsets, Offsets]:
        """The start and end of every log that has a leader."""
        partitions = list(led)
        if not partitions:
            return {}, {}
        try:
            reader = CoordinatorReader(self._client(), self._runtime)
        except KafkaError as error:
            failed_requests.append(f"log start and end offsets: {error}")
            return {}, {}
        return reader.log_ranges(partitions, failed_requests)

    def _client(self) -> ClusterClient:
        """A client of brokers of which one has just responded. Raises NoBrokersAvailable at
        once."""
        if self._cluster is None:
            addresses = self._bootstrap or self._zookeeper.broker_addresses()
            self._cluster = self._new_client(addresses)
        # The usual retries for a coordinator take longer than a user with a dead cluster will wait.
        self._cluster.refresh()
        return self._cluster

    def _new_client(self, addresses: Sequence[Address]) -> ClusterClient:
        return ClusterClient(
            addresses,
            client_id="kafka08-group",
            timeout_ms=5000,
            connect_timeout_ms=3000,
            retry_policy=RETRIES,
            runtime=self._runtime,
        )


def _offsets(group: str) -> str:
    return paths.offsets(group)
