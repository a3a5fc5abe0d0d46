"""Reads the groups that have a coordinator from the brokers alone. Changes nothing.

A group has one coordinator, so a list asks every broker, and a description the coordinator alone. A
broker of 0.8 closes the connection on either request; a broker that is down refuses connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kafka08.client import ClusterClient, RetryPolicy
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.clock import Clock
from kafka08.consumer.fetching.brokers import BootstrapBrokers
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore, Offsets
from kafka08.errors import (
    ConnectionFailed,
    KafkaError,
    OffsetsLoadInProgress,
    check,
)
from kafka08.groups.coordinated import (
    CoordinatedFacts,
    CoordinatedGroup,
    CoordinatedGroups,
    group_of,
)
from kafka08.groups.facts import PartitionFacts, partitions_of
from kafka08.network.connection import Connection
from kafka08.protocol.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka08.protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.types import Request, Response
from kafka08.structs import (
    NO_LEADER,
    NO_OFFSET,
    OFFSETS_TOPIC,
    ORDINARY_CONSUMER,
    Broker,
    TopicPartition,
)
from kafka08.zk.store import ClusterStore

RETRIES: Final = RetryPolicy(tries=15, backoff_ms=200)
"""Retries while a coordinator is loading or moving: about 3 s in all."""
TIMEOUT_MS: Final = 3000
AT_ONCE: Final = 100
"""The most groups in one DescribeGroups request."""


FIRST_COORDINATING: Final = 2
"""The version of a 0.9.0 broker's registration. Earlier brokers do not coordinate members."""


def may_coordinate(store: ClusterStore) -> bool:
    """Whether a broker of 0.9 or later is registered. A broker of 0.8 logs an error for each
    unknown request, so callers check this first where they can read ZooKeeper."""
    return any(r.version >= FIRST_COORDINATING for r in store.registrations().values())


