"""What a reader learns of messages that it has read, and that are lost in an election."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.consumer.fetching import fetcher as fetcher_module
from kafka08.consumer.fetching.fetch_settings import LARGEST, NO_RESET, SMALLEST, FetchSettings
from kafka08.consumer.fetching.fetcher import PartitionFetcher
from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.consumer.fetching.truncation import LogTruncated, last_epoch
from kafka08.consumer.group.polled_stream import PolledStream
from kafka08.errors import (
    FencedLeaderEpoch,
    NotLeaderForPartition,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.runtime.threads import THREADS
from kafka08.structs import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition
from tests.client.epoch_cluster import EpochCluster, batch
from tests.client.fake_cluster import PORT

TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Stream(PolledStream):
    """A stream whose reader waits when the test says so."""

    waiting = False

    @property
    def is_waited_for(self) -> bool:
        return self.waiting


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "HELD_CHECK_S", 0)


class Bench:
    """A fetcher at broker 1, which the test runs round by round, and the reader of its stream."""

    def __init__(self, reset: str = SMALLEST) -> None:
        self.cluster = EpochCluster()
        self.lost: list[OwnedPartition] = []
        self.stream = Stream(
            runtime=THREADS,
            fetch_bytes=1 << 20,
            key_deserializer=None,
            value_deserializer=None,
            on_room=lambda: None,
        )
        settings = FetchSettings(
            auto_offset_reset=reset,
            fetch_message_max_bytes=1 << 20,
            fetch_min_bytes=1,
            fetch_wait_max_ms=0,
            fetch_max_bytes=1 << 20,
            refresh_leader_backoff_ms=0,
        )
        connection = Connection("b1", PORT, runtime=self.cluster.network.runtime(), negotiates=True)
        self.fetcher = PartitionFetcher("f", connection, settings, self.lost.extend, THREADS, list)

    def own(self, tp: TopicPartition, offset: int, epoch: int = NO_LEADER_EPOCH) -> OwnedPartition:
        partition = OwnedPartition(
            tp, thread_id="", sink=self.stream, offset=offset, epoch=epoch, fetch_bytes=1 << 20
        )
        self.lead(partition)
        return partition

    def lead(self, *partitions: OwnedPartition) -> None:
        """Broker 1 leads these, says the newest metadata."""
        for partition in partitions:
            partition.led_in(self.cluster.epochs[partition.topic_partition])
        self.lost.clear()
        self.fetcher.add(partitions)

    def lose_and_lead(self, partition: OwnedPartition) -> None:
        """The partition goes back to the leader finder, which finds broker 1 again."""
        self.fetcher._give_up([partition])
        self.lead(partition)

    def rounds(self, count: int = 1) -> None:
        for _ in range(count):
            self.fetcher._round()

    def read(self) -> list[tuple[int, bytes | None]]:
        """Offsets and values of all messages that arrived."""
        self.stream.finish()
        return [(m.offset, m.value) for m in self.stream.take(100, -inf) or ()]

    def requests(self) -> list[Any]:
        """Of each Fetch (partition, offset, leader's epoch), and of each question for the end of an
        epoch (epoch, leader's epoch), in order."""
        found: list[Any] = []
        for _, request in self.cluster.network.asked:
            if isinstance(request, FetchRequest):
                parts = [p for topic in request.topics for p in topic.partitions]
                found += [(p.partition, p.offset, p.leader_epoch) for p in parts]
            elif isinstance(request, OffsetForLeaderEpochRequest):
                ends = [p for topic in request.topics for p in topic.partitions]
                found += [(p.leader_epoch, p.current_epoch) for p in ends]
        self.cluster.network.asked.clear()
        return found


def after_election(bench: Bench, *, keeps: int) -> OwnedPartition:
    """A partition with two messages of epoch 0 and two of 1, all read. A new leader, epoch 2, has
    `keeps` of them, and three others behind. Broker 1 has refused a fetch under epoch 1."""
    bench.cluster.append(TP0, b"a", b"b")
    bench.cluster.elect(TP0, keeps=2)
    bench.cluster.append(TP0, b"c", b"d")
    partition = bench.own(TP0, 0)
    bench.rounds()
    assert bench.read() == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    bench.cluster.elect(TP0, keeps=keeps)
    bench.cluster.append(TP0, b"x", b"y", b"z")
    bench.rounds()
    assert bench.lost == [partition]
    assert isinstance(partition.outage.error, FencedLeaderEpoch)
    assert bench.requests() == [(0, 0, 1), (0, 4, 1)]
    bench.lead(partition)
    return partition


def test_a_new_leader_that_has_all_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    """Before the first fetch from it, which names its epoch. Nothing was lost."""
    bench = Bench()
    partition = after_election(bench, keeps=4)
    bench.rounds(2)
    assert "lost" not in caplog.text
    assert bench.read() == [(4, b"x"), (5, b"y"), (6, b"z")]
    assert bench.requests() == [(1, 2), (0, 4, 2), (0, 7, 2)]
    assert (partition.consumed_offset, partition.consumed_epoch) == (7, 2)


@pytest.mark.parametrize("keeps", [3, 2, 1])
@pytest.mark.parametrize("reset", [SMALLEST, LARGEST])
def test_reading_goes_on_where_the_logs_diverge(
    caplog: pytest.LogCaptureFixture, reset: str, keeps: int
) -> None:
    """Whatever auto.offset.reset says, as in Java; a warning has the offsets. The position's epoch
    is the one that ends there."""
    bench = Bench(reset)
    partition = after_election(bench, keeps=keeps)
    bench.rounds()
    assert f"[t,0]: the messages from offset {keeps} to 3 were lost" in caplog.text
    assert bench.read() == list(enumerate([b"x", b"y", b"z"], keeps))
    assert bench.requests() == [(1, 2), (0, keeps, 2)]
    assert not bench.cluster.network.requests(OffsetsRequest)
    assert (partition.consumed_offset, partition.consumed_epoch) == (keeps + 3, 2)


def test_without_a_reset_the_reader_is_told_until_it_seeks() -> None:
    """LogTruncated at each poll, with the offset where the logs diverge; the position stays."""
    bench = Bench(NO_RESET)
    partition = after_election(bench, keeps=3)
    for _ in range(2):
        bench.rounds(2)
        with pytest.raises(LogTruncated, match="the messages from offset 3 to 3 were lost") as told:
            bench.read()
        error = told.value
        assert (error.topic_partition, error.position, error.diverges_at) == (TP0, 4, 3)
        assert bench.stream.position_of(partition) == 4
    assert bench.requests() == [(1, 2), (1, 2)]
    bench.stream.revoke([partition])
    bench.own(TP0, 3)
    bench.rounds()
    assert bench.read() == list(enumerate([b"x", b"y", b"z"], 3))


@pytest.mark.parametrize(("reset", "start"), [(SMALLEST, 0), (LARGEST, 3)])
def test_a_log_without_the_epoch_is_another_one(reset: str, start: int) -> None:
    """An emptied log, or the topic was created again: auto.offset.reset says where to begin."""
    bench = Bench(reset)
    partition = after_election(bench, keeps=0)
    bench.rounds()
    assert bench.read() == list(enumerate([b"x", b"y", b"z"]))[start:]
    assert partition.fetch_offset == 3


def test_a_log_without_the_epoch_raises_without_a_reset() -> None:
    """LogTruncated, which knows no offset where the logs diverge."""
    bench = Bench(NO_RESET)
    after_election(bench, keeps=0)
    bench.rounds()
    with pytest.raises(LogTruncated, match="the messages before offset 4 were lost") as told:
        bench.read()
    assert told.value.diverges_at is None


def test_messages_that_were_fetched_before_are_read_first() -> None:
    """Then reading goes back; so does the position, which a commit would store."""
    bench = Bench()
    bench.cluster.append(TP0, b"a", b"b")
    partition = bench.own(TP0, 0)
    bench.rounds()
    bench.cluster.elect(TP0, keeps=1)
    bench.cluster.append(TP0, b"x", b"y")
    bench.rounds()
    bench.lead(partition)
    bench.rounds()
    assert bench.read() == [(0, b"a"), (1, b"b"), (1, b"x"), (2, b"y")]
    assert bench.stream.position_of(partition) == 3
    bench.cluster.append(TP0, b"z")
    bench.rounds()
    assert bench.read() == [(3, b"z")]


def test_the_position_is_behind_the_message_that_was_read_last() -> None:
    """Also while reading is in messages before an earlier position."""
    bench = Bench()
    bench.cluster.append(TP0, b"a", b"b", b"c", b"d")
    partition = bench.own(TP0, 0)
    bench.rounds()
    bench.cluster.elect(TP0, keeps=0)
    bench.cluster.append(TP0, b"x", b"y")
    bench.lose_and_lead(partition)
    bench.stream.reset(partition, 4, 0)
    bench.rounds()
    assert len(bench.stream.take(4, -inf) or ()) == 4
    bench.stream.finish()
    assert len(bench.stream.take(1, -inf) or ()) == 1
    assert bench.stream.position_of(partition) == 1
    assert bench.stream.unfinished_from == {TP0: 0}


@pytest.mark.parametrize(
    "error", [NotLeaderForPartition, UnknownLeaderEpoch, UnknownTopicOrPartition]
)
def test_a_leader_that_does_not_say_is_asked_again(error: Any) -> None:
    """The partition goes back to the leader finder, with its position; nothing is fetched before a
    leader has confirmed it. Others are."""
    bench = Bench()
    partition = after_election(bench, keeps=4)
    bench.own(TP1, 0)
    bench.cluster.refuse(TP0, error.code)
    bench.rounds()
    assert (bench.lost, type(partition.outage.error)) == ([partition], error)
    assert bench.requests() == [(1, 2), (1, 0, 0)]
    bench.lead(partition)
    bench.rounds()
    assert bench.requests() == [(1, 2), (1, 0, 0), (0, 4, 2)]


def test_a_partition_that_comes_during_a_check_waits_for_its_own() -> None:
    """It is in no fetch before."""
    bench = Bench()
    after_election(bench, keeps=4)
    bench.cluster.append(TP1, b"a")
    bench.cluster.elect(TP1, keeps=1)

    def meanwhile() -> None:
        bench.cluster.meanwhile = int
        bench.own(TP1, 1, epoch=0)

    bench.cluster.meanwhile = meanwhile
    bench.rounds(2)
    assert bench.requests() == [(1, 2), (0, 4, 2), (0, 1), (0, 7, 2), (1, 1, 1)]


def test_a_partition_that_comes_while_a_fetch_waits_is_checked_after_that() -> None:
    """The next fetch, which the fetcher would send at once for readers that wait, comes later."""
    bench = Bench()
    bench.stream.waiting = True
    bench.own(TP0, 0)
    bench.rounds()
    bench.cluster.append(TP1, b"a")
    bench.cluster.elect(TP1, keeps=1)
    bench.own(TP1, 1, epoch=0)
    bench.rounds(2)
    assert bench.requests()[1:4] == [(0, 0, 0), (0, 1), (0, 0, 0)]


def test_a_position_that_has_moved_is_not_confirmed() -> None:
    """The answer was about the former one."""
    bench = Bench()
    partition = after_election(bench, keeps=4)
    bench.stream.confirm(partition, 3)
    assert partition.unchecked
    bench.stream.confirm(partition, 4)
    assert not partition.unchecked


def test_a_position_without_an_epoch_is_not_checked() -> None:
    """That of a seek, until a batch was read."""
    bench = Bench()
    bench.cluster.append(TP0, b"a")
    bench.cluster.elect(TP0, keeps=1)
    bench.own(TP0, 1)
    bench.rounds()
    assert bench.requests() == [(0, 1, 1)]


def test_a_position_at_the_end_has_its_epoch(caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing was read yet: messages that take the place of those before it are read."""
    bench = Bench("largest")
    bench.cluster.append(TP0, b"a", b"b", b"c", b"d")
    partition = bench.own(TP0, NO_OFFSET)
    bench.rounds()
    assert (partition.fetch_offset, partition.fetch_epoch) == (4, 0)
    bench.cluster.elect(TP0, keeps=2)
    bench.cluster.append(TP0, b"x", b"y", b"z")
    bench.rounds()
    bench.lead(partition)
    bench.rounds(2)
    assert "the messages from offset 2 to 3 were lost" in caplog.text
    assert bench.read() == [(2, b"x"), (3, b"y"), (4, b"z")]


def test_a_committed_position_is_checked_before_the_first_fetch() -> None:
    """Messages may have been lost while nobody read."""
    bench = Bench()
    bench.cluster.append(TP0, b"a", b"b")
    bench.cluster.elect(TP0, keeps=1)
    bench.cluster.append(TP0, b"x", b"y")
    bench.own(TP0, 2, epoch=0)
    bench.rounds()
    assert bench.read() == [(1, b"x"), (2, b"y")]


def test_a_broker_that_cannot_say_is_not_asked() -> None:
    """Before 2.3 a consumer had no right to ask."""
    bench = Bench()
    bench.cluster.ranges[23] = (0, 2)
    after_election(bench, keeps=3)
    bench.rounds()
    assert bench.requests() == [(0, 4, 2)]


def test_a_reader_that_goes_back_has_its_position_checked() -> None:
    """As after a damaged message: it may be one that the leader of the fetch position lacks."""
    bench = Bench()
    bench.cluster.append(TP0, b"a", b"b")
    partition = bench.own(TP0, 0)
    bench.rounds()
    bench.read()
    bench.cluster.elect(TP0, keeps=1)
    bench.cluster.append(TP0, b"x", b"y")
    bench.lose_and_lead(partition)
    bench.stream.reset(partition, 2, 1, 0)
    partition.consumed_offset = 2
    partition.fetch_again()
    assert partition.unchecked
    bench.rounds()
    assert bench.read() == [(1, b"x"), (2, b"y")]


def test_the_epoch_of_a_set_is_that_of_its_last_batch() -> None:
    """None if that is a message of an earlier format."""
    messages = message_set.encode([(None, b"a")])
    for data, epoch in [
        (batch(0, 3, b"a") + batch(1, 5, b"b"), 5),
        (batch(0, 3, b"a") + batch(1, 5, b"b")[:-1], 3),
        (messages + batch(1, 4, b"b"), 4),
        (messages, NO_LEADER_EPOCH),
        (b"", NO_LEADER_EPOCH),
    ]:
        assert last_epoch(data, kernel.validate(data, INT_MAX)) == epoch
