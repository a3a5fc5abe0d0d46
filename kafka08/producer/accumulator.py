"""RecordAccumulator: accepted records that are not sent yet, in a queue of batches per partition.

All partitions share `buffer.memory`: a batch reserves batch.size of it (or the size of its single
large record) when it is opened, and releases it when it is completed; callers block when none is
left. Those that wait get it in the order in which they came, and a caller that finds more than the
first of them needs goes on: behind them, each record would take a switch of threads. There is one
lock, and no I/O. Source:
org.apache.kafka.clients.producer.internals.RecordAccumulator 0.8.2.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from kafka08.errors import BufferExhausted, InvalidTxnState, KafkaError, ProducerClosed
from kafka08.kernel.types import EMPTY_ENTRY_BYTES, NO_TIMESTAMP
from kafka08.producer.batch import (
    FIRST_RECORD_BYTES,
    RECORDS,
    Callback,
    RecordBatch,
    TimeMs,
    Times,
)
from kafka08.producer.future import RecordFuture
from kafka08.producer.idempotence import Idempotence, Identity
from kafka08.producer.partition_queue import NO_BATCH, PartitionQueue
from kafka08.producer.ready_queues import ReadyQueues
from kafka08.producer.sequences import Sequences
from kafka08.protocol import compression
from kafka08.protocol.types import Buffer
from kafka08.runtime import WAIT_S_MAX, ClientRuntime, Condition
from kafka08.structs import NO_OFFSET, Broker, TopicPartition

PACKED_TOGETHER_BYTES: Final = 256 << 10
"""The most uncompressed bytes of compressed batches that are sent together: brokers compress them
again as one message, which must not exceed their limit. A broker of 0.10 would store each by itself
as it is, but 16 times the requests take twice the CPU of both sides. Later ones refuse several."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Brokers to which the sender can send now.

    leaders         brokers for which at least one batch is sendable, in their order
    has_leaderless  whether there is a batch to send whose leader is not known
    wait_s          seconds until another batch becomes sendable by time alone
    """

    leaders: list[Broker]
    has_leaderless: bool
    wait_s: float


@dataclass(frozen=True, slots=True)
class MemoryWait:
    """A thread that waits for so many bytes, until `freed` is notified."""

    wanted: int
    freed: Condition


class RecordAccumulator:
    """Thread-safe. `lock` also guards the batches' open phase and the queues' leaders.

    batch_size     bytes that a batch of single records reserves; a larger record reserves its own
    grown_size     bytes to which one with sequences grows, see `_growth`
    buffer_memory  bytes that all incomplete batches reserve together, at most
    linger_s       seconds that an open batch waits for more records
    codec          number of the compression codec, 0 for none
    on_batch       called, without the lock, for a new batch that the waiting sender does not know
    ordered        max.in.flight.requests.per.connection=1: a partition with a request in flight
                   waits, even if its leader has moved
    idempotence    whether partitions have sequences
    is_transactional  whether all batches belong to transactions
    clock          the time of records without a timestamp, in ms since 1970; None: the system's
    """

    def __init__(
        self,
        *,
        batch_size: int,
        grown_size: int = 0,
        buffer_memory: int,
        linger_s: float,
        codec: int,
        ordered: bool,
        on_batch: Callable[[], object],
        runtime: ClientRuntime,
        idempotence: Idempotence = Idempotence.OFF,
        is_transactional: bool = False,
        clock: TimeMs | None = None,
    ) -> None:
        self.lock = runtime.lock()
        self._batch_size = batch_size
        self._grown_size = grown_size
        self._buffer_memory = buffer_memory
        self._free = buffer_memory
        self._linger_s = linger_s
        self._codec = codec
        self._ready = ReadyQueues(linger_s=linger_s, ordered=ordered)
        self._idempotence = idempotence
        self._is_transactional = is_transactional
        self._allowed: Collection[TopicPartition] = ()
        self._on_batch = on_batch
        self._runtime = runtime
        self._clock = clock
        self.new_magic = 0
        """The magic of new queues, whose leaders are perhaps not connected yet: that of the last
        broker which was asked for metadata."""
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._sequences: dict[TopicPartition, Sequences] = {}
        """Of forgotten queues, too: brokers go on from the last number."""
        self._incomplete: dict[RecordBatch, None] = {}
        """In the order in which they were opened."""
        self._waiting: deque[MemoryWait] = deque()
        """In order: small records must not keep a large one from ever getting its memory. Only the
        first is notified: each of many threads would wake up for the memory of one."""
        self._flushing = 0
        self.closed = False
        self.sender_waits = False
        """The sender has called `ready` and may be waiting: it must be notified of a new batch."""

    @property
    def free_bytes(self) -> int:
        """The unreserved part of buffer.memory."""
        return self._free

    @property
    def incomplete_count(self) -> int:
        """The number of batches that were opened and are not completed."""
        return len(self._incomplete)

    def queue(self, tp: TopicPartition) -> PartitionQueue:
        """The queue of `tp`, created if needed; the caller holds the lock."""
        found = self._queues.get(tp)
        if found is None:
            now = self._runtime.monotonic()
            sequences = None
            if self._idempotence is not Idempotence.OFF:
                is_required = self._idempotence is Idempotence.REQUIRED
                sequences = self._sequences.setdefault(tp, Sequences(is_required=is_required))
            found = self._queues[tp] = PartitionQueue(tp, self.new_magic, now, sequences)
        return found

    def queues(self) -> Collection[PartitionQueue]:
        """All queues; the caller holds the lock."""
        return self._queues.values()

    def forget_idle(self, since: float, keep: Collection[str] = ()) -> set[str]:
        """Remove the queues of each topic that has nothing unsent and got no batch after `since`
        (monotonic seconds), except those to `keep`; returns these topics. For the sender's task. A
        thread that found a queue before may still append to it, see `_current`."""
        with self.lock:
            topics = {queue.tp.topic for queue in self._queues.values()}
            idle = topics.difference(
                keep,
                (
                    queue.tp.topic
                    for queue in self._queues.values()
                    if queue.batches or queue.in_flight or queue.used_at > since
                ),
            )
            if idle:
                self._queues = {
                    tp: queue for tp, queue in self._queues.items() if tp.topic not in idle
                }
        return idle

    def _current(self, queue: PartitionQueue) -> PartitionQueue:
        """The queue of its partition, which is another one if it was forgotten meanwhile; the
        caller holds the lock."""
        return self._queues.setdefault(queue.tp, queue)

    # ---------------------------------------------------------------------------- filling it

    def append(
        self,
        queue: PartitionQueue,
        key: Buffer | None,
        value: Buffer | None,
        size: int,
        callback: Callback | None,
        timestamp: int,
        block_s: float,
        headers: bytes | None = None,
    ) -> RecordFuture:
        """Add a record of `size` bytes as an entry of magic 0 with its headers, opening a batch if
        needed; returns its future. `timestamp`: NO_TIMESTAMP for the current time. `headers`, for a
        queue of magic 2: encoded.

        `queue.open.append` alone handles the common case, an open batch with room. Raises
        BufferExhausted after `block_s` without enough memory, and ProducerClosed.
        """
        with self.lock:
            self._check_open(queue)
            full = queue.open
            future: RecordFuture | None = None
            if full is not NO_BATCH:
                future = full.append(key, value, callback, timestamp, headers)
                if future is not None:
                    return future  # another thread has just opened a batch
            magic = queue.magic
            alone = size - EMPTY_ENTRY_BYTES + FIRST_RECORD_BYTES[magic]
            least = max(self._batch_size, alone)
            needed = self._needed(queue, least)
            is_short = self._reserve(queue, needed, block_s)
            queue = self._current(queue)
            if queue.open is not full:
                # While this thread waited, another one may have opened a batch with room.
                full = queue.open
                future = full.append(key, value, callback, timestamp, headers)
                if future is not None:
                    self._release(needed)
                    return future
            if self._growth(queue) >= needed:
                full.grow(needed)
                self._ready.place(queue)
                future = full.append(key, value, callback, timestamp, headers)
                assert future is not None, "it has room for a batch's first record"
                return future
            self._release(needed - least)
            batch = self._open(queue, least, magic)
            future = batch.append(key, value, callback, timestamp, headers)
            assert future is not None, "a new batch has room for its first record"
            is_full = alone >= self._batch_size
            if is_full:
                queue.close_open()  # it does not linger
            self._ready.place(queue)
            # Its response wakes the sender: by then other threads have filled the batch.
            wake = not (is_short and queue.in_flight) and self._must_wake(queue)
        if wake:
            self._on_batch()
        if full is not NO_BATCH:
            full.pack()
        if is_full:
            batch.pack()
        return future

    def _needed(self, queue: PartitionQueue, least: int) -> int:
        """Bytes to reserve for a record without room: the growth of the open batch, or those of a
        new one. It waits for no more than these."""
        growth = self._growth(queue)
        if self._waiting or self._free < growth:
            growth = min(growth, self._batch_size)
        return max(least, growth)

    def _growth(self, queue: PartitionQueue) -> int:
        """Bytes by which the open batch of a queue, which is full, may grow now: to twice its size.
        An earlier batch waits, so it could not be sent yet, and one large batch costs both sides
        less than several. (Those of older formats are joined when they are sent.) If it is too
        large for its topic it is sent in halves, which keep their order by their sequences."""
        batch, sequences = queue.open, queue.sequences
        if len(queue.batches) < 2 or batch.magic != RECORDS:
            return 0
        if sequences is None or not sequences.are_used:
            return 0
        return min(batch.reserved, self._grown_size - batch.reserved)

    def append_set(
        self,
        queue: PartitionQueue,
        data: Buffer,
        count: int,
        block_s: float,
        *,
        magic: int = 0,
        timestamps: Times = NO_TIMESTAMP,
    ) -> RecordBatch:
        """Add an uncompressed set of `count` records as a batch of its own. `timestamps`: those of
        the records in ms, from magic 1 on. Raises what `append` raises."""
        with self.lock:
            self._check_open(queue)
            self._reserve(queue, len(data), block_s)
            queue = self._current(queue)
            now = self._runtime.monotonic()
            batch = RecordBatch(
                queue.tp,
                self._codec,
                len(data),
                now,
                magic=magic,
                data=data,
                count=count,
                timestamps=timestamps,
                runtime=self._runtime,
            )
            self._enqueue(queue, batch)
            self._ready.place(queue)
            wake = self._must_wake(queue)
        if wake:
            self._on_batch()
        batch.pack()
        return batch

    def _open(self, queue: PartitionQueue, needed: int, magic: int) -> RecordBatch:
        """A new open batch of `needed` bytes, which the caller has reserved."""
        now = self._runtime.monotonic()
        batch = RecordBatch(queue.tp, self._codec, needed, now, magic=magic, runtime=self._runtime)
        batch.open(RecordFuture, self._clock)
        self._enqueue(queue, batch)
        return batch

    def _enqueue(self, queue: PartitionQueue, batch: RecordBatch) -> None:
        batch.is_transactional = self._is_transactional
        queue.enqueue(batch)
        queue.used_at = batch.created
        self._incomplete[batch] = None

    def _must_wake(self, queue: PartitionQueue) -> bool:
        """Whether the sender is waiting and does not know that this queue is ready. It knows from
        the second full batch on, and then waits for the network."""
        if not self.sender_waits or len(queue.batches) > 2:
            return False
        self.sender_waits = False
        return True

    def _reserve(self, queue: PartitionQueue, wanted: int, block_s: float) -> bool:
        """Take `wanted` bytes as soon as they are free. The first of the threads that wait keeps
        what it waits for, if this one could wait, too. Returns whether it waited."""
        kept = self._waiting[0].wanted if self._waiting and block_s > 0 else 0
        if self._free >= wanted + kept:
            self._free -= wanted
            return False
        deadline = self._runtime.monotonic() + block_s
        waiting = MemoryWait(wanted, self._runtime.condition(self.lock))
        is_first = not self._waiting
        self._waiting.append(waiting)
        try:
            if is_first and self.sender_waits:
                self.sender_waits = False
                self._on_batch()  # the lack of memory may have made a queue sendable
            while self._free < wanted or self._waiting[0] is not waiting:
                left = deadline - self._runtime.monotonic()
                if left <= 0:
                    raise BufferExhausted(
                        f"buffer.memory ({self._buffer_memory} bytes) had no {wanted} bytes free "
                        f"within {block_s * 1000:.0f} ms (max.block.ms)"
                    )
                waiting.freed.wait(min(left, WAIT_S_MAX))
                self._check_open(queue)
            self._free -= wanted
            return True
        finally:
            self._waiting.remove(waiting)
            self._release(0)  # the next one may find enough

    def _release(self, size: int) -> None:
        """Give back reserved bytes."""
        self._free += size
        if self._waiting and self._waiting[0].wanted <= self._free:
            self._waiting[0].freed.notify()

    def _check_open(self, queue: PartitionQueue) -> None:
        if self.closed:
            raise ProducerClosed("the producer is closed")
        if self._is_transactional and queue.tp not in self._allowed:
            # Under the lock: what comes after this is not waited for by the end.
            raise InvalidTxnState(f"{queue.tp}: the transaction is being ended, or has ended")

    def allow(self, partitions: Collection[TopicPartition]) -> None:
        """Let only these partitions of a transactional producer get batches."""
        with self.lock:
            self._allowed = partitions

    # --------------------------------------------------------------------------- emptying it

    @property
    def _is_urgent(self) -> bool:
        """Whether batches do not linger."""
        return bool(self._waiting) or self._flushing > 0 or self.closed

    def ready(self, now: float) -> Readiness:
        """The leaders with sendable batches; the caller holds the lock. A batch is sendable when it
        is full or has lingered, while a thread waits for memory or in `flush`, and after `close`;
        never during its backoff."""
        wait_s = self._ready.advance(now, urgent=self._is_urgent)
        return Readiness(self._ready.leaders, self._ready.has_leaderless, wait_s)

    def leaderless_topics(self) -> set[str]:
        """Topics with a batch to send whose leader is not known."""
        with self.lock:
            return self._ready.leaderless_topics()

    def set_leader(self, queue: PartitionQueue, leader: Broker | None) -> None:
        """The leader of a partition by new metadata; the caller holds the lock."""
        self._ready.set_leader(queue, leader)

    def drain(
        self,
        broker: Broker,
        max_bytes: int,
        now: float,
        magic: int = 0,
        *,
        takes_wrappers: bool = True,
        identity: Identity | None = None,
    ) -> tuple[list[list[RecordBatch]], bool]:
        """Take sendable batches for `broker`, at least one and at most about `max_bytes`; the
        caller holds the lock. One list per partition: consecutive batches can be sent as one set.
        Partitions take turns. Also returns whether more may be ready for it.

        `magic`: the format that the broker takes, in which these queues fill their next batches.
        `takes_wrappers`: whether it takes several compressed batches in one set. `identity`: that
        of an idempotent producer, for batches that are sent for the first time."""
        urgent = self._is_urgent
        drained: list[list[RecordBatch]] = []
        left = max_bytes
        for _ in range(self._ready.number_of(broker)):
            queue = self._ready.first_of(broker)
            if drained and queue.batches[0].reserved > left:
                return drained, True  # it is the first of the next request
            queue.magic = magic
            taken: list[RecordBatch] = []
            together = 0
            while queue.batches:
                batch = queue.batches[0]
                # At least one batch is taken, however large it is.
                if (drained or taken) and batch.reserved > left:
                    break
                if not self._ready.is_due(batch, now, urgent=urgent):
                    break
                if taken and not may_travel_with(batch, taken[0], together, magic, takes_wrappers):
                    break
                if batch is queue.open:
                    queue.close_open()
                taken.append(queue.batches.popleft())
                if identity is not None and batch.sent_as is None and queue.sequences is not None:
                    queue.sequences.give(batch, identity)
                left -= batch.reserved
                together += batch.reserved
            if taken:
                queue.in_flight += 1
                queue.is_joined = len(taken) > 1
                drained.append(taken)
            self._ready.put_last(queue)
        return drained, self._ready.number_of(broker) > 0

    def put_back(self, batches: Iterable[RecordBatch]) -> None:
        """Return batches of one partition, whose request is done, to the front of their queue, in
        the given order."""
        returned = list(batches)
        with self.lock:
            queue = self._queues[returned[0].tp]
            if queue.sequences is None or returned[0] not in queue.sequences.unacked:
                queue.batches.extendleft(reversed(returned))
            else:
                for batch in returned:
                    queue.sequences.put_back(batch, queue.batches)
            self._request_done(queue.tp)

    def split(self, batch: RecordBatch) -> None:
        """Put back two halves of a batch, whose request is done, in its place."""
        halves = batch.split()
        with self.lock:
            incomplete = list(self._incomplete)
            place = incomplete.index(batch)
            incomplete[place : place + 1] = halves
            self._incomplete = dict.fromkeys(incomplete)
            queue = self._queues[batch.tp]
            if queue.sequences is not None:
                queue.sequences.replace(batch, halves)
        self.put_back(halves)

    def passes(self, batch: RecordBatch, error: KafkaError) -> bool | None:
        """Whether a batch that was refused is sent again because of its sequence, see Sequences."""
        with self.lock:
            sequences = self._queues[batch.tp].sequences
            return None if sequences is None else sequences.passes(batch, error)

    def _request_done(self, tp: TopicPartition) -> None:
        """A request with batches of `tp` is no longer in flight."""
        queue = self._queues[tp]
        queue.in_flight -= 1
        self._ready.place(queue)

    def complete(
        self,
        batches: Iterable[RecordBatch],
        base_offset: int = NO_OFFSET,
        error: KafkaError | None = None,
        log_append_time_ms: int = NO_TIMESTAMP,
        *,
        were_in_flight: bool = False,
    ) -> None:
        """Complete batches that were stored as one set at `base_offset`, or that failed.
        `were_in_flight`: their request is done, too."""
        done = list(batches)
        with self.lock:
            for batch in done:
                self._incomplete.pop(batch, None)
                if batch.sent_as is not None:
                    self._end_sequence(batch, error)
            if were_in_flight:
                self._request_done(done[0].tp)
            self._release(sum([batch.reserved for batch in done]))
        for batch in done:
            # Outside the lock: callbacks may send.
            count = batch.count
            batch.complete(base_offset, error, log_append_time_ms)
            if base_offset != NO_OFFSET:
                base_offset += count

    def _end_sequence(self, batch: RecordBatch, error: KafkaError | None) -> None:
        queue = self._queues[batch.tp]
        if queue.sequences is not None:
            queue.sequences.end(batch, error)
            self._ready.place(queue)

    def take_overdue(
        self, before: float, reachable: Collection[Broker], *, is_since_append: bool
    ) -> list[RecordBatch]:
        """Remove batches whose leader is not known and among `reachable`: those that were appended
        before that time, or could have been sent, also again, before it."""
        overdue: list[RecordBatch] = []
        with self.lock:
            for queue in self._ready.without(reachable):
                while queue.batches:
                    batch = queue.batches[0]
                    since = batch.created
                    if not is_since_append:
                        since = max(since + self._linger_s, batch.retry_at)
                    if since > before:
                        break
                    if batch is queue.open:
                        queue.close_open()
                    overdue.append(queue.batches.popleft())
                self._ready.place(queue)
        return overdue

    # ------------------------------------------------------------------------------ its ends

    def begin_flush(self) -> list[RecordBatch]:
        """End lingering from now on; returns the batches to wait for before `end_flush`, in the
        order in which they were opened."""
        with self.lock:
            self._flushing += 1
            return list(self._incomplete)

    def end_flush(self) -> None:
        """A flush has ended: batches linger again, unless another one waits."""
        with self.lock:
            self._flushing -= 1

    def close(self) -> None:
        """Accept no more records; threads that wait for memory get ProducerClosed. Accepted records
        stay."""
        with self.lock:
            self.closed = True
            for queue in self._queues.values():
                queue.close_open()
                self._ready.place(queue)
            for waiting in self._waiting:
                waiting.freed.notify()

    def take_unsent(self) -> list[RecordBatch]:
        """Empty the queues, except of what is in flight."""
        found: list[RecordBatch] = []
        with self.lock:
            for queue in self._queues.values():
                queue.close_open()
                found += queue.batches
                queue.batches.clear()
                self._ready.place(queue)
        return found

    def restart_sequences(self) -> None:
        """Number records anew, with nothing in flight: the producer has another identity."""
        with self.lock:
            for sequences in self._sequences.values():
                sequences.restart()

    def take_all(self) -> list[RecordBatch]:
        """Empty the queues: the producer gives up. Returns every incomplete batch, also those in
        flight, by partition and in the order in which they were opened."""
        with self.lock:
            for queue in self._queues.values():
                queue.close_open()
                queue.batches.clear()
                self._ready.place(queue)
            return sorted(self._incomplete, key=lambda batch: batch.tp)


def may_travel_with(
    batch: RecordBatch,
    first: RecordBatch,
    together: int,
    magic: int = 0,
    takes_wrappers: bool = True,
) -> bool:
    """Whether `batch` fits into the set that begins with `first` and has `together` bytes. One of
    magic 2 has one batch."""
    if magic == RECORDS or batch.alone or first.alone:
        return False
    if batch.codec == compression.NONE:
        return True
    return takes_wrappers and together + batch.reserved <= PACKED_TOGETHER_BYTES
