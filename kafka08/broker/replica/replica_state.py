"""The rules of a replica: which appends it takes, the HW, the ISR's acks, a follower's positions.

Pure: the kernel reads and writes bytes at the positions that these rules give it, for all sets of a
request in one call. This source runs as it is, and compiled with the types of `_replica_state.pxd`
(see kafka08.broker.replica).

The HW (0 <= HW <= LEO): consumers may read the messages below it. Only two methods of LeaderState
set it: `maybe_raise_high_watermark` as the leader, when all in-sync replicas have everything below
it, and `set_high_watermark` otherwise.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka08 import kernel
from kafka08.protocol.codec import VERSION_LOW_BYTE
from kafka08.protocol.fetch import LOG_START_VERSION, NO_LOG_START_OFFSET

if TYPE_CHECKING:
    from kafka08.kernel import SegmentTail
    from kafka08.kernel.types import Buffer, Messages

L = TypeVar("L", bound="LeaderState")
F = TypeVar("F", bound="FollowerState")

UNKNOWN_LOG_END: Final = -1
"""The LEO of a follower that has not fetched yet."""
NOT_AT_THE_END: Final = -2
"""In the positions of `partitions_to_read`."""
OFFSET: Final = Struct(">q")


class FollowerReplica:
    """A leader's view of a replica on another broker.

    last_fetch       monotonic time of its last fetch, in seconds, even without progress; at first,
                     of the LeaderAndIsr that announced it
    log_end_offset   the offset of that fetch: it has everything before; UNKNOWN_LOG_END at first.
                     UNKNOWN_LOG_END <= log_end_offset; falls if the follower truncates, or
                     compares its log again
    log_start_offset of that fetch: where its log starts; -1 at first, and with a protocol of before
                     0.11
    last_caught_up   monotonic time at which it last had everything that this broker had; at first,
                     that of last_fetch. last_caught_up <= last_fetch
    leader_log_end   this broker's LEO at that fetch
    """

    def __init__(self, broker_id: int, now: float) -> None:
        self.broker_id = broker_id
        self.last_fetch = self.last_caught_up = now
        self.log_end_offset = self.leader_log_end = UNKNOWN_LOG_END
        self.log_start_offset = NO_LOG_START_OFFSET


class LeaderState:
    """The part of a replica's state that an append or a fetch reads and changes. The owner sets
    every field before use.

    topic_partition          its name
    log                      None, or an object with a SegmentTail as `active_segment`, and its
                             first offset as `log_start_offset`
    followers                broker id → FollowerReplica
    isr                      ids of the in-sync replicas
    reached_in_sync          in-sync replicas that acks -1 needs, if the topic does not say how many
    maximal_isr              ids of the replicas that limit the HW
    is_leader                False: nothing is appended as the leader
    is_internal              True: Produce requests append nothing
    leader_epoch             of the last accepted change of the leadership
    is_queued                True: others wait to be appended, so nothing else is
    high_watermark           see above
    high_watermark_max       it does not rise above this: an fsync is under way from here on
    messages_in, bytes_in    counts of all appends, in the bytes of the producers
    bytes_out                count of all reads by consumers
    produce_requests         count of the sets of Produce requests that were appended
    fetch_requests           count of the responses to Fetch requests
    """

    if TYPE_CHECKING:
        topic_partition: Any
        log: Any
        followers: dict[int, FollowerReplica]
        isr: tuple[int, ...]
        reached_in_sync: int
        maximal_isr: tuple[int, ...]
        is_leader: bool
        is_internal: bool
        is_queued: bool
        leader_epoch: int
        high_watermark: int
        high_watermark_max: int
        messages_in: int
        bytes_in: int
        bytes_out: int
        produce_requests: int
        fetch_requests: int

    def _tail(self) -> SegmentTail:
        """The end of its log; it must have one."""
        return self.log.active_segment  # type: ignore[no-any-return]

    # Writing

    def has_enough_in_sync(self) -> bool:
        """Whether the ISR is large enough for an append with acks -1. It must have a log."""
        return len(self.isr) >= self.min_in_sync()

    def min_in_sync(self) -> int:
        """The least size of the ISR for acks -1: the topic's min.insync.replicas, or
        `reached_in_sync`."""
        of_topic = self._tail().min_in_sync
        return of_topic if of_topic >= 0 else self.reached_in_sync

    def accepts(self, acks: int) -> bool:
        """Whether a set may be appended now, as the leader, by a request with these acks."""
        return (
            self.is_leader
            and not self.is_queued
            and self.log is not None
            and (acks >= 0 or self.has_enough_in_sync())
        )

    def note_append(self, base_offset: int, size: int) -> None:
        """A set of `size` bytes was appended at `base_offset`, as the leader."""
        self.count_in(self._tail().end_offset - base_offset, size)
        # With others in the ISR, a HW below this set waits for them, not for this append.
        if len(self.maximal_isr) <= 1 or self.high_watermark >= base_offset:
            self.maybe_raise_high_watermark()

    def count_in(self, count: int, size: int) -> None:
        """Count messages that were appended as the leader, with their bytes as the producer sent
        them: the log may store fewer or more."""
        self.messages_in += count
        self.bytes_in += size
        self.produce_requests += 1

    # The high watermark

    def maybe_raise_high_watermark(self) -> bool:
        """HW := the smallest LEO of the maximal ISR, this broker's included, if that is higher. Not
        above messages whose fsync, by flush.messages, is under way. Called after a follower's fetch
        above the HW, and after an append to a log whose HW was at its end."""
        lowest = min(self._tail().end_offset, self.high_watermark_max)
        if len(self.maximal_isr) > 1:
            for broker_id in self.maximal_isr:
                follower = self.followers.get(broker_id)  # None for this broker
                if follower is not None:
                    lowest = min(lowest, follower.log_end_offset)
        if lowest <= self.high_watermark:
            return False
        self.high_watermark = lowest
        return True

    def set_high_watermark(self, wanted: int) -> None:
        """HW := `wanted`, but not above the log end, so it may fall: to what a follower's leader
        says, to a checkpoint, or to the end of a truncated log."""
        self.high_watermark = min(self._tail().end_offset, wanted)

    def record_follower_fetch(self, broker_id: int, offset: int, now: float) -> bool:
        """A follower, one of `followers`, fetched at `offset`, so it has everything before. True if
        the HW rose. Source: kafka.cluster.Replica.updateLogReadResult 0.10.2.2."""
        follower = self.followers[broker_id]
        log_end_offset = offset if self.log is None else self._tail().end_offset
        if offset >= log_end_offset:
            follower.last_caught_up = now
        elif follower.leader_log_end != UNKNOWN_LOG_END and offset >= follower.leader_log_end:
            follower.last_caught_up = follower.last_fetch
        follower.leader_log_end = log_end_offset
        follower.log_end_offset = offset
        follower.last_fetch = now
        if offset <= self.high_watermark or not self.is_leader:
            return False
        return self.maybe_raise_high_watermark()


class FollowerState:
    """A partition that a replica fetcher fetches. Its owner sets every field before it is used.

    partition        the LeaderState of the replica here
    unsettled        None, or the offset from which on its log may differ from the leader's
    is_followed      False: nothing is appended
    max_bytes        fetch size
    expected_bytes   of the next response: as many as the last one had
    lag              messages below the leader's HW that were still missing after its last response
    leader_start     the leader's log start offset that is known here; -1 at first
    frame_position   of its fetch offset in the frame of the request
    """

    if TYPE_CHECKING:
        partition: LeaderState
        unsettled: int | None
        is_followed: bool
        max_bytes: int
        expected_bytes: int
        lag: int
        leader_start: int
        frame_position: int

    def accepts(self, code: int, max_bytes: int) -> bool:
        """Whether the response to a fetch of this size needs nothing but an append."""
        partition = self.partition
        return (
            not code
            and self.max_bytes == max_bytes
            and self.is_followed
            and self.unsettled is None
            and not partition.is_leader
            and partition.log is not None
        )

    def note_response(self, high_watermark: int, size: int) -> int:
        """Adopt the leader's HW after a set of `size` bytes was appended; returns the LEO."""
        partition = self.partition
        log_end_offset = partition._tail().end_offset
        partition.set_high_watermark(high_watermark)
        self.expected_bytes = size
        self.lag = max(0, high_watermark - log_end_offset)
        return log_end_offset


