"""Reads what ZooKeeper and the brokers say about groups. Changes nothing.

    with GroupReader("localhost:2181") as reader:
        print(reader.groups())
        for finding in explain(reader.facts("readers")):
            print(finding)

What cannot be asked (no broker is up, a coordinator is loading) is noted in the facts, so that a
group can be looked at while its cluster is half down. Only ZooKeeper must answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.consumer.brokers import BootstrapBrokers
from kafka08.consumer.offset_store import KafkaOffsetStore, Offsets
from kafka08.errors import KafkaError
from kafka08.groups.facts import GroupFacts, GroupSummary, PartitionFacts, partitions_of
from kafka08.groups.members import read_members, topics_read
from kafka08.groups.trees import read_offsets, read_owners
from kafka08.lifecycle import Closeable
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import NO_OFFSET, OFFSETS_TOPIC, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Children
from kafka08.zk.store import ClusterStore

RETRIES = RetryPolicy(tries=3, backoff_ms=200)
COORDINATOR_PATIENCE_MS = 3000
"""How long a coordinator that is loading or moving is asked again."""


class GroupReader(Closeable):
    """Connects at once; raises ZooKeeperError. Usable in a `with` statement.

    zookeeper   connect string of the cluster
    bootstrap   brokers to ask; None: those registered in ZooKeeper
    """

    def __init__(
        self,
        zookeeper: str,
        bootstrap: str | None = None,
        *,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self._bootstrap = parse_bootstrap(bootstrap) if bootstrap is not None else None
        self._runtime = runtime
        self._cluster: ClusterClient | None = None
        self._zk = ZkClient(
            zookeeper, adapter=runtime.zookeeper, name="group reader", clock=runtime
        )
        self._zk.start()
        self._store = ClusterStore(self._zk)

    def __repr__(self) -> str:
        return f"<GroupReader {self._zk.connect}>"

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        self._zk.close()

    def groups(self) -> list[GroupSummary]:
        """The groups that ZooKeeper knows, sorted. One that was never there (it commits to Kafka
        without being a member) cannot be listed in 0.8.2.2."""
        names = GroupStore(self._zk).groups()
        reads = [Children(path(name)) for name in names for path in (paths.consumer_ids, _offsets)]
        found = [unless_gone(result, []) for result in self._zk.pipeline(reads)]
        return [
            GroupSummary(name, len(members), tuple(topics))
            for name, members, topics in zip(names, found[::2], found[1::2], strict=True)
        ]

    def facts(self, group: str) -> GroupFacts:
        """Everything about `group`. A znode of an offset that cannot be read concerns its partition
        alone. Raises ZooKeeperError, ConfigError for a name that no group can have."""
        paths.check_group(group)
        brokers = self._store.brokers()
        assignments = self._store.assignments()
        topics = {name: tuple(numbers) for name, numbers in assignments.items()}
        members = read_members(self._zk, group)
        existing = [TopicPartition(name, n) for name, numbers in topics.items() for n in numbers]
        owners = read_owners(self._zk, [group])[group]
        committed = read_offsets(self._zk, [group])[group]
        in_zookeeper, unreadable = committed.values, committed.unreadable
        unanswered: list[str] = []
        in_kafka = self._kafka_offsets(
            group, topics, sorted({*existing, *in_zookeeper, *unreadable}), unanswered
        )
        kafka_answered = not unanswered
        concerned = partitions_of(
            topics,
            topics_read(members, topics) | owners.topics | committed.topics,
            {*owners.values, *in_zookeeper, *unreadable, *in_kafka},
        )
        leaders = self._leaders(concerned, set(brokers))
        starts, ends = self._log_ranges(leaders, unanswered)
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
                    kafka_answered=kafka_answered,
                    zookeeper_fault=unreadable.get(tp),
                )
                for tp in concerned
            ),
            tuple(unanswered),
            tuple(owners.strays),
            in_zookeeper=self._zk.exists(paths.group(group)),
        )

    def _leaders(
        self, partitions: Iterable[TopicPartition], alive: set[int]
    ) -> dict[TopicPartition, int]:
        """partition → leader, of those whose leader is registered."""
        states = self._store.leader_and_isr(partitions)
        return {tp: state.leader for tp, state in states.items() if state.leader in alive}

    def _kafka_offsets(
        self,
        group: str,
        topics: Iterable[str],
        partitions: list[TopicPartition],
        unanswered: list[str],
    ) -> Offsets:
        """Kafka cannot list what a group committed, so it is asked for every partition there is;
        not at all before the offsets topic exists, since the question would create it."""
        if OFFSETS_TOPIC not in topics:
            return {}
        try:
            store = KafkaOffsetStore(
                BootstrapBrokers(self._client()),
                group,
                clock=self._runtime,
                backoff_ms=RETRIES.backoff_ms,
                patience_ms=COORDINATOR_PATIENCE_MS,
            )
            found = store.fetch(partitions)
        except KafkaError as error:
            unanswered.append(f"offsets in Kafka: {error}")
            return {}
        return {tp: offset for tp, offset in found.items() if offset != NO_OFFSET}

    def _log_ranges(
        self, led: Iterable[TopicPartition], unanswered: list[str]
    ) -> tuple[Offsets, Offsets]:
        """The starts and ends of the logs that have a leader."""
        partitions = list(led)
        if not partitions:
            return {}, {}
        try:
            cluster = self._client()
            return log_starts(cluster, partitions), log_ends(cluster, partitions)
        except KafkaError as error:
            unanswered.append(f"where logs start and end: {error}")
            return {}, {}

    def _client(self) -> ClusterClient:
        """A client of brokers of which one has just answered; else NoBrokersAvailable, at once."""
        if self._cluster is None:
            addresses = self._bootstrap or self._store.broker_addresses()
            self._cluster = ClusterClient(
                addresses,
                client_id="kafka08-group",
                timeout_ms=5000,
                connect_timeout_ms=3000,
                retry_policy=RETRIES,
                runtime=self._runtime,
            )
        # A coordinator is waited for much longer than somebody who looks at a dead cluster wants.
        self._cluster.refresh()
        return self._cluster


def _offsets(group: str) -> str:
    return paths.offsets(group)
