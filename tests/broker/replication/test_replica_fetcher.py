"""A follower copies a leader: two brokers in one process."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.replication import replica_fetcher
from kafka08.broker.replication.high_watermark_checkpoints import HighWatermarkCheckpoints
from kafka08.broker.replication.replica_fetcher import (
    ALIKE_MAX,
    EARLY_MAX,
    EARLY_PAUSE_S,
    PARTITION_BACKOFF_S,
    PROBE_BYTES,
    SECONDS_PER_PARTITION,
)
from kafka08.errors import FileRefused, StorageError
from kafka08.log.background import PendingFlush
from kafka08.log.log import Log
from kafka08.protocol import message_set
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.fetch_frame import FetchFrame
from tests.broker.fake_runtime import Halted
from tests.broker.fetching_pair import (
    FETCH_WAIT_S,
    TP,
    Pair,
    append,
    contents,
    lose_the_connection,
    pair_with_large_messages,
)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_the_copy_is_byte_for_byte_and_its_hw_one_fetch_late(pair: Pair) -> None:
    """The copy is equal byte for byte, also with a compressed set, and its HW follows one fetch
    later."""
    pair.produce(b"a", b"b")
    append(pair.leader, message_set.encode([(b"k", b"c" * 99)] * 3, codec=2))
    pair.fetcher.round()
    assert (5, 0) == (pair.copy.log.log_end_offset, pair.copy.high_watermark)
    pair.fetcher.round()
    assert (5, 5) == (pair.original.high_watermark, pair.copy.high_watermark)
    original, copy = pair.logs()
    assert original == copy


def test_a_follower_applies_flush_messages(tmp_path: Path) -> None:
    """flush.messages applies on a follower too, before its next fetch shows the leader its new
    LEO."""
    pair = Pair(tmp_path, log_flush_interval_messages=2)
    pair.produce(b"a")
    pair.fetcher.round()
    assert 0 == pair.copy.log.recovery_point
    pair.produce(b"b")
    pair.fetcher.round()
    assert 2 == pair.copy.log.recovery_point


OF_0_11: dict[str, Any] = {
    "api_level": "0.11.0",
    "inter_broker_protocol_version": "0.11.0",
    "log_message_format_version": "0.11.0",
}


@pytest.mark.parametrize(
    ("of", "step"), [(PendingFlush, "sync"), (Log, "begin_flush")], ids=["sync", "open"]
)
@pytest.mark.parametrize("keys", [{}, OF_0_11], ids=["0.8.2", "0.11.0"])
def test_what_could_not_be_flushed_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: type, step: str, keys: dict[str, Any]
) -> None:
    """A full descriptor table may refuse a flush for a moment, or to open its files. The next fetch
    told the leader that the messages are on disk."""
    pair = Pair(tmp_path, log_flush_interval_messages=1, **keys)
    pair.produce(b"a")
    with monkeypatch.context() as patch:

        def refuse(_: object) -> None:
            raise FileRefused("cannot sync t-0: Too many open files")

        patch.setattr(of, step, refuse)
        for _ in range(3):
            pair.fetcher.round()
            assert (1, 0) == (pair.copy.log.log_end_offset, pair.original.high_watermark)
            pair.follower.runtime.advance(PARTITION_BACKOFF_S)
    for _ in range(3):
        pair.fetcher.round()
    assert 1 == pair.copy.log.recovery_point == pair.original.high_watermark


def test_a_disk_that_fails_while_a_log_is_cut_ends_the_process(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk fails during a truncation, the process ends: the log on disk would not match its
    recovery point."""
    pair.produce(b"a", b"b")
    pair.fetcher.round()
    pair.fetcher.round()
    pair.leader.log_manager.truncate_to({TP: 1})
    pair.follower.log_manager.logs[TP].flush()
    pair.follower.log_manager.checkpoint_recovery_points()

    def fail() -> None:
        raise StorageError("cannot write recovery-point-offset-checkpoint: No space left on device")

    monkeypatch.setattr(pair.follower.log_manager, "checkpoint_recovery_points", fail)
    pair.fetcher.round()  # the logs are compared below the leader's end
    with pytest.raises(Halted):
        pair.fetcher.run()


