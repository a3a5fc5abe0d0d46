"""The state of a partition: epochs, ISR, HW (kafka.cluster.Partition 0.8.2.2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafka08.broker.replica.partition import Partition
from kafka08.broker.replica.traffic import Traffic, traffic_of
from kafka08.errors import (
    InvalidMessage,
    MessageSizeTooLarge,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderForPartition,
    OffsetOutOfRange,
    UnknownError,
)
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol import message_set
from kafka08.structs import LeaderAndIsr, TopicPartition

ME = 1
NOW = 0.0


def leading(
    directory: Path, isr: tuple[int, ...] = (1, 2, 3), min_insync_replicas: int = 1
) -> Partition:
    partition = Partition(TopicPartition("t", 0), ME)
    config = LogConfig(segment_index_bytes=4096, min_insync_replicas=min_insync_replicas)
    partition.attach_log(Log(directory / "t-0", config), 0)
    partition.make_leader(LeaderAndIsr(ME, 0, isr, 0, 1), (1, 2, 3), NOW)
    return partition


def append(partition: Partition, count: int, required_acks: int = 1) -> None:
    messages = [(None, b"m%d" % number) for number in range(count)]
    partition.append(bytearray(message_set.encode(messages)), required_acks)


@pytest.mark.parametrize(
    ("error", "rejected", "failed"),
    [
        (MessageSizeTooLarge(), 100, 0),
        (InvalidMessage(), 0, 0),
        (NotLeaderForPartition(), 0, 0),
        (NotEnoughReplicas(), 0, 1),
        (ZeroDivisionError(), 0, 1),
    ],
)
def test_a_refused_set_has_failed_unless_its_client_is_to_blame(
    tmp_path: Path, error: Exception, rejected: int, failed: int
) -> None:
    """The counts equal those of 0.10.2.2; the bytes of a set with too large a message count."""
    partition = leading(tmp_path)
    partition.count_refused(error, 100)
    counted = traffic_of([partition])
    expected = Traffic(bytes_rejected=rejected, failed_produce_requests=failed, produce_requests=1)
    assert expected == counted


def test_traffic_of_several_partitions_is_their_sum(tmp_path: Path) -> None:
    """The sum of no partitions is zero."""
    partitions = [leading(tmp_path / name) for name in "ab"]
    for partition in partitions:
        append(partition, 3)
    partitions[0].count_unread(OffsetOutOfRange())
    partitions[1].count_unread(UnknownError())
    found = traffic_of(partitions)
    assert (6, 2, 2, 1) == (
        found.messages_in,
        found.produce_requests,
        found.fetch_requests,
        found.failed_fetch_requests,
    )
    assert Traffic() == traffic_of([])


def test_the_high_watermark_is_the_least_log_end_of_the_isr(tmp_path: Path) -> None:
    """The HW waits for the slowest in-sync replica, and never falls."""
    partition = leading(tmp_path)
    append(partition, 10)
    assert 0 == partition.high_watermark
    assert partition.record_follower_fetch(2, 10, now=1.0) is False
    assert partition.record_follower_fetch(3, 4, now=1.0) is True
    assert 4 == partition.high_watermark
    assert partition.record_follower_fetch(3, 2, now=2.0) is False
    assert 4 == partition.high_watermark


def test_a_leader_alone_in_its_isr_is_in_sync_with_itself(tmp_path: Path) -> None:
    """The HW of a leader that is alone in its ISR is its log end, from the beginning."""
    partition = leading(tmp_path, isr=(1,))
    append(partition, 3)
    assert 3 == partition.high_watermark


def test_followers_are_unknown_to_a_new_leader(tmp_path: Path) -> None:
    """The log ends of followers under an earlier epoch do not count."""
    partition = leading(tmp_path)
    append(partition, 5)
    for broker_id in (2, 3):
        partition.record_follower_fetch(broker_id, 5, now=1.0)
    partition.make_leader(LeaderAndIsr(ME, 1, (1, 2), 1, 1), (1, 2, 3), NOW)
    append(partition, 1)
    assert 5 == partition.high_watermark


def test_a_broker_that_is_no_replica_is_refused(tmp_path: Path) -> None:
    """The error is NotAssignedReplica of the JVM, which has no code of its own."""
    with pytest.raises(UnknownError, match="not recognized to be one of the assigned replicas"):
        leading(tmp_path).check_replica(9, 0)


def test_acks_minus_one_needs_the_topics_minimum_before_and_after(tmp_path: Path) -> None:
    """acks of exactly -1 gets 19 before the append; any negative number gets 20 after it."""
    partition = leading(tmp_path, isr=(1,), min_insync_replicas=2)
    with pytest.raises(NotEnoughReplicas):
        append(partition, 1, required_acks=-1)
    assert partition.log is not None
    assert 0 == partition.log.log_end_offset
    append(partition, 1, required_acks=-2)
    with pytest.raises(NotEnoughReplicasAfterAppend):
        partition.acknowledged(1, -2)


def test_acks_above_one_count_in_sync_replicas_and_the_leader(tmp_path: Path) -> None:
    """With three replicas acks 2 needs one follower; acks 4 is never reached."""
    partition = leading(tmp_path)
    append(partition, 1)
    assert not partition.acknowledged(1, 2)
    partition.record_follower_fetch(2, 1, now=1.0)
    assert partition.acknowledged(1, 2)
    partition.record_follower_fetch(3, 1, now=1.0)
    assert not partition.acknowledged(1, 4)


class TestTheEndOfAReassignment:
    """The leader gets the new assignment while the ISR still has the replicas to be removed."""

    @pytest.fixture
    def partition(self, tmp_path: Path) -> Partition:
        """A partition whose ISR has broker 3, which is no longer assigned."""
        partition = leading(tmp_path)
        append(partition, 1)
        partition.make_leader(LeaderAndIsr(ME, 1, (1, 2, 3), 1, 1), (1, 2), NOW)
        return partition

    def test_a_produce_with_acks_above_one_waits_on(self, partition: Partition) -> None:
        """A Produce with acks above 1 counts the replicas that are in sync at its end."""
        assert not partition.acknowledged(1, 2)
        partition.record_follower_fetch(2, 1, NOW)
        assert partition.acknowledged(1, 2)

    def test_the_high_watermark_waits_for_all_of_the_isr(self, partition: Partition) -> None:
        """While broker 3 is in ZooKeeper's ISR it may be elected, so the HW waits for it."""
        assert partition.record_follower_fetch(2, 1, NOW) is False
        assert 0 == partition.high_watermark

    def test_a_removed_replica_is_not_recorded(self, partition: Partition) -> None:
        """A fetch of a broker that is not assigned is not recorded, as in 0.8.2.2, so it cannot
        rejoin the ISR (KAFKA-1097)."""
        with pytest.raises(UnknownError, match="not recognized"):
            partition.check_replica(3, 1)