# Requests of producers


def append_sets(
    payload: Buffer,
    partitions: list[L],
    starts: list[int],
    sizes: list[int],
    acks: int,
    now_ms: int,
) -> list[int]:
    """Append the sets of a Produce request, which begin at `starts` in its writable payload, to
    these partitions, each of which occurs once. Returns the offset of each set's first message, -1
    if it was not appended.

    The caller appends the remaining sets: those for an internal partition, or one that does not
    accept them now, and those that `kernel.append_plain` leaves."""
    tails: list[SegmentTail | None] = []
    epochs: list[int] = []
    for partition in partitions:
        takes = not partition.is_internal and partition.accepts(acks)
        tails.append(partition._tail() if takes else None)
        epochs.append(partition.leader_epoch)
    base_offsets = kernel.append_plain(payload, tails, starts, sizes, now_ms, epochs)
    for number, partition in enumerate(partitions):
        if base_offsets[number] >= 0:
            partition.note_append(base_offsets[number], sizes[number])
    index_last_sets(partitions)
    return base_offsets


def append_records(partition: LeaderState, records: Messages, acks: int, now_ms: int) -> int:
    """Append keys and values of the broker itself as one plain set, also to an internal partition;
    their timestamp is `now_ms` if the topic's magic has one. Returns the offset of the first, or -1
    if nothing was appended."""
    if not partition.accepts(acks):
        return -1
    tail = partition._tail()
    if not tail.takes_plain_sets:
        return -1
    magic = 0 if tail.rules is None else tail.rules.magic
    keys: list[Any] = [key for key, _ in records]
    values: list[Any] = [value for _, value in records]
    times = now_ms if magic else None
    data = kernel.build_from_lists(keys, values, 0, len(records), magic, times)
    epochs = [partition.leader_epoch]
    [base_offset] = kernel.append_plain(data, [tail], [0], [len(data)], now_ms, epochs)
    if base_offset >= 0:
        partition.note_append(base_offset, len(data))
        index_last_sets([partition])
    return base_offset