def test_an_error_of_one_round_does_not_end_the_fetcher(pair: Pair) -> None:
    """An error in one round does not end the fetcher. Otherwise nothing of its leader would be
    copied until the next restart."""
    errors = [RuntimeError("a bug")]

    def meet() -> None:
        if errors:
            raise errors.pop()
        pair.fetcher.stop()

    pair.while_fetching = meet
    pair.produce(b"a")
    pair.fetcher.run()
    assert [] == errors


def test_a_leader_that_does_not_wait_is_not_asked_without_a_pause(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken leader was asked thousands of times a second. One that waits before it has nothing
    is asked again at once, and so is one with messages."""
    pair.produce(b"a")
    pair.fetcher.round()
    pauses: list[float | None] = []
    monkeypatch.setattr(pair.fetcher._changed, "wait", pauses.append)
    for _ in range(EARLY_MAX + 3):
        pair.fetcher.round()
    assert [EARLY_PAUSE_S] * 3 == pauses
    for _ in range(EARLY_MAX + 3):
        pair.produce(b"b")
        pair.fetcher.round()
    pair.while_waiting = lambda: pair.follower.runtime.advance(FETCH_WAIT_S / 2)
    for _ in range(EARLY_MAX + 3):
        pair.fetcher.round()
    assert 3 == len(pauses)


def test_a_message_above_the_fetch_size_gets_room(tmp_path: Path) -> None:
    """replica.fetch.max.bytes is raised for the partition of a larger message, since the topic may
    allow more."""
    pair = pair_with_large_messages(tmp_path)
    pair.produce(b"x" * 2000)
    pair.fetcher.round()
    assert 0 == pair.copy.log.log_end_offset
    pair.fetcher.round()
    assert 1 == pair.copy.log.log_end_offset


@pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
def test_limits_that_were_lowered_end_no_replication(tmp_path: Path, level: str) -> None:
    """max.message.bytes and segment.bytes are for producers: a follower copies a stored message
    above the first, and a response above the second."""
    pair = pair_with_large_messages(tmp_path, api_level=level)
    pair.produce(b"x" * 2000)
    for number in range(3):
        pair.produce(b"%d" % number * 100)
    for world in (pair.leader, pair.follower):
        world.log_manager.update_topic_config(
            "t", {"max.message.bytes": "100", "segment.bytes": "200"}
        )
    for _ in range(6):
        pair.fetcher.round()
    assert contents(pair.original) == contents(pair.copy)


def test_room_for_a_large_message_is_given_back(tmp_path: Path) -> None:
    """After a large message the next fetch has the configured size again."""
    pair = pair_with_large_messages(tmp_path)
    pair.produce(b"x" * 2000)
    pair.fetcher.round()
    pair.fetcher.round()
    for _ in range(4):
        pair.produce(b"y" * 400)
    pair.fetcher.round()
    assert 2 == pair.copy.log.log_end_offset


@pytest.mark.parametrize("size", [0x7FFFFFFF, 5001 - 12, -5])
def test_a_length_that_no_message_can_have_pauses_its_partition_alone(
    tmp_path: Path, size: int
) -> None:
    """An impossible length pauses its partition alone. A fetch of that size would be too large a
    response for all partitions."""
    pair = Pair(tmp_path, partitions=2, message_max_bytes=5000)
    broken, sound = pair.copies
    append(pair.leader, message_set.encode([(None, b"a" * 100)]))
    append(pair.leader, message_set.encode([(None, b"b")]), sound.topic_partition)
    [segment] = pair.original.log.directory.glob("*.log")
    with segment.open("r+b") as file:
        file.seek(8)
        file.write(struct.pack(">i", size))
    pair.fetcher.round()
    assert [0, 1] == [broken.log.log_end_offset, sound.log.log_end_offset]
    append(pair.leader, message_set.encode([(None, b"c")]), sound.topic_partition)
    pair.fetcher.round()
    assert [0, 2] == [broken.log.log_end_offset, sound.log.log_end_offset]


class TestManyPartitionsThatLag:
    """The size of one response is bounded, and 4 MiB for each of ten partitions exceed the
    bound. Each is asked for so much at once."""

    @pytest.fixture
    def pair(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
        monkeypatch.setattr(replica_fetcher, "PROBE_BYTES", 4 << 20)
        pair = Pair(tmp_path, partitions=10, replica_fetch_max_bytes=4 << 20)
        for copy in pair.copies:
            append(pair.leader, message_set.encode([(None, b"a")]), copy.topic_partition)
        return pair

    def copied(self, pair: Pair) -> int:
        return sum(copy.log.log_end_offset for copy in pair.copies)

    def test_they_have_turns(self, pair: Pair) -> None:
        """Each request has as many partitions as fit, and later requests have the others, until all
        are copied."""
        counts = []
        for _ in range(3):
            pair.fetcher.round()
            counts.append(self.copied(pair))
        assert 4 == counts[0]
        assert 10 == counts[-1]

    def test_a_request_for_some_of_them_does_not_wait_at_the_leader(self, pair: Pair) -> None:
        """If four partitions have no messages, the leader answers at once, and the next request has
        the others."""
        for copy in pair.copies[:4]:
            copy.append_as_follower(message_set.encode([(None, b"a")]), 1)
        asked_at = pair.leader.runtime.monotonic()
        pair.fetcher.round()
        assert asked_at == pair.leader.runtime.monotonic()

    def test_those_that_have_caught_up_are_asked_for_together(self, pair: Pair) -> None:
        """A partition that has caught up is expected to return as little as last time. So all go
        into one request, and the leader may wait."""
        for _ in range(3):
            pair.fetcher.round()
        for copy in pair.copies:
            append(pair.leader, message_set.encode([(None, b"b")]), copy.topic_partition)
        pair.fetcher.round()
        assert 20 == self.copied(pair)

    def test_partitions_with_large_responses_take_turns_again(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The last responses of these partitions were so large that one response for all might not
        fit."""
        for _ in range(3):
            pair.fetcher.round()
        monkeypatch.setattr(replica_fetcher, "RESPONSE_BYTES", 100_000)
        counts = []
        for _ in range(2):
            for copy in pair.copies:
                large = message_set.encode([(None, b"b" * 20_000)])
                append(pair.leader, large, copy.topic_partition)
            pair.fetcher.round()
            counts.append(self.copied(pair))
        assert [10 + 10, 20 + 4] == counts

    def test_a_large_message_is_copied_while_others_always_have_news(self, tmp_path: Path) -> None:
        """From 0.10.2 on a message above the fetch size is sent only if it is the first of the
        response. So partitions with news give way to the others now and then."""
        pair = Pair(tmp_path, partitions=3, api_level="0.10.2", replica_fetch_max_bytes=500)
        busy, quiet, _ = pair.copies

        def copy_news() -> None:
            append(pair.leader, message_set.encode([(None, b"a")]), busy.topic_partition)
            pair.fetcher.round()

        append(pair.leader, message_set.encode([(None, b"a")]), quiet.topic_partition)
        copy_news()
        append(pair.leader, message_set.encode([(None, bytes(5000))]), quiet.topic_partition)
        copy_news()
        assert 1 == quiet.log.log_end_offset
        for _ in range(ALIKE_MAX):
            copy_news()
        assert (ALIKE_MAX + 2, 2) == (busy.log.log_end_offset, quiet.log.log_end_offset)

    @pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
    def test_a_request_for_the_same_partitions_is_not_encoded_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
    ) -> None:
        """Only the fetch offsets are changed, whichever partitions had news; from 0.10.2 on the
        order changes now and then."""
        pair = Pair(tmp_path, partitions=3, api_level=level)
        for copy in pair.copies:
            append(pair.leader, message_set.encode([(None, b"a")]), copy.topic_partition)
        for _ in range(3):
            pair.fetcher.round()
        encoded: list[FetchRequest] = []

        def frame(request: FetchRequest, *rest: Any, **keys: Any) -> FetchFrame[Any]:
            encoded.append(request)
            return FetchFrame(request, *rest, **keys)

        monkeypatch.setattr(replica_fetcher, "FetchFrame", frame)
        for number in range(16):
            copy = pair.copies[number % 3]
            append(pair.leader, message_set.encode([(None, b"b")]), copy.topic_partition)
            pair.fetcher.round()
        assert 16 + 3 == self.copied(pair)
        assert len(encoded) <= (level == "0.10.2")

    def test_a_failed_response_makes_them_lag(self, pair: Pair) -> None:
        """After a failed response, which may have been too long, the size to expect of each
        partition is unknown again."""
        for _ in range(3):
            pair.fetcher.round()
        for copy in pair.copies:
            append(pair.leader, message_set.encode([(None, b"b")]), copy.topic_partition)
        pair.while_fetching = lose_the_connection
        pair.fetcher.round()
        pair.while_fetching = lambda: None
        pair.fetcher.round()
        assert 10 + 4 == self.copied(pair)


