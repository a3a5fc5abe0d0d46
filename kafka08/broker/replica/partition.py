"""Partition: the state of one partition on this broker: role, epochs, ISR, positions.

    unknown ── make_leader ──▶ leading ── make_follower ──▶ following ── make_leader ──▶ …

Everything here is in memory or in the local log, and nothing switches, so a caller's checks stay
true until it yields to the hub. The ReplicaManager does the rest: ZooKeeper, completing delayed
operations and writing checkpoints. Source: kafka.cluster.Partition 0.8.2.2.

A change of the ISR must be in ZooKeeper before it is valid, and the write takes a while:

    begin_isr_change ── the write ──▶ end_isr_change

In between the HW waits for every replica that is in the old ISR or in the new one, because the
controller may elect any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kafka08.broker.replica.replica_state import UNKNOWN_LOG_END, FollowerReplica, LeaderState
from kafka08.config import LONG_MAX
from kafka08.errors import (
    FileRefused,
    InvalidMessage,
    InvalidTimestamp,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderForPartition,
    OffsetOutOfRange,
    ReplicaNotAvailable,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol.message_set import MAX_UNPACKED_BYTES
from kafka08.protocol.types import Buffer
from kafka08.structs import INTERNAL_TOPICS, NO_LEADER, LeaderAndIsr, TopicPartition

if TYPE_CHECKING:
    from kafka08.log.log import Log
    from kafka08.log.slices import AppendInfo, LogSlice

EXPECTED_OF_PRODUCE: Final = (
    UnknownTopicOrPartition,
    NotLeaderForPartition,
    MessageSizeTooLarge,
    MessageSetSizeTooLarge,
    InvalidMessage,
    InvalidTimestamp,
)
"""With these errors a Produce is not a failed one, unless it is a FileRefused. 0.8.2.2 counts the
last four as failed, and expects NotEnoughReplicas. Source: ReplicaManager.appendToLocalLog
0.10.2.2."""
EXPECTED_OF_FETCH: Final = (
    UnknownTopicOrPartition,
    NotLeaderForPartition,
    ReplicaNotAvailable,
    OffsetOutOfRange,
)
"""The same of a Fetch. Source: ReplicaManager.readFromLocalLog 0.10.2.2."""


class Partition(LeaderState):
    """A partition that is assigned to this broker. The rules of `replica_state` change the fields
    of LeaderState too.

    leader            broker id of the known leader; NO_LEADER before the first request
    leader_epoch      of the last accepted change; -1 at first. A change must have a higher one
    controller_epoch  of the controller that decided it; for conditional ISR writes
    zk_version        last known version of the state znode; the condition of ISR writes
    least_in_sync     in-sync replicas that acks=-1 needs in a topic without min.insync.replicas,
                      but at most the number of replicas
    reached_in_sync   what acks=-1 needs now: min(least_in_sync, replicas) at first, and never more;
                      after replicas were added, it rises only as the ISR grows
    replicas          assigned replicas (AR) as sent by the controller
    isr               in-sync replicas while leading, as in ZooKeeper; else ()
    maximal_isr       `isr`, and the replicas that a pending change adds: the HW waits for them all
    isr_change        the state with the new ISR that is being written; None without a change
    followers         broker id → FollowerReplica, for the other replicas that are assigned or in
                      the ISR. At the end of a reassignment some are in the ISR only
    epoch_start       LEO when this broker began to lead in its leader epoch
    led_until         the number of a connection accepted when this broker last stopped leading; 0
                      if it never did. See `doubts`
    told              numbers of older connections over which followers got an error since then
    log               the local log; None only until this broker first leads or follows
    high_watermark    first offset a consumer may not see; 0 <= HW <= LEO, and only rises while
                      leading
    messages_in, bytes_in     appended as the leader since this broker started: see `count_in`
    bytes_out                 sent to consumers since then
    produce_requests          its sets in Produce requests, appended or refused, since then
    fetch_requests            its responses to Fetch requests of consumers and followers
    failed_produce_requests, failed_fetch_requests     those of them with an error that is neither
                              the client's nor a change of leaders: see EXPECTED_OF_PRODUCE
    bytes_rejected            of sets with a message that is too large
    is_queued                 True: appends wait for a native job, and later ones behind them
    high_watermark_max        first offset that an fsync, under way or refused, has not brought to
                              the disk; the HW waits there
    """

    __slots__ = (
        "broker_id",
        "bytes_rejected",
        "controller_epoch",
        "epoch_start",
        "failed_fetch_requests",
        "failed_produce_requests",
        "isr_change",
        "leader",
        "least_in_sync",
        "led_until",
        "replicas",
        "told",
        "zk_version",
    )

    topic_partition: TopicPartition

    def __init__(
        self, topic_partition: TopicPartition, broker_id: int, least_in_sync: int = 1
    ) -> None:
        self.topic_partition = topic_partition
        self.broker_id = broker_id
        self.least_in_sync = least_in_sync
        self.reached_in_sync = 0
        self.is_internal = topic_partition.topic in INTERNAL_TOPICS
        self.leader = NO_LEADER
        self.is_leader = False
        self.leader_epoch = -1
        self.controller_epoch = 0
        self.zk_version = 0
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.maximal_isr: tuple[int, ...] = ()
        self.isr_change: LeaderAndIsr | None = None
        self.followers = {}
        self.log: Log | None = None
        self.epoch_start = 0
        self.led_until = 0
        self.told: tuple[int, ...] = ()
        self.high_watermark = 0
        self.messages_in = self.bytes_in = self.bytes_out = self.bytes_rejected = 0
        self.produce_requests = self.failed_produce_requests = 0
        self.fetch_requests = self.failed_fetch_requests = 0
        self.is_queued = False
        self.high_watermark_max = LONG_MAX

    def __str__(self) -> str:
        return (
            f"[Partition {self.topic_partition} on broker {self.broker_id}] leader {self.leader} "
            f"epoch {self.leader_epoch} isr {list(self.isr)} replicas {list(self.replicas)} "
            f"HW {self.high_watermark} LEO {self.log.log_end_offset if self.log else '-'}"
        )

    # Leadership

    def attach_log(self, log: Log, checkpointed_high_watermark: int) -> None:
        """Set the local log; the HW starts at its checkpoint, within the log."""
        assert self.log is None, f"{self} has its log already"
        self.log = log
        lowest = log.log_start_offset  # a lost checkpoint must not ask for deleted messages
        self.set_high_watermark(max(checkpointed_high_watermark, lowest))

    def make_leader(self, state: LeaderAndIsr, replicas: Iterable[int], now: float) -> bool:
        """Become the leader. Followers' positions are unknown until they fetch. True if this raised
        the HW (an ISR of one is in sync with itself). Messages that this broker appended as a
        follower are on disk before that, if flush.messages requires it. FileRefused, with nothing
        changed."""
        assert self.log is not None, f"{self} leads without a log"
        flush = self.log.owed_flush()
        if flush is not None:
            flush.run()
        if not self.is_queued:  # else an fsync is under way, which sets it
            self.high_watermark_max = LONG_MAX
        if self.is_leader and state.leader_epoch > self.leader_epoch + 1:
            self._note_end_of_leadership()  # In the epoch between, another broker may have led.
        self._apply(state, replicas, now)
        self.leader = self.broker_id
        self.is_leader = True
        self.epoch_start = self.log.log_end_offset
        self._take_isr(state.isr)
        return self.maybe_raise_high_watermark()

    def make_follower(self, state: LeaderAndIsr, replicas: Iterable[int], now: float) -> bool:
        """Become a follower of `state.leader`. True if that is another leader than before, so that
        the log must be truncated to the HW and fetched again from there."""
        self._apply(state, replicas, now)
        if self.is_leader:
            self._note_end_of_leadership()
        self.is_leader = False
        self.isr = self.maximal_isr = ()
        changed = self.leader != state.leader
        self.leader = state.leader
        return changed

    def stop_following_leader(self) -> None:
        """Copy from no leader until the next LeaderAndIsr request, even if that names the leader
        that was followed last. Does nothing if this broker leads."""
        if not self.is_leader:
            self.leader = NO_LEADER

    def end_leadership(self) -> None:
        """Stop leading, and follow no broker. The epoch stays, so that the LeaderAndIsr request of
        the next leader still has a higher one."""
        if self.is_leader:
            self._note_end_of_leadership()
        self.is_leader = False
        self.leader = NO_LEADER
        self.isr = self.maximal_isr = ()

    def _note_end_of_leadership(self) -> None:
        self.led_until = next(NUMBERS)
        self.told = ()

    def _apply(self, state: LeaderAndIsr, replicas: Iterable[int], now: float) -> None:
        assert state.leader_epoch > self.leader_epoch, f"{self} got a stale {state}"
        self.leader_epoch = state.leader_epoch
        self.controller_epoch = state.controller_epoch
        self.zk_version = state.zk_version
        self.isr_change = None
        is_new = not self.replicas
        self.replicas = tuple(replicas)
        if is_new or self._most_in_sync < self.reached_in_sync:
            self.reached_in_sync = self._most_in_sync
        self.followers = {
            broker_id: FollowerReplica(broker_id, now)
            for broker_id in {*self.replicas, *state.isr}
            if broker_id != self.broker_id
        }

    def _take_isr(self, isr: tuple[int, ...]) -> None:
        self.isr = self.maximal_isr = isr
        self.reached_in_sync = max(self.reached_in_sync, min(self._most_in_sync, len(isr)))

    @property
    def _most_in_sync(self) -> int:
        return min(self.least_in_sync, len(self.replicas))

    def leader_log(self) -> Log:
        """The log, if this broker leads; NotLeaderForPartition otherwise."""
        if not self.is_leader:
            raise NotLeaderForPartition(
                f"Leader not local for partition {self.topic_partition} on broker {self.broker_id}"
            )
        assert self.log is not None
        return self.log

    # Writing

    def check_append(self, required_acks: int) -> Log:
        """The log to append to. NotLeaderForPartition, or NotEnoughReplicas when acks are -1 and
        the ISR is smaller than the topic's min.insync.replicas."""
        log = self.leader_log()
        # 0.8: only exactly -1 is refused here; acks below -1 are appended and then get error 20.
        if required_acks == -1 and not self.has_enough_in_sync():
            raise NotEnoughReplicas(
                f"Number of insync replicas for partition {self.topic_partition} is "
                f"{len(self.isr)}, below required minimum {self.min_in_sync()}"
            )
        return log

    def append(
        self,
        message_set: Buffer,
        required_acks: int,
        max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
    ) -> AppendInfo:
        """Append as the leader, synchronously: validate, number in place, one write.
        `max_unpacked_bytes` as for Log.append. Raises what check_append and Log.append raise. The
        caller then completes delayed operations."""
        log = self.check_append(required_acks)
        epoch = self.leader_epoch
        info = log.append(message_set, max_unpacked_bytes=max_unpacked_bytes, leader_epoch=epoch)
        self.count_in(info.count, len(message_set))
        self.maybe_raise_high_watermark()
        return info

    @property
    def owes_flushes(self) -> bool:
        """Whether its appends may make an fsync by flush.messages due."""
        return self.log is not None and self.log.config.flush_messages < LONG_MAX

    def append_own(self, append_own: Callable[[Log, int], AppendInfo]) -> AppendInfo:
        """Append what the broker itself makes, as `append` with acks -1; the caller handles
        flush.messages."""
        info = append_own(self.check_append(-1), self.leader_epoch)
        self.count_in(info.count, info.size)
        self.maybe_raise_high_watermark()
        return info

    def count_refused(self, error: Exception, size: int) -> None:
        """Count a set of `size` bytes, as the producer sent it, that was not appended."""
        self.produce_requests += 1
        if isinstance(error, MessageSizeTooLarge):
            self.bytes_rejected += size
        if isinstance(error, FileRefused) or not isinstance(error, EXPECTED_OF_PRODUCE):
            self.failed_produce_requests += 1

    def count_unread(self, error: Exception) -> None:
        """A fetch got an error instead of a set."""
        self.fetch_requests += 1
        if isinstance(error, FileRefused) or not isinstance(error, EXPECTED_OF_FETCH):
            self.failed_fetch_requests += 1

    def acknowledged(self, required_offset: int, required_acks: int) -> bool:
        """Whether enough replicas have everything before `required_offset`: all in-sync ones if
        acks are negative, else `required_acks` of them, including the leader.
        NotLeaderForPartition; NotEnoughReplicasAfterAppend if the ISR has become smaller than
        min.insync.replicas."""
        if not self.is_leader:
            self.leader_log()  # which raises
        if required_acks < 0:
            if self.high_watermark < required_offset:
                return False
            if not self.has_enough_in_sync():
                raise NotEnoughReplicasAfterAppend(str(self.topic_partition))
            return True
        return required_acks <= sum(
            1
            for broker_id in self.isr
            if broker_id == self.broker_id
            or self.followers[broker_id].log_end_offset >= required_offset
        )

    def check_replica(self, broker_id: int, offset: int) -> None:
        """UnknownError for a broker that is not an assigned replica (NotAssignedReplica of the JVM,
        which has no code), and fetches at `offset`."""
        if broker_id not in self.replicas or broker_id == self.broker_id:
            raise UnknownError(
                f"Leader {self.broker_id} failed to record follower {broker_id}'s position "
                f"{offset} since the replica is not recognized to be one of the assigned replicas "
                f"{','.join(map(str, self.replicas))} for partition {self.topic_partition}"
            )

    def doubts(self, connection: int) -> bool:
        """Whether a follower's offset over this connection may be from before this broker last
        stopped leading: the follower may have messages up to there that this log has lost since.
        Over a connection accepted later, or after an error, one of ours has compared its log."""
        return connection < self.led_until and connection not in self.told

    def check_connection(self, connection: int) -> None:
        """NotLeaderForPartition if this broker `doubts` offsets over this connection."""
        if self.doubts(connection):
            raise NotLeaderForPartition(
                f"Broker {self.broker_id} did not lead partition {self.topic_partition} for a "
                "while; the follower must compare its log"
            )

    def tell(self, connection: int) -> None:
        """A response over this connection has an error for the partition."""
        if self.doubts(connection):
            self.told = (*self.told, connection)

    # The in-sync replicas

    def joins_isr(self, broker_id: int) -> bool:
        """Whether a follower that has just fetched must enter the ISR: this broker leads, no change
        is pending, the follower is not in it, and its LEO has reached the HW and `epoch_start`."""
        # 0.8: the HW, not the leader's LEO, so a follower joins before it has the newest messages.
        # A new leader's HW may be old, so the messages before its epoch may be committed; 0.8.2.2
        # takes followers without them (KAFKA-7128).
        return (
            self.is_leader
            and self.isr_change is None
            and broker_id not in self.isr
            and self.followers[broker_id].log_end_offset
            >= max(self.high_watermark, self.epoch_start)
        )

    def out_of_sync_replicas(
        self, now: float, lag_seconds: float, lag_messages: int | None
    ) -> tuple[int, ...]:
        """Followers that must leave the ISR, in its order; () while a change is pending.

        1. Stuck: no fetch for more than `lag_seconds`, with or without progress.
        2. Slow: the LEO is known and more than `lag_messages` behind this broker's.

        Without `lag_messages`, as from 0.9 on: not caught up for more than `lag_seconds`.
        """
        if not self.is_leader or self.isr_change is not None or self.log is None:
            return ()
        if lag_messages is None:
            return tuple(
                broker_id
                for broker_id in self.isr
                if (follower := self.followers.get(broker_id)) is not None
                and now - follower.last_caught_up > lag_seconds
            )
        enough = self.log.log_end_offset - lag_messages
        return tuple(
            broker_id
            for broker_id in self.isr
            if (follower := self.followers.get(broker_id)) is not None
            and (
                now - follower.last_fetch > lag_seconds
                or UNKNOWN_LOG_END < follower.log_end_offset < enough
            )
        )

    def begin_isr_change(self, isr: tuple[int, ...]) -> LeaderAndIsr:
        """Start a change of the ISR; returns the state to write. The HW waits for old and new
        members until end_isr_change."""
        assert self.is_leader, f"{self} changes the ISR without leading"
        assert self.isr_change is None, f"{self} changes the ISR twice at once"
        self.maximal_isr = (*self.isr, *(i for i in isr if i not in self.isr))
        self.isr_change = LeaderAndIsr(
            self.broker_id, self.leader_epoch, isr, self.zk_version, self.controller_epoch
        )
        return self.isr_change

    def end_isr_change(self, change: LeaderAndIsr, found: LeaderAndIsr) -> bool:
        """End a change: the znode now has `found`, written in this leader epoch. True if this
        raised the HW. Does nothing if the controller has sent a newer state meanwhile."""
        if self.isr_change is not change:
            return False
        self.isr_change = None
        self.zk_version = found.zk_version
        self._take_isr(found.isr)
        return self.maybe_raise_high_watermark()

    # Following

    def append_as_follower(self, message_set: Buffer, leader_high_watermark: int) -> AppendInfo:
        """Append what the leader sent for this replica's LEO, keeping offsets, and adopt its HW, up
        to the log end. The caller handles flush.messages (Log.owed_flush). Raises what
        Log.append_as_follower raises."""
        assert self.log is not None
        assert not self.is_leader, f"{self} appends as a follower"
        info = self.log.append_as_follower(message_set, flush=False)
        # 0.8: it may fall, while a new leader does not know the HW of the old one yet.
        self.set_high_watermark(leader_high_watermark)
        return info

    # Reading

    @property
    def last_stable_offset(self) -> int:
        """The first offset that a reader of committed messages must not see: at most the HW. It
        must have a log."""
        log = self.log
        assert log is not None, f"{self} has no log"
        producers = log.records.producers
        return producers.last_stable_offset(self.high_watermark, log.log_start_offset)

    def read(self, offset: int, max_bytes: int, end: int | None = None) -> LogSlice:
        """Log.read, ending at `end`. Does not check who leads."""
        assert self.log is not None, f"{self} is read without a log"
        return self.log.read(offset, max_bytes, end)