def test_a_follower_refuses_requests_for_a_leader(tmp_path: Path) -> None:
    """A follower refuses requests for a leader. make_follower returns whether the leader changed,
    because then the log must be truncated."""
    partition = leading(tmp_path)
    assert partition.make_follower(LeaderAndIsr(2, 1, (2,), 1, 1), (1, 2), NOW) is True
    assert partition.make_follower(LeaderAndIsr(2, 2, (2,), 2, 1), (1, 2), NOW) is False
    with pytest.raises(NotLeaderForPartition):
        append(partition, 1)
    with pytest.raises(NotLeaderForPartition):
        partition.acknowledged(0, -1)
    assert () == partition.isr


class TestOffsetsOverOlderConnections:
    """A follower may have what the log had before this broker stopped leading, and lost since."""

    def doubts(self, partition: Partition, connection: int) -> bool:
        try:
            partition.check_connection(connection)
        except NotLeaderForPartition:
            return True
        return False

    def follow(self, partition: Partition) -> None:
        epoch = partition.leader_epoch + 1
        partition.make_follower(LeaderAndIsr(2, epoch, (2, 3), 0, 1), (1, 2, 3), NOW)

    def lead(self, partition: Partition, epochs: int = 1) -> None:
        epoch = partition.leader_epoch + epochs
        partition.make_leader(LeaderAndIsr(ME, epoch, (1, 2), 0, 1), (1, 2, 3), NOW)

    @pytest.mark.parametrize("follows", [True, False])
    def test_they_are_doubted_until_an_error(self, tmp_path: Path, *, follows: bool) -> None:
        """It does not matter how the leadership ended. An error over the connection makes the
        follower compare; one over another connection does not."""
        partition, older, other = leading(tmp_path), next(NUMBERS), next(NUMBERS)
        if follows:
            self.follow(partition)
        else:
            partition.end_leadership()
        newer = next(NUMBERS)
        partition.tell(other)
        self.lead(partition)
        found = {name: self.doubts(partition, name) for name in (older, other, newer)}
        assert {older: True, other: False, newer: False} == found
        partition.tell(older)
        assert not self.doubts(partition, older)

    def test_an_error_counts_for_one_leadership(self, tmp_path: Path) -> None:
        """After the next one each connection is older."""
        partition, older = leading(tmp_path), next(NUMBERS)
        for _ in range(2):
            self.follow(partition)
            self.lead(partition)
            assert self.doubts(partition, older)
            partition.tell(older)

    @pytest.mark.parametrize(("epochs", "doubted"), [(1, False), (2, True)])
    def test_in_an_epoch_that_was_missed_another_broker_may_have_led(
        self, tmp_path: Path, epochs: int, *, doubted: bool
    ) -> None:
        """If the same leader is elected again, nothing ends."""
        partition, older = leading(tmp_path), next(NUMBERS)
        self.lead(partition, epochs)
        assert doubted == self.doubts(partition, older)

    def test_a_first_leadership_doubts_nothing(self, tmp_path: Path) -> None:
        """Nobody has an offset of an earlier one: a change of leaders costs no refusals."""
        older = next(NUMBERS)
        partition = Partition(TopicPartition("t", 0), ME)
        partition.attach_log(Log(tmp_path / "t-0", LogConfig(segment_index_bytes=4096)), 0)
        self.follow(partition)
        self.lead(partition, epochs=2)
        assert not self.doubts(partition, older)