class TestProbes:
    """A partition is asked for a little first, so that one request has thousands."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
        """The sizes in each request that is encoded."""
        sizes: list[list[int]] = []

        def frame(request: FetchRequest, *rest: Any, **keys: Any) -> FetchFrame[Any]:
            sizes.append([p.max_bytes for topic in request.topics for p in topic.partitions])
            return FetchFrame(request, *rest, **keys)

        monkeypatch.setattr(replica_fetcher, "FetchFrame", frame)
        return sizes

    def test_partitions_that_lack_nothing_are_asked_for_in_one_request(
        self, tmp_path: Path, asked: list[list[int]]
    ) -> None:
        """Thirty of 1 MiB exceed the bound of one response. At the start, and when the connection
        is lost, all are in one request, which is sent again and again."""
        pair = Pair(tmp_path, partitions=30)
        for _ in range(3):
            pair.fetcher.round()
        assert [[PROBE_BYTES] * 30] == asked
        pair.while_fetching = lose_the_connection
        pair.fetcher.round()
        pair.while_fetching = lambda: None
        for _ in range(3):
            pair.fetcher.round()
        assert [[PROBE_BYTES] * 30] * 2 == asked

    @pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
    def test_large_messages_and_many_of_them_are_copied(self, tmp_path: Path, level: str) -> None:
        """A message that is larger than a probe, one that fits, and more than a probe holds."""
        pair = Pair(tmp_path, partitions=3, api_level=level)
        sizes = [5 * PROBE_BYTES], [10], [PROBE_BYTES // 3] * 9
        for copy, own in zip(pair.copies, sizes, strict=True):
            for size in own:
                data = message_set.encode([(None, bytes(size))])
                append(pair.leader, data, copy.topic_partition)
        for _ in range(3):
            pair.fetcher.round()
        assert [1, 1, 9] == [copy.log.log_end_offset for copy in pair.copies]

    def test_those_that_are_refused_leave_room_for_the_others(self, tmp_path: Path) -> None:
        """Partitions in error leave their room to the others, as during a failover: an error takes
        no room."""
        pair = Pair(tmp_path, partitions=10, replica_fetch_max_bytes=4 << 20)
        for copy in pair.copies:
            append(pair.leader, message_set.encode([(None, b"a")]), copy.topic_partition)
        for copy in pair.copies[:6]:
            pair.leader.partition("t", copy.topic_partition.partition).is_leader = False
        for _ in range(3):
            pair.fetcher.round()
            pair.follower.runtime.advance(PARTITION_BACKOFF_S)
        append(pair.leader, message_set.encode([(None, b"b")]), pair.copies[9].topic_partition)
        pair.fetcher.round()
        assert 2 == pair.copies[9].log.log_end_offset

    def test_one_that_has_more_is_expected_to_be_large(
        self, tmp_path: Path, asked: list[list[int]]
    ) -> None:
        """Twenty partitions filled a probe each. The next responses may have 1 MiB for each, so
        they take turns."""
        pair = Pair(tmp_path, partitions=20)
        for copy in pair.copies:
            for _ in range(6):
                data = message_set.encode([(None, bytes(PROBE_BYTES // 3))])
                append(pair.leader, data, copy.topic_partition)
        for _ in range(3):
            pair.fetcher.round()
        usual = pair.follower.config.replica_fetch_max_bytes
        assert [[PROBE_BYTES] * 20, [usual] * 16, [usual] * 20] == asked
        assert {6} == {copy.log.log_end_offset for copy in pair.copies}

    def test_an_uncommitted_tail_that_is_longer_is_compared(self, tmp_path: Path) -> None:
        """The follower's messages above its HW are more than a probe holds, and equal: none is
        lost, and those behind are copied."""
        pair = Pair(tmp_path)
        for number in range(9):
            data = message_set.encode([(None, bytes(PROBE_BYTES // 3))], base_offset=number)
            append(pair.leader, data)
            if number < 8:
                pair.copy.append_as_follower(data, 0)
        for _ in range(4):
            pair.fetcher.round()
            assert pair.copy.log.log_end_offset >= 8
        assert 9 == pair.copy.log.log_end_offset


def test_an_error_of_the_leader_pauses_the_partition(pair: Pair) -> None:
    """An error of the leader, for example that it does not lead yet, pauses the partition for a
    moment."""
    pair.leader.lead("t", leader=2, isr=(2,), replicas=(1, 2))
    pair.fetcher.round()
    pair.lead()
    pair.produce(b"a")
    pair.fetcher.round()
    assert 0 == pair.copy.log.log_end_offset
    pair.follower.runtime.advance(0.1)
    pair.fetcher.round()
    assert 1 == pair.copy.log.log_end_offset


def test_the_pause_is_longer_the_more_partitions_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next request costs as much as there are partitions, whichever of them was refused."""
    monkeypatch.setattr(replica_fetcher, "SECONDS_PER_PARTITION", 0.2)
    pair = Pair(tmp_path, partitions=2)
    pair.leader.lead("t", leader=2, isr=(2,), replicas=(1, 2))
    pair.fetcher.round()
    pair.lead()
    pair.produce(b"a")
    pair.follower.runtime.advance(0.39)
    pair.fetcher.round()
    assert 0 == pair.copy.log.log_end_offset
    pair.follower.runtime.advance(0.02)
    pair.fetcher.round()
    assert 1 == pair.copy.log.log_end_offset


