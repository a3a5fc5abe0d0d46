"""PartitionReader on a cluster in memory reads every message once, whichever broker leads."""

from __future__ import annotations

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.client.retry import RetryPolicy
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.fetching.truncation import LogTruncated
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.errors import (
    NotLeaderForPartition,
    OffsetOutOfRange,
    RequestTimeout,
    UnknownError,
)
from kafka08.protocol.fetch import FetchRequest
from kafka08.structs import NO_LEADER, TopicPartition
from tests.client.epoch_cluster import EpochCluster
from tests.client.fake_cluster import FakeCluster

TP = TopicPartition("t", 0)
VALUES = [b"%d" % number for number in range(6)]


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster({"t": {0: 1}})
    cluster.append(TP, *VALUES)
    return cluster


def connected(cluster: FakeCluster) -> ClusterClient:
    client = ClusterClient(
        cluster.bootstrap,
        runtime=cluster.runtime,
    )
    client.refresh()
    return client


def reader_at(
    cluster: FakeCluster, offset: int, policy: RetryPolicy = RetryPolicy(tries=5, backoff_ms=100)
) -> PartitionReader:
    return PartitionReader(connected(cluster), TP, offset, policy=policy, clock=cluster.clock)


def read(reader: PartitionReader, limits: BatchLimits = BatchLimits()) -> list[bytes | None]:
    return [value for batch in reader.poll(limits) for value in batch.values()]


def test_it_reads_from_the_offset_to_the_end(cluster: FakeCluster) -> None:
    """At the log end the reader returns nothing, until more is written."""
    reader = reader_at(cluster, 4)
    assert VALUES[4:] == read(reader)
    assert (6, True) == (reader.position, reader.is_at_end)
    assert [] == read(reader)
    cluster.append(TP, b"more")
    assert [b"more"] == read(reader)


def test_it_follows_the_leader(cluster: FakeCluster) -> None:
    """While the leader changes, also to none in between, no message is lost or read twice."""
    states = iter([NO_LEADER, NO_LEADER, 2])

    def next_state() -> bool:
        cluster.leaders[TP] = next(states)
        return False

    reader = PartitionReader(connected(cluster), TP, 0, is_stopping=next_state, clock=cluster.clock)
    first = next(iter(reader.poll(BatchLimits(max_messages=2))))
    assert VALUES[:2] == first.values()
    cluster.leaders[TP] = 2
    assert VALUES[2:] == read(reader)
    assert [] == list(states)


def test_a_broker_that_dies_is_left(cluster: FakeCluster) -> None:
    """The connection breaks during a read. The reader gets the rest from the new leader."""
    reader = reader_at(cluster, 0)
    next(iter(reader.poll(BatchLimits(max_messages=5))))
    cluster.down(1)
    cluster.leaders[TP] = 2
    assert VALUES[5:] == read(reader)


@pytest.mark.parametrize("error", [UnknownError, NotLeaderForPartition])
def test_a_retriable_error_that_stays_is_raised(
    cluster: FakeCluster, error: type[UnknownError]
) -> None:
    """A retriable error is raised with the partition after the policy's attempts, so that no caller
    waits for ever."""
    reader = reader_at(cluster, 0, RetryPolicy(tries=3, backoff_ms=100))
    cluster.refuse(TP, *[error.code] * 3)
    with pytest.raises(error, match=r"\[t,0\] at b1:9092, offset 0"):
        read(reader)
    assert VALUES == read(reader)


def test_silent_brokers_take_the_time_of_the_backoffs(cluster: FakeCluster) -> None:
    """Not that of a socket's timeout for each try: 150 of 30 s each were more than an hour."""
    reader = reader_at(cluster, 0, RetryPolicy(tries=150, backoff_ms=200))
    tries = 0

    def silent(*_: object) -> None:
        nonlocal tries
        tries += 1
        cluster.clock.sleep(30.0)
        raise RequestTimeout("b1 did not respond")

    cluster.refuse(TP, *[NotLeaderForPartition.code] * 200)
    reader._cluster.refresh = silent  # type: ignore[method-assign,assignment]
    with pytest.raises(RequestTimeout):
        read(reader)
    assert tries <= 2


def test_an_offset_outside_the_log_is_raised_at_once(cluster: FakeCluster) -> None:
    """An offset outside the log is raised at once. Waiting would not help, and nothing is skipped
    silently."""
    reader = reader_at(cluster, 99)
    with pytest.raises(OffsetOutOfRange, match="offset 99"):
        read(reader)
    assert [] == cluster.clock.slept


def test_a_message_larger_than_the_fetch_is_fetched_with_room(cluster: FakeCluster) -> None:
    """The reader makes one larger fetch. The next one has the usual size again."""
    cluster.append(TP, b"x" * 5000)
    reader = PartitionReader(connected(cluster), TP, 6, fetch_bytes=100, clock=cluster.clock)
    assert [b"x" * 5000] == read(reader)


def test_a_stop_ends_retries(cluster: FakeCluster) -> None:
    """When the reader is stopped, the error of the current try ends the read."""
    reader = PartitionReader(
        connected(cluster), TP, 0, is_stopping=lambda: True, clock=cluster.clock
    )
    cluster.refuse(TP, NotLeaderForPartition.code)
    with pytest.raises(NotLeaderForPartition):
        read(reader)
    assert [] == cluster.clock.slept


def test_a_leader_without_what_was_read_is_noticed() -> None:
    """After an unclean election, although its log has grown beyond the position. A leader that has
    it is read on."""
    cluster = EpochCluster(1)
    cluster.append(TP, b"0", b"1", b"2")
    client = ClusterClient(cluster.bootstrap, negotiates=True, runtime=cluster.runtime)
    client.refresh()
    reader = PartitionReader(client, TP, 0, clock=cluster.clock)
    assert read(reader) == [b"0", b"1", b"2"]
    assert {request.version for request in cluster.network.requests(FetchRequest)} == {11}
    cluster.elect(TP, leader=2, keeps=3)
    cluster.append(TP, b"3")
    assert read(reader) == [b"3"]
    cluster.elect(TP, leader=1, keeps=2)
    cluster.append(TP, b"x", b"y", b"z")
    with pytest.raises(LogTruncated, match="offset 2 to 3 were lost") as raised:
        read(reader)
    assert (raised.value.position, raised.value.diverges_at, reader.position) == (4, 2, 4)