def test_a_stale_epoch_is_a_bug_here(tmp_path: Path) -> None:
    """The replica manager filters stale epochs, so here one is an assertion error."""
    partition = leading(tmp_path)
    with pytest.raises(AssertionError, match="stale"):
        partition.make_leader(LeaderAndIsr(ME, 0, (1,), 0, 1), (1,), NOW)


def test_the_checkpointed_high_watermark_stays_within_the_log(tmp_path: Path) -> None:
    """After a crash the log may be shorter than the checkpointed HW."""
    partition = Partition(TopicPartition("t", 0), ME)
    log = Log(tmp_path / "t-0", LogConfig(segment_index_bytes=4096))
    log.append(bytearray(message_set.encode([(None, b"a"), (None, b"b")])))
    partition.attach_log(log, 7)
    assert 2 == partition.high_watermark


class TestJoining:
    """updateLeaderHWAndMaybeExpandIsr: three conditions, and one write at a time."""

    def test_1_not_in_the_isr_yet(self, tmp_path: Path) -> None:
        """A member of the ISR does not join again."""
        partition = leading(tmp_path, isr=(1, 2))
        partition.record_follower_fetch(2, 0, NOW)
        assert not partition.joins_isr(2)

    def test_2_assigned(self, tmp_path: Path) -> None:
        """A fetch of a broker that is no replica is not even recorded (KAFKA-1097)."""
        with pytest.raises(UnknownError, match="not recognized"):
            leading(tmp_path).check_replica(9, 0)

    def test_3_its_leo_has_reached_the_hw(self, tmp_path: Path) -> None:
        """The follower's LEO must reach the HW, not the leader's LEO."""
        partition = leading(tmp_path, isr=(1, 2))
        append(partition, 5)
        partition.record_follower_fetch(2, 3, NOW)
        partition.record_follower_fetch(3, 2, NOW)
        assert not partition.joins_isr(3)
        partition.record_follower_fetch(3, 3, NOW)
        assert partition.joins_isr(3)

    def test_4_its_leo_has_reached_the_start_of_the_epoch(self, tmp_path: Path) -> None:
        """The HW that a new leader knows may be old: all of its messages may be committed, so a
        follower needs them (KAFKA-7128; 0.8.2.2 takes one that has reached the HW)."""
        partition = leading(tmp_path, isr=(1, 2))
        append(partition, 5)
        partition.record_follower_fetch(2, 3, NOW)
        state = LeaderAndIsr(ME, partition.leader_epoch + 1, (1, 2), 1, 3)
        partition.make_leader(state, partition.replicas, NOW)
        assert 3 == partition.high_watermark
        partition.record_follower_fetch(3, 4, NOW)
        assert not partition.joins_isr(3)
        partition.record_follower_fetch(3, 5, NOW)
        assert partition.joins_isr(3)

    def test_the_hw_waits_for_a_joining_follower(self, tmp_path: Path) -> None:
        """The HW waits for a follower whose join is being written, since ZooKeeper may have it
        already. It counts as in sync when the write is known."""
        partition = leading(tmp_path, isr=(1,))
        append(partition, 2)
        partition.record_follower_fetch(3, 2, NOW)
        change = partition.begin_isr_change((1, 3))
        assert not partition.joins_isr(2)
        append(partition, 1)
        assert 2 == partition.high_watermark
        assert (1,) == partition.isr
        assert not partition.end_isr_change(change, replace(change, zk_version=7))
        assert {1, 3} == set(partition.isr)
        assert (7, 2) == (partition.zk_version, partition.high_watermark)
        assert partition.record_follower_fetch(3, 3, NOW)

    def test_the_controllers_word_ends_a_change(self, tmp_path: Path) -> None:
        """After a newer LeaderAndIsr the result of an older write is ignored."""
        partition = leading(tmp_path, isr=(1,))
        change = partition.begin_isr_change((1, 3))
        partition.make_leader(LeaderAndIsr(ME, 1, (1, 2), 5, 1), (1, 2), NOW)
        assert not partition.end_isr_change(change, replace(change, zk_version=7))
        assert ((1, 2), (1, 2), 5) == (partition.isr, partition.maximal_isr, partition.zk_version)