def test_messages_of_removed_partitions_are_not_appended(pair: Pair) -> None:
    """A response for a removed partition is dropped, and so is one that was requested before the
    partition was added again."""
    pair.produce(b"a")
    for change in (lambda: pair.fetcher.add([pair.copy]), lambda: pair.fetcher.remove([TP])):
        pair.while_fetching = change
        pair.fetcher.round()
        assert 0 == pair.copy.log.log_end_offset
    assert 0 == len(pair.fetcher)


def test_removed_partitions_are_not_fetched_again(tmp_path: Path) -> None:
    """This holds although the same cached request was sent to the leader before."""
    pair = Pair(tmp_path, partitions=2)
    for value in (b"a", b"b", b"c"):
        for copy in pair.copies:
            append(pair.leader, message_set.encode([(None, value)]), copy.topic_partition)
        pair.fetcher.round()
    assert [3, 3] == [copy.log.log_end_offset for copy in pair.copies]
    pair.fetcher.remove([TP])
    pair.leader.runtime.advance(1)
    pair.fetcher.round()
    first, second = (partition.followers[2] for partition in pair.leader.replica_manager)
    assert second.last_fetch - first.last_fetch >= 1


def test_a_partition_removed_while_connecting_is_not_fetched(tmp_path: Path) -> None:
    """A partition that StopReplica removes while the fetcher connects is not fetched. Such a fetch
    brought the stopping broker back into the ISR, because its leader took it for caught up."""
    pair = Pair(tmp_path, partitions=2)
    pair.leader.lead("t", 2, isr=(1,), replicas=(1, 2))
    pair.while_connecting = lambda: pair.fetcher.remove([TP])
    pair.fetcher.round()
    assert [(1,), (1, 2)] == [partition.isr for partition in pair.leader.replica_manager]


