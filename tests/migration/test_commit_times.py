"""When offsets were committed, read from the offsets topic of brokers of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.admin.connections import Connections
from kafka08.admin.group_facts import GroupFacts
from kafka08.client.requests import commit_request
from kafka08.embedded import EmbeddedCluster
from kafka08.migration.commit_times import with_commit_times
from kafka08.observe.commit_times import CommitTimes
from kafka08.observe.group import PartitionFacts
from kafka08.observe.snapshot import Owner
from kafka08.structs import OffsetAndMetadata, TopicPartition

GROUP = "timed"
TPS = [TopicPartition("timed-topic", number) for number in range(3)]


@pytest.fixture
def connections(live_cluster: EmbeddedCluster) -> Iterator[Connections]:
    connect = live_cluster.zookeeper.connect_string
    with Connections(connect, live_cluster.bootstrap) as connections:
        yield connections


def commit(connections: Connections, tp: TopicPartition, timestamp_ms: int) -> None:
    offsets = {tp: OffsetAndMetadata(5, "", timestamp_ms)}
    cluster = connections.cluster
    cluster.send(cluster.coordinator(GROUP), commit_request(GROUP, offsets, "kafka"))


def committed(times: CommitTimes) -> dict[TopicPartition, int]:
    return {tp: v.committed.timestamp_ms for tp, v in times.of(GROUP, TPS).items()}


def test_the_newest_commit_counts(connections: Connections) -> None:
    """It counts for each partition of the group; one without a commit has no time. Facts have the
    times of partitions without an owner. Only the last records of the topic are read, up to the
    requested number."""
    commit(connections, TPS[0], 1_000)
    commit(connections, TPS[1], 2_000)
    commit(connections, TPS[0], 3_000)
    times = CommitTimes(connections.cluster, connections.runtime)
    assert committed(times) == {TPS[0]: 3_000, TPS[1]: 2_000}
    last = CommitTimes(connections.cluster, connections.runtime, records=1)
    assert committed(last) == {TPS[0]: 3_000}
    assert times.of("another", []) == {}
    owned = PartitionFacts(TPS[0], 5, 5, 0, 10, owner=Owner("timed_a-0", 1))
    idle = PartitionFacts(TPS[1], 5, 5, 0, 10)
    facts = with_commit_times(GroupFacts(GROUP, (), (owned, idle)), times)
    assert [p.committed_ms for p in facts.partitions] == [None, 2_000]
    assert idle.seconds_left(2_000, 10_000) is None
    assert [p.seconds_left(4_000, 10_000) for p in facts.partitions] == [None, 8]
    assert [p.seconds_left(90_000, 10_000) for p in facts.partitions] == [None, 0]