class CoordinatorReader:
    """Sends its requests through `cluster`, which the caller closes."""

    def __init__(self, cluster: ClusterClient, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    def groups(self) -> CoordinatedGroups:
        """Every group of every broker of 0.9 or later. Raises NoBrokersAvailable."""
        found: dict[str, CoordinatedGroup] = {}
        failed: list[str] = []
        old_brokers = 0
        for broker in self._cluster.brokers():
            try:
                with self._cluster.connection(broker) as connection:
                    of_broker = _groups_of(connection, broker, failed)
            except KafkaError as error:
                failed.append(f"groups of broker {broker.id}: {error}")
                continue
            old_brokers += of_broker is None
            found |= {group.name: group for group in of_broker or ()}
        in_order = tuple(found[name] for name in sorted(found))
        return CoordinatedGroups(in_order, tuple(failed), old_brokers)

    def describe(self, group: str) -> CoordinatedGroup | None:
        """The group, from its coordinator. None if the coordinator does not know the name or is of
        0.8, or if the offsets topic does not exist (looking up the coordinator would create it).
        Raises KafkaError if the coordinator does not respond."""
        if not self.has_offsets_topic():
            return None

        def ask(connection: Connection) -> DescribedGroup | None:
            response = _ask(connection, DescribeGroupsRequest([group]))
            if response is None:
                return None
            assert isinstance(response, DescribeGroupsResponse)
            [described] = response.groups
            check(described.error_code, f"description of group {group}")
            return described

        described = self._cluster.ask_coordinator(group, ask, policy=RETRIES, search_tries=1)
        if described is None:
            return None
        found = group_of(described, self._cluster.coordinator(group))
        return found if found.exists else None

    def has_offsets_topic(self) -> bool:
        return OFFSETS_TOPIC in self._cluster.refresh().topics

    def facts(self, group: str) -> CoordinatedFacts | None:
        """Everything about `group`; None in the cases of `describe`."""
        found = self.describe(group)
        if found is None:
            return None
        topics = self.assigned()
        failed: list[str] = []
        existing = [TopicPartition(topic, n) for topic, of in topics.items() for n in of]
        try:
            committed = self.committed(group, existing)
        except KafkaError as error:
            failed.append(f"offsets in Kafka: {error}")
            committed = {}
        coordinator_responded = not failed
        read = {topic for member in found.members for topic in member.topics}
        owned = {tp for member in found.members for tp in member.owns}
        concerned = partitions_of(topics, read, {*owned, *committed})
        leaders = self.leaders(concerned)
        starts, ends = self.log_ranges(leaders, failed)
        return CoordinatedFacts(
            found,
            tuple(
                PartitionFacts(
                    tp,
                    None,
                    committed.get(tp),
                    starts.get(tp),
                    ends.get(tp),
                    exists=tp.partition in topics.get(tp.topic, ()),
                    leader=leaders.get(tp),
                    owner=None,
                    coordinator_responded=coordinator_responded,
                )
                for tp in concerned
            ),
            topics,
            tuple(failed),
        )

    def assigned(self) -> dict[str, tuple[int, ...]]:
        """topic → its partitions, for every topic of the cluster."""
        topics = self._cluster.refresh().topics
        return {name: tuple(p.partition for p in info.partitions) for name, info in topics.items()}

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """partition → leader; a partition without a leader is left out."""
        topics = self._cluster.metadata.topics
        led = {
            TopicPartition(name, p.partition): p.leader
            for name, info in topics.items()
            for p in info.partitions
            if p.leader != NO_LEADER
        }
        return {tp: led[tp] for tp in partitions if tp in led}

    def committed(self, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
        """The committed offsets; a partition without one is left out. Raises KafkaError."""
        store = KafkaOffsetStore(
            BootstrapBrokers(self._cluster),
            group,
            clock=self._clock,
            backoff_ms=RETRIES.backoff_ms,
            timeout_ms=TIMEOUT_MS,
        )
        found = store.fetch(partitions)
        return {tp: offset for tp, offset in found.items() if offset != NO_OFFSET}

    def log_ranges(
        self, led: Iterable[TopicPartition], failed: list[str]
    ) -> tuple[Offsets, Offsets]:
        """The start and end of every log that has a leader. Failures go to `failed`."""
        partitions = list(led)
        if not partitions:
            return {}, {}
        try:
            return log_starts(self._cluster, partitions), log_ends(self._cluster, partitions)
        except KafkaError as error:
            failed.append(f"log start and end offsets: {error}")
            return {}, {}


def _groups_of(
    connection: Connection, broker: Broker, failed: list[str]
) -> list[CoordinatedGroup] | None:
    """The groups that a broker coordinates; None for a broker of 0.8."""
    listed = _ask(connection, ListGroupsRequest())
    if listed is None:
        return None
    assert isinstance(listed, ListGroupsResponse)
    if listed.error_code == OffsetsLoadInProgress.code:
        failed.append(f"groups of broker {broker.id}: it is loading some of them; try again")
    else:
        check(listed.error_code, f"groups of broker {broker.id}")
    found = []
    names = [group.group for group in listed.groups]
    for start in range(0, len(names), AT_ONCE):
        response = connection.send(DescribeGroupsRequest(names[start : start + AT_ONCE]))
        assert isinstance(response, DescribeGroupsResponse)
        for described in response.groups:
            if described.error_code:
                failed.append(f"group {described.group} has just moved; try again")
            elif (group := group_of(described, broker)).exists:
                found.append(group)
    return found


def _ask(connection: Connection, request: Request) -> Response | None:
    """The response. None if the broker does not know the request: one of 0.8 closes the connection
    then, each time. A connection of a later one may be lost too, but hardly twice. Raises
    ConnectionFailed if it cannot be connected to again."""
    for _ in range(2):
        try:
            return connection.send(request)
        except ConnectionFailed:
            connection.send(OffsetsRequest(ORDINARY_CONSUMER, []))
    return None