def test_a_partition_added_while_connecting_is_fetched_at_once(tmp_path: Path) -> None:
    """A partition that is added while the fetcher connects is in its first request."""
    pair = Pair(tmp_path, partitions=2)
    second = pair.copies[1]
    pair.fetcher.remove([second.topic_partition])
    append(pair.leader, message_set.encode([(None, b"a")]), second.topic_partition)
    pair.while_connecting = lambda: pair.fetcher.add([second])
    pair.fetcher.round()
    assert 1 == second.log.log_end_offset


class TestAdditionWhileARequestIsParked:
    """The leader has no news, and a partition comes."""

    SECONDS = 3 * SECONDS_PER_PARTITION

    @pytest.fixture
    def added(self, tmp_path: Path) -> Any:
        """Three partitions; the third is added while the request for the others waits."""
        pair = Pair(tmp_path, partitions=3)
        self.third = pair.copies[2]
        pair.fetcher.remove([self.third.topic_partition])
        pair.fetcher.round()
        append(pair.leader, message_set.encode([(None, b"a")]), self.third.topic_partition)
        return pair

    def test_the_request_is_aborted_once_it_is_old(self, added: Pair) -> None:
        """Not at once: each abort costs as much as there are partitions. Then the next request, on
        a new connection, has all of them."""
        aborts: list[int] = []

        def add() -> None:
            added.while_waiting = lambda: None
            for _ in range(4):
                added.fetcher.add([self.third])
                added.follower.runtime.advance(self.SECONDS / 3.5)
                aborts.append(added.aborts)

        added.while_waiting = add
        added.fetcher.round()
        assert [0, 0, 0, 1] == aborts
        added.fetcher.round()
        assert 1 == self.third.log.log_end_offset

    def test_a_response_meanwhile_makes_it_unnecessary(self, added: Pair) -> None:
        """The next request has the partition, and waits at the leader as long as it likes."""
        added.while_waiting = lambda: added.fetcher.add([self.third])
        added.fetcher.round()
        added.while_waiting = lambda: added.follower.runtime.advance(2 * self.SECONDS)
        added.fetcher.round()
        assert (0, 1) == (added.aborts, self.third.log.log_end_offset)

    def test_a_stopped_fetcher_leaves_no_timer(self, added: Pair) -> None:
        """`stop` aborts the request by itself."""
        before = added.follower.runtime.pending_calls

        def end() -> None:
            added.while_waiting = lambda: None
            added.fetcher.add([self.third])
            added.fetcher.stop()

        added.while_waiting = end
        added.fetcher.round()
        assert (1, before) == (added.aborts, added.follower.runtime.pending_calls)