def index_last_sets(partitions: list[L]) -> None:
    """Add the index entries that are due, and that the kernel has left."""
    for partition in partitions:
        if partition.log is not None and partition._tail().index_is_due:
            partition.log.active_segment.index_last_set()


def unacknowledged(partitions: list[L]) -> dict[Any, int]:
    """The name → LEO of each of these partitions whose HW is below it: after an append with acks
    -1, what has to be waited for."""
    pending: dict[Any, int] = {}
    for partition in partitions:
        log_end_offset = partition._tail().end_offset
        if partition.high_watermark < log_end_offset:
            pending[partition.topic_partition] = log_end_offset
    return pending


# Fetches


def partitions_to_read(
    partitions: list[L | None], offsets: list[int], limits: list[int], is_follower: bool
) -> tuple[list[int], list[int], list[int]]:
    """The HWs of these partitions, the indexes of those that a fetch from these offsets must read,
    and the positions at which the messages from these offsets on will begin: the log's end, -1 for
    another offset in the active segment, NOT_AT_THE_END for others and a negative limit.

    Those not to be read are at their end (the LEO for a follower, the HW for a consumer), so their
    response is empty. What may be an error is read too, so that the read reports it: an offset or
    size limit (`limits`) that may be invalid, and a partition that is unknown (None) or that this
    broker does not lead, whose HW is given as -1.
    """
    if not len(partitions) == len(offsets) == len(limits):
        raise ValueError("as many offsets and limits as partitions")
    high_watermarks: list[int] = []
    to_read: list[int] = []
    positions: list[int] = []
    for number, partition in enumerate(partitions):
        offset, limit = offsets[number], limits[number]
        if partition is None or not partition.is_leader or partition.log is None:
            high_watermarks.append(-1)
            positions.append(NOT_AT_THE_END)
            to_read.append(number)
            continue
        tail = partition._tail()
        end_offset = tail.end_offset if is_follower else partition.high_watermark
        high_watermarks.append(partition.high_watermark)
        if limit >= 0 and offset == tail.end_offset:
            positions.append(tail.size)
        elif (
            limit >= 0
            and tail.base_offset <= offset < tail.end_offset
            and (offset >= partition.log.log_start_offset)
        ):
            positions.append(-1)
        else:
            positions.append(NOT_AT_THE_END)
        if (
            offset != end_offset
            or limit < 0
            or (end_offset != tail.end_offset and offset < partition.log.log_start_offset)
        ):
            to_read.append(number)
    return high_watermarks, to_read, positions


def record_fetches(
    partitions: list[L],
    offsets: list[int],
    broker_id: int,
    now: float,
    log_starts: list[int] | None = None,
) -> tuple[list[Any], list[Any], list[L]]:
    """Record the fetch of a follower of all these partitions, whose logs start at `log_starts`
    there. Returns the names of those at which its offset is new, the names of those whose HW rose,
    and those whose ISR it is not in."""
    if len(partitions) != len(offsets):
        raise ValueError("as many offsets as partitions")
    if log_starts is not None and len(log_starts) != len(offsets):
        raise ValueError("as many log starts as partitions")
    moved: list[Any] = []
    raised: list[Any] = []
    outside: list[L] = []
    for number, partition in enumerate(partitions):
        follower = partition.followers[broker_id]
        start = NO_LOG_START_OFFSET if log_starts is None else log_starts[number]
        follower.log_start_offset = start
        if follower.log_end_offset != offsets[number]:
            moved.append(partition.topic_partition)
        if partition.record_follower_fetch(broker_id, offsets[number], now):
            raised.append(partition.topic_partition)
        if broker_id not in partition.isr:
            outside.append(partition)
    return moved, raised, outside