class TestLeaving:
    """getOutOfSyncReplicas with 10 s and 4 messages."""

    def test_1_stuck_followers(self, tmp_path: Path) -> None:
        """A follower without a fetch for longer than the limit leaves. One fetch without progress
        is enough to stay."""
        partition = leading(tmp_path)
        append(partition, 1)
        partition.record_follower_fetch(2, 0, now=5.0)
        assert () == partition.out_of_sync_replicas(10.0, 10.0, 4)
        assert (3,) == partition.out_of_sync_replicas(10.5, 10.0, 4)
        assert (2, 3) == partition.out_of_sync_replicas(15.5, 10.0, 4)

    def test_2_slow_followers(self, tmp_path: Path) -> None:
        """A follower that is more than this number of messages behind leaves, if its position is
        known."""
        partition = leading(tmp_path)
        append(partition, 9)
        partition.record_follower_fetch(2, 5, now=1.0)
        assert () == partition.out_of_sync_replicas(1.0, 10.0, 4)
        append(partition, 1)
        assert (2,) == partition.out_of_sync_replicas(1.0, 10.0, 4)

    def test_the_hw_waits_for_a_leaving_follower(self, tmp_path: Path) -> None:
        """The HW waits for a follower that is being removed, because the controller may still elect
        it. When the write is done, the HW rises."""
        partition = leading(tmp_path, isr=(1, 2))
        append(partition, 3)
        change = partition.begin_isr_change((1,))
        append(partition, 1)
        assert 0 == partition.high_watermark
        assert partition.end_isr_change(change, replace(change, zk_version=1))
        assert ((1,), 4) == (partition.isr, partition.high_watermark)


def test_a_follower_takes_the_leaders_high_watermark_as_far_as_its_log_goes(
    tmp_path: Path,
) -> None:
    """The follower's HW is min(LEO, HW of the response): a message may arrive before it is known to
    be committed."""
    partition = leading(tmp_path)
    partition.make_follower(LeaderAndIsr(2, 1, (1, 2), 1, 1), (1, 2), NOW)
    two = message_set.encode([(None, b"a"), (None, b"b")])
    partition.append_as_follower(two, 9)
    assert 2 == partition.high_watermark
    partition.append_as_follower(b"", 1)
    assert 1 == partition.high_watermark