class TestOutOfRange:
    """handleOffsetOutOfRange: the leader lacks the requested offset."""

    def longer_copy(self, pair: Pair) -> None:
        """The follower has two messages that the leader lacks, because the leader was elected out
        of sync."""
        pair.produce(b"a")
        pair.fetcher.round()
        more = bytearray(message_set.encode([(None, b"x"), (None, b"y")], base_offset=1))
        pair.copy.append_as_follower(more, 3)

    def test_a_shorter_leader_has_the_copy_cut(self, pair: Pair) -> None:
        """Where unclean elections are allowed, the copy is truncated to the leader's LEO."""
        self.longer_copy(pair)
        pair.fetcher.round()
        pair.fetcher.round()
        assert 1 == pair.copy.log.log_end_offset
        pair.produce(b"b")
        for _ in range(3):
            pair.fetcher.round()
        original, copy = pair.logs()
        assert original == copy
        assert 2 == pair.copy.high_watermark

    @pytest.mark.parametrize("codec", [0, 1])
    @pytest.mark.parametrize("grows", [False, True])
    @pytest.mark.parametrize("common", [3, 1500])
    def test_a_leader_that_never_had_the_hw_gets_an_equal_copy(
        self, pair: Pair, codec: int, grows: bool, common: int
    ) -> None:
        """The copy led alone, and has more messages than the leader that was elected without them.
        What that leader has stored since lies at the same offsets. The copy is compared backwards
        from the end and cut where the logs differ, also inside a wrapper, and also if the leader
        grows after it has refused the offset. 0.8.2.2 keeps the difference, or a hole."""
        shared = message_set.encode([(None, b"%d" % n) for n in range(common)])
        append(pair.leader, shared)
        while pair.copy.log.log_end_offset < common:
            pair.fetcher.round()
        alone = message_set.encode([(None, b"lost")] * 100, codec, common)
        pair.copy.append_as_follower(bytearray(alone), common + 100)
        for number in range(60):
            pair.produce(b"%d" % number)

        def grow() -> None:
            pair.while_fetching = lambda: None
            append(pair.leader, message_set.encode([(None, b"more")] * 50))

        if grows:
            pair.while_fetching = grow
        pair.fetcher.add(pair.copies)
        for _ in range(12):
            pair.fetcher.round()
        assert [common + 60 + 50 * grows] * 2 == [
            one.log.log_end_offset for one in (pair.original, pair.copy)
        ]
        assert contents(pair.original) == contents(pair.copy)
        assert pair.copy.high_watermark <= pair.copy.log.log_end_offset

    @pytest.mark.parametrize("killed", [False, True], ids=["announced again", "killed"])
    @pytest.mark.parametrize("rounds", range(1, 6))
    def test_a_search_that_is_interrupted_leaves_no_difference(
        self, pair: Pair, rounds: int, killed: bool
    ) -> None:
        """Its leader is announced again, or its broker is killed, and meanwhile the leader has
        grown above the copy's former HW, which it does not refuse any more."""
        common = 1500
        append(pair.leader, message_set.encode([(None, b"%d" % n) for n in range(common)]))
        while pair.copy.log.log_end_offset < common:
            pair.fetcher.round()
        alone = message_set.encode([(None, b"lost")] * 100, 0, common)
        pair.copy.append_as_follower(bytearray(alone), common + 100)
        pair.follower.replica_manager.checkpoint_high_watermarks()
        for number in range(60):
            pair.produce(b"%d" % number)
        pair.fetcher.add(pair.copies)
        for _ in range(rounds):
            pair.fetcher.round()
        append(pair.leader, message_set.encode([(None, b"more")] * 300))
        if killed:  # what is left is the HW in the checkpoint, within the log
            files = HighWatermarkCheckpoints(pair.follower.runtime, pair.follower.log_manager)
            files.load()
            pair.copy.set_high_watermark(files.stored[TP])
        pair.fetcher.add(pair.copies)
        for _ in range(12):
            pair.fetcher.round()
        assert contents(pair.original) == contents(pair.copy)

    def test_it_halts_rather_than_lose_messages(self, pair: Pair) -> None:
        """If ZooKeeper has unclean.leader.election.enable=false for the topic, the broker halts
        instead of losing messages."""
        self.longer_copy(pair)
        pair.follower.store.configs["t"] = {"unclean.leader.election.enable": "false"}
        with pytest.raises(Halted):
            pair.fetcher.round()
        assert 3 == pair.copy.log.log_end_offset

    def test_the_copy_restarts_at_a_leaders_later_start(self, pair: Pair) -> None:
        """If the leader has deleted old segments, the copy restarts at the leader's first
        offset."""
        pair.original.log.truncate_fully_and_start_at(7)
        pair.produce(b"a")
        pair.fetcher.round()
        assert (7, 7) == (pair.copy.log.log_start_offset, pair.copy.log.log_end_offset)
        pair.fetcher.round()
        original, copy = pair.logs()
        assert original == copy
