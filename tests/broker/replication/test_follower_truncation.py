"""Messages above the high watermark: a follower keeps those of the leader and cuts the others."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.replication.replica_fetcher import PARTITION_BACKOFF_S
from kafka08.errors import SessionLost
from kafka08.protocol import message_set
from kafka08.protocol.fetch import FetchPartitionResponse
from kafka08.structs import LeaderAndIsr, TopicPartition
from tests.broker.fetching_pair import (
    TP,
    Pair,
    append,
    contents,
    lose_the_connection,
    pair_with_large_messages,
)
from tests.broker.world import CONTROLLER_EPOCH


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


class TestWhatIsAboveTheHighWatermark:
    """The copy has messages above its HW from an earlier leader. The first responses of the new
    leader show whether it has the same ones."""

    def follow_anew(self, pair: Pair, *values: bytes) -> None:
        """The copy has these messages and a HW of 0."""
        entries = message_set.encode([(None, value) for value in values])
        pair.copy.append_as_follower(bytearray(entries), 0)
        pair.fetcher.add(pair.copies)

    def follow_from_the_leader(self, pair: Pair, *values: bytes) -> None:
        """Copy and leader have these sets. The copy's HW is 0, and the leader has one set more."""
        for offset, value in enumerate(values):
            pair.produce(value)
            entry = message_set.encode([(None, value)], base_offset=offset)
            pair.copy.append_as_follower(bytearray(entry), 0)
        pair.produce(b"more")
        pair.fetcher.add(pair.copies)

    @pytest.mark.parametrize("produced", [(b"a", b"b"), (b"a", b"b", b"c")])
    def test_messages_that_the_leader_has_are_kept(
        self, pair: Pair, produced: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
    ) -> None:
        """The messages that the leader also has stay. If they were cut even for a moment, they
        would be lost when this broker is killed and then elected."""
        pair.produce(*produced)
        self.follow_anew(pair, b"a", b"b")
        with caplog.at_level("INFO"):
            pair.fetcher.round()
        original, copy = pair.logs()
        assert original == copy
        assert "Truncating" not in caplog.text

    @pytest.mark.parametrize("produced", [(), (b"a",), (b"x", b"b"), (b"x", b"b", b"c")])
    def test_anything_else_is_cut(self, pair: Pair, produced: tuple[bytes, ...]) -> None:
        """Messages that the leader lacks, or that differ, are truncated. The recovery point is
        lowered before."""
        pair.produce(*produced)
        self.follow_anew(pair, b"a", b"b")
        manager = pair.follower.log_manager
        manager.logs[TP].flush()
        manager.checkpoint_recovery_points()
        recovery_points = manager.directories[0] / "recovery-point-offset-checkpoint"
        assert "t 0 2\n" in recovery_points.read_text()
        pair.fetcher.round()
        pair.fetcher.round()
        original, copy = pair.logs()
        assert original == copy
        assert "t 0 0\n" in recovery_points.read_text()

    @pytest.mark.parametrize("segment_bytes", [1 << 20, 600])
    def test_a_long_tail_is_compared_piece_by_piece(
        self, tmp_path: Path, segment_bytes: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Messages that exceed one response are compared piece by piece, also across segments, and
        also if one needs a larger fetch."""
        pair = pair_with_large_messages(tmp_path, log_segment_bytes=segment_bytes)
        values = [b"%d" % n * 100 for n in range(10)]
        values[5] = b"5" * 570
        self.follow_from_the_leader(pair, *values)
        with caplog.at_level("INFO"):
            for _ in range(12):
                pair.fetcher.round()
        original, copy = contents(pair.original), contents(pair.copy)
        assert original == copy
        assert 11 == pair.copy.log.log_end_offset
        assert "Truncating" not in caplog.text

    def test_a_difference_behind_the_first_response_is_cut_there(self, tmp_path: Path) -> None:
        """Equal messages stay, and the log is cut at the first difference. The HW stays below until
        all are compared."""
        pair = pair_with_large_messages(tmp_path)
        self.follow_from_the_leader(pair, *[b"%d" % n * 100 for n in range(8)])
        pair.copy.log.truncate_to(6)
        other = message_set.encode([(None, b"other")] * 4, base_offset=6)
        pair.copy.append_as_follower(bytearray(other), 0)
        pair.fetcher.add(pair.copies)
        pair.fetcher.round()
        assert (10, 0) == (pair.copy.log.log_end_offset, pair.copy.high_watermark)
        cut_to = []
        while pair.copy.log.log_end_offset != 9:
            pair.fetcher.round()
            cut_to.append(pair.copy.log.log_end_offset)
        original, copy = contents(pair.original), contents(pair.copy)
        assert original == copy
        assert 6 <= min(cut_to)

    @pytest.mark.parametrize("produced", [(b"a", b"b", b"x"), (b"a", b"b", b"x", b"d")])
    def test_equal_messages_before_a_difference_in_one_response_stay(
        self, pair: Pair, produced: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
    ) -> None:
        """A response with equal messages and then others cuts the log between them: the equal ones
        may be committed, and this broker may be elected the next moment."""
        pair.produce(*produced)
        self.follow_anew(pair, b"a", b"b", b"c")
        with caplog.at_level("INFO"):
            pair.fetcher.round()
        original, copy = pair.logs()
        assert original == copy
        assert "Truncating log t-0 to offset 2." in caplog.text

    def follow_above_the_high_watermark(self, pair: Pair) -> None:
        """The follower has four messages, of which it knows two to be committed."""
        pair.produce(b"a", b"b")
        pair.fetcher.round()
        pair.fetcher.round()
        pair.produce(b"c", b"d")
        pair.fetcher.round()
        assert (4, 2) == (pair.copy.log.log_end_offset, pair.copy.high_watermark)

    @pytest.mark.parametrize("others", [(), (b"x",), (b"x", b"y", b"z")])
    def test_a_leader_that_comes_back_without_its_last_messages(
        self, pair: Pair, others: tuple[bytes, ...]
    ) -> None:
        """A leader that lost power is back in the same leader epoch, and has accepted other
        messages: after the lost connection, the follower compares from its HW on again."""
        self.follow_above_the_high_watermark(pair)
        pair.original.log.truncate_to(2)
        pair.produce(*others)
        pair.while_fetching = lose_the_connection
        pair.fetcher.round()
        pair.while_fetching = lambda: None
        for _ in range(4):
            pair.fetcher.round()
        original, copy = contents(pair.original), contents(pair.copy)
        assert original == copy

    @pytest.mark.parametrize(
        ("others", "refuses"),
        [((), True), ((b"x",), True), ((b"x", b"y", b"z"), True), ((), False), ((b"x",), False)],
    )
    def test_a_leader_that_did_not_lead_for_a_while(
        self, pair: Pair, others: tuple[bytes, ...], *, refuses: bool
    ) -> None:
        """A leader that was replaced and elected again may have other messages, and this broker was
        told of neither. An error of the leader, or a log that ends before the follower's, has it
        compare from its HW on again, and does not halt it."""
        pair.follower.store.configs["t"] = {"unclean.leader.election.enable": "false"}
        self.follow_above_the_high_watermark(pair)
        if refuses:
            pair.leader.lead("t", leader=3, isr=(1, 2), replicas=(1, 2, 3))
            pair.fetcher.round()
            pair.follower.runtime.advance(0.1)
        pair.original.log.truncate_to(2)
        pair.lead()
        pair.produce(*others)
        for _ in range(4):
            pair.fetcher.round()
        original, copy = contents(pair.original), contents(pair.copy)
        assert original == copy

    def test_a_leader_that_led_no_more_for_a_while_unnoticed(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The same between two requests of the follower. Its offset may be of the former log, so
        the leader refuses it once, does not count it, and the follower compares."""
        self.follow_above_the_high_watermark(pair)
        pair.leader.lead("t", leader=3, isr=(1, 2), replicas=(1, 2, 3))
        pair.original.log.truncate_to(2)
        pair.lead()
        pair.produce(b"x", b"y", b"z")
        pair.fetcher.round()
        assert 2 >= pair.original.high_watermark
        for _ in range(4):
            pair.follower.runtime.advance(0.1)
            pair.fetcher.round()
        original, copy = contents(pair.original), contents(pair.copy)
        assert original == copy
        assert 5 == pair.original.high_watermark
        assert 1 == caplog.text.count("the follower must compare its log")

    def test_a_new_connection_is_believed_at_once(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A follower that connects after that compares anyway, and needs no refusal."""
        self.follow_above_the_high_watermark(pair)
        pair.leader.lead("t", leader=3, isr=(1, 2), replicas=(1, 2, 3))
        pair.original.log.truncate_to(2)
        pair.lead()
        pair.produce(b"x", b"y", b"z")
        pair.while_fetching = lose_the_connection
        pair.fetcher.round()
        pair.while_fetching = lambda: None
        caplog.clear()
        for _ in range(3):
            pair.fetcher.round()
        assert contents(pair.original) == contents(pair.copy)
        assert 5 == pair.original.high_watermark
        assert "refused" not in caplog.text

    def test_a_full_response_does_not_say_that_the_leaders_log_ends(self, tmp_path: Path) -> None:
        """From 0.10.1 on a response is limited as a whole, and partitions that have no room in it
        are empty: what the follower has of them is not cut."""
        pair = Pair(tmp_path, 3, api_level="0.10.2", replica_fetch_response_max_bytes=100)
        for copy in pair.copies:
            entries = message_set.encode([(None, b"a" * 200)])
            append(pair.leader, entries, copy.topic_partition)
            copy.append_as_follower(bytearray(entries), 0)
        pair.fetcher.add(pair.copies)
        lengths = []
        for _ in range(4):
            pair.fetcher.round()
            lengths.append([copy.log.log_end_offset for copy in pair.copies])
        assert [[1, 1, 1]] * 4 == lengths
        assert [1, 1, 1] == [copy.high_watermark for copy in pair.copies]

    @pytest.mark.parametrize("level", ["0.9.0", "0.10.2"])
    def test_an_empty_set_alone_cuts_nothing(
        self, tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A leader may send an empty set although it has more: the response has no room, its
        message is larger than today's max.message.bytes, or the leader is throttled. The log is cut
        only where the leader's own end says so."""
        pair = Pair(tmp_path, api_level=level)
        pair.produce(b"a", b"b")
        self.follow_anew(pair, b"a", b"b")
        exchange = pair.fetcher._exchange

        def emptied(*request: Any) -> dict[TopicPartition, FetchPartitionResponse]:
            return {
                tp: replace(response, message_set=b"")
                for tp, response in exchange(*request).items()
            }

        monkeypatch.setattr(pair.fetcher, "_exchange", emptied)
        for _ in range(3):
            pair.fetcher.round()
            assert 2 == pair.copy.log.log_end_offset
        pair.leader.log_manager.truncate_to({TP: 0})
        pair.fetcher.round()
        assert 0 == pair.copy.log.log_end_offset

    def test_nothing_is_cut_before_the_leader_has_answered(self, pair: Pair) -> None:
        """Nothing is truncated before the leader has answered: it may be gone for good, and this
        broker may lead next."""
        pair.produce(b"x")
        self.follow_anew(pair, b"a", b"b")
        pair.while_fetching = lose_the_connection
        pair.fetcher.round()
        assert 2 == pair.copy.log.log_end_offset

    def test_an_unreadable_log_delays_its_own_partition_alone(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """If the log cannot be read, the fetcher logs that and continues with other partitions.
        Nothing is truncated."""
        pair = Pair(tmp_path, partitions=2)
        broken, sound = pair.copies
        entries = message_set.encode([(None, b"a"), (None, b"b")])
        for copy in pair.copies:
            append(pair.leader, entries, copy.topic_partition)
            append(pair.leader, message_set.encode([(None, b"c")]), copy.topic_partition)
            copy.append_as_follower(entries, 1)
        [segment] = broken.log.directory.glob("*.log")
        with segment.open("r+b") as file:
            file.seek(8)
            file.write(struct.pack(">i", -16))
        pair.fetcher.add(pair.copies)
        pair.fetcher.round()
        assert [2, 3] == [broken.log.log_end_offset, sound.log.log_end_offset]
        assert f"The log of {broken.topic_partition} cannot be read" in caplog.text

    def test_damage_that_the_leader_has_too_names_log_and_offset(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Messages above the HW that are equal but have a wrong CRC stop this partition, with log
        and offset in the error."""
        self.follow_from_the_leader(pair, b"same")
        for partition in (pair.original, pair.copy):
            [segment] = partition.log.directory.glob("*.log")
            with segment.open("r+b") as file:
                file.seek(12)
                file.write(b"\0\0\0\0")
        pair.fetcher.round()
        assert "The log of [t,0] cannot be read: t-0 from offset 0 on: stored crc 0" in caplog.text


class TestALeaderThatZooKeeperDoesNotName:
    """A LeaderAndIsr request may be late. Before this broker hears of a later leader, it may have
    joined that leader's ISR, because a fetch request names no epoch."""

    def follow_with(self, pair: Pair, *values: bytes) -> None:
        """The copy has these messages above its HW, the leader has others."""
        pair.produce(b"x")
        entries = message_set.encode([(None, value) for value in values])
        pair.copy.append_as_follower(bytearray(entries), 0)
        pair.fetcher.add(pair.copies)

    @pytest.mark.parametrize(
        "state",
        [
            LeaderAndIsr(3, 1, (3, 2), 1, CONTROLLER_EPOCH),
            LeaderAndIsr(1, 2, (1, 2), 1, CONTROLLER_EPOCH),
            None,
        ],
        ids=["another leader", "a later epoch", "deleted"],
    )
    def test_nothing_is_truncated_for_it(
        self, pair: Pair, state: LeaderAndIsr | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The log stays as it is, and nothing is appended, until the controller's next request."""
        self.follow_with(pair, b"a", b"b")
        told = pair.follower.store.states.pop(TP)
        if state is not None:
            pair.follower.store.states[TP] = state
        pair.fetcher.round()
        assert 2 == pair.copy.log.log_end_offset
        assert "it truncates nothing until the controller tells it" in caplog.text
        pair.follower.store.states[TP] = told
        pair.follower.runtime.advance(1)
        pair.fetcher.round()
        original, copy = contents(pair.original), contents(pair.copy)
        assert original == copy

    @pytest.mark.parametrize("produced", [0, 3], ids=["shorter", "starts later"])
    def test_an_offset_that_it_lacks_resets_nothing(
        self, pair: Pair, produced: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A leader with a shorter log does not halt this broker, and one that starts later does not
        empty the log, if ZooKeeper names another leader."""
        pair.produce(b"a")
        pair.fetcher.round()
        pair.fetcher.round()
        assert (1, 1) == (pair.copy.log.log_end_offset, pair.copy.high_watermark)
        pair.original.log.truncate_fully_and_start_at(produced)
        pair.follower.store.states[TP] = LeaderAndIsr(3, 1, (3, 2), 1, CONTROLLER_EPOCH)
        pair.fetcher.round()
        assert (0, 1) == (pair.copy.log.log_start_offset, pair.copy.log.log_end_offset)
        assert "ZooKeeper has leader 3 in leader epoch 1" in caplog.text

    def test_without_zookeeper_nothing_is_truncated(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A broker that cannot ask keeps its messages, and truncates when it can."""
        self.follow_with(pair, b"a", b"b")

        def fail() -> None:
            raise SessionLost("no ZooKeeper")

        with monkeypatch.context() as patch:
            patch.setattr(pair.follower.store, "catch_up", fail)
            pair.fetcher.round()
        assert 2 == pair.copy.log.log_end_offset
        pair.follower.runtime.advance(1)
        pair.fetcher.round()
        assert contents(pair.original) == contents(pair.copy)

    def test_what_is_not_followed_any_more_stays(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A partition that gets another leader while ZooKeeper is asked is not truncated."""
        self.follow_with(pair, b"a", b"b")
        monkeypatch.setattr(pair.follower.store, "catch_up", lambda: pair.fetcher.remove([TP]))
        pair.fetcher.round()
        assert 2 == pair.copy.log.log_end_offset

    def test_zookeeper_is_asked_again_after_a_pause(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While nothing changes it is asked twice a second; the controller's next request ends the
        pause at once."""
        self.follow_with(pair, b"a", b"b")
        told = pair.follower.store.states[TP]
        pair.follower.store.states[TP] = LeaderAndIsr(3, 1, (3, 2), 1, CONTROLLER_EPOCH)
        runtime, asked_at = pair.follower.runtime, list[float]()

        def catch_up() -> None:
            asked_at.append(runtime.monotonic())

        monkeypatch.setattr(pair.follower.store, "catch_up", catch_up)
        end = runtime.monotonic() + 1
        while runtime.monotonic() < end:
            pair.fetcher.round()
            runtime.advance(PARTITION_BACKOFF_S)
        assert 1 <= len(asked_at) <= 3
        assert 2 == pair.copy.log.log_end_offset
        pair.follower.store.states[TP] = told
        pair.fetcher.add(pair.copies)
        pair.fetcher.round()
        assert contents(pair.original) == contents(pair.copy)