class TestTheBrokersMinimum:
    """The minimum of acks=-1 under the safe profile, for a topic without an override."""

    @pytest.fixture
    def partition(self, tmp_path: Path) -> Partition:
        partition = Partition(TopicPartition("t", 0), ME, least_in_sync=2)
        partition.attach_log(Log(tmp_path / "t-0", LogConfig(segment_index_bytes=4096)), 0)
        return partition

    def lead(
        self, partition: Partition, epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...]
    ) -> int:
        partition.make_leader(LeaderAndIsr(ME, epoch, isr, epoch, 1), replicas, NOW)
        return partition.min_in_sync()

    @pytest.mark.parametrize(("replicas", "minimum"), [((1,), 1), ((1, 2), 2), ((1, 2, 3), 2)])
    def test_it_counts_as_far_as_there_are_replicas(
        self, partition: Partition, replicas: tuple[int, ...], minimum: int
    ) -> None:
        """A topic with one replica accepts acks=-1."""
        assert minimum == self.lead(partition, 0, (1,), replicas)

    def test_the_topics_own_word_is_stronger(self, partition: Partition) -> None:
        """A topic's own min.insync.replicas of 1 applies."""
        self.lead(partition, 0, (1,), (1, 2))
        with pytest.raises(NotEnoughReplicas):
            append(partition, 1, required_acks=-1)
        assert partition.log is not None
        partition.log.config = LogConfig(min_insync_replicas=1)
        append(partition, 1, required_acks=-1)

    def test_a_replica_that_is_added_counts_once_it_has_been_in_sync(
        self, partition: Partition
    ) -> None:
        """While a topic of one replica is moved, acks=-1 works: the new replica counts once it has
        been in sync."""
        self.lead(partition, 0, (1,), (1,))
        assert 1 == self.lead(partition, 1, (1,), (2, 1))
        append(partition, 1, required_acks=-1)
        joined = partition.begin_isr_change((1, 2))
        partition.end_isr_change(joined, joined)
        assert 2 == partition.min_in_sync()
        left = partition.begin_isr_change((1,))
        partition.end_isr_change(left, left)
        assert 2 == partition.min_in_sync()

    def test_it_falls_with_the_assignment(self, partition: Partition) -> None:
        """The minimum falls with the assignment, so a topic may be moved to one replica."""
        self.lead(partition, 0, (1, 2), (1, 2))
        assert 1 == self.lead(partition, 1, (1,), (1,))


class TestLeavingByTime:
    """Replica.updateLogReadResult and getOutOfSyncReplicas of 0.10.2.2, with 10 s."""

    def test_a_follower_that_fetches_and_never_catches_up_leaves(self, tmp_path: Path) -> None:
        """A follower that fetches and never catches up leaves, however few messages it lacks. 0.8.2
        keeps it."""
        partition = leading(tmp_path)
        append(partition, 5)
        for now in range(1, 11):
            partition.record_follower_fetch(2, 1, now=float(now))
            partition.record_follower_fetch(3, 5, now=float(now))
        assert () == partition.out_of_sync_replicas(10.0, 10.0, None)
        assert (2,) == partition.out_of_sync_replicas(10.5, 10.0, None)

    def test_a_follower_has_caught_up_at_the_leo_of_its_last_fetch(self, tmp_path: Path) -> None:
        """A follower counts as caught up when it reaches the LEO of its previous fetch. Otherwise a
        busy partition would lose followers that are one round behind."""
        partition = leading(tmp_path)
        for now in range(1, 20):
            end = partition.leader_log().log_end_offset
            append(partition, 1)
            partition.record_follower_fetch(2, end, now=float(now))
            partition.record_follower_fetch(3, end, now=float(now))
        assert () == partition.out_of_sync_replicas(27.0, 10.0, None)
        assert (2, 3) == partition.out_of_sync_replicas(28.5, 10.0, None)