def has_news(partitions: list[L], offsets: list[int]) -> bool:
    """Whether a follower that has these partitions up to these offsets must hear of one of them: it
    is longer, or shorter, or no more led by this broker."""
    if len(partitions) != len(offsets):
        raise ValueError("as many offsets as partitions")
    for number, partition in enumerate(partitions):
        if not partition.is_leader or partition.log is None:
            return True
        tail = partition._tail()
        if tail.end_offset != offsets[number]:
            return True
    return False


def respond_to_follower(
    payload: memoryview,
    partitions: list[L],
    offsets: list[int],
    limits: list[int],
    positions: list[int],
    bytes_max: int,
    high_watermarks: list[int] | None = None,
) -> bytes | None:
    """The encoded response to a follower's Fetch request that `kernel.read_fetch` has read, with
    copies of its sets, which counts the request. `positions` as `partitions_to_read` returned them
    for these offsets before the sets were appended, or since; `high_watermarks` are the present
    ones unless given.

    None if this broker does not lead one of the partitions, and as for `kernel.copy_fetched`.
    """
    tails: list[SegmentTail] = []
    marks: list[int] = []
    for partition in partitions:
        if not partition.is_leader or partition.log is None:
            return None
        tails.append(partition._tail())
        marks.append(partition.high_watermark)
    response = kernel.copy_fetched(
        payload,
        tails,
        offsets,
        limits,
        positions,
        bytes_max,
        high_watermarks or marks,
        log_starts_for(payload, partitions),
    )
    if response is not None:
        count_fetches(partitions, None)
    return response


def log_starts_for(payload: memoryview, partitions: list[L]) -> list[int] | None:
    """The log start offsets of these partitions, if the version of the Fetch request has them."""
    if payload[VERSION_LOW_BYTE] < LOG_START_VERSION:
        return None
    return [partition.log.log_start_offset for partition in partitions]


def count_fetches(partitions: list[L], sizes: list[int] | None) -> None:
    """Count the response to a Fetch request of these partitions, and the sizes of its sets unless a
    follower gets them."""
    for number, partition in enumerate(partitions):
        partition.fetch_requests += 1
        if sizes is not None:
            partition.bytes_out += sizes[number]


def append_fetched(
    payload: memoryview,
    version: int,
    followed: dict[bytes, dict[int, F]],
    max_bytes: int,
    now_ms: int,
    frame: bytearray | None = None,
) -> tuple[list[tuple[F, int, int, int, Buffer]], list[F], list[tuple[F, int]]] | None:
    """Append what a Fetch response has to the ends of the logs of `followed` (topic's name →
    partition's number → it), and adopt the leader's HWs, up to the log ends:

    the partitions that were left, with their error codes, the leader's HWs and log start offsets,
    and their sets
    those to which something was appended, whose new fetch offsets are put into `frame`
    those whose leader's log start offset is another one than is known here, with that

    None, with nothing appended, as for `kernel.read_fetched`.

    It leaves every exception to the caller: an error, a log that may differ from the leader's,
    another fetch size than `max_bytes`, a partition that is not followed or is led here, and sets
    that `kernel.append_copies` leaves. Then nothing has changed.
    """
    response = kernel.read_fetched(payload, version, followed)
    if response is None:
        return None
    found, codes, high_watermarks, log_starts, sets = response
    tails: list[SegmentTail | None] = []
    for number, item in enumerate(found):
        takes = item.accepts(codes[number], max_bytes)
        tails.append(item.partition._tail() if takes else None)
    taken = kernel.append_copies(tails, sets, now_ms)
    left: list[tuple[F, int, int, int, Buffer]] = []
    appended: list[F] = []
    risen: list[tuple[F, int]] = []
    for number, item in enumerate(found):
        data = sets[number]
        if not taken[number]:
            left.append((item, codes[number], high_watermarks[number], log_starts[number], data))
            continue
        log_end_offset = item.note_response(high_watermarks[number], len(data))
        log_start = log_starts[number]
        if log_start != item.leader_start:
            risen.append((item, log_start))
        if data:
            appended.append(item)
            if frame is not None:
                OFFSET.pack_into(frame, item.frame_position, log_end_offset)
    index_last_sets([item.partition for item in appended])
    return left, appended, risen
