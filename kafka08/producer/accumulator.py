"""RecordAccumulator: accepted records that are not sent yet, in a queue of batches per partition.

All partitions share `buffer.memory`: a batch reserves batch.size of it (or the size of its single
large record) when it is opened, and releases it when it is completed; callers block when none is
left, and get it in the order in which they came. There is one lock, and no I/O. Source:
org.apache.kafka.clients.producer.internals.RecordAccumulator 0.8.2.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from kafka08 import kernel
from kafka08.errors import BufferExhausted, KafkaError, ProducerClosed
from kafka08.kernel.types import NO_TIMESTAMP, TIMESTAMP_BYTES
from kafka08.producer.batch import Callback, RecordBatch, TimeMs, Times
from kafka08.producer.future import RecordFuture
from kafka08.protocol import compression
from kafka08.protocol.types import Buffer
from kafka08.runtime import WAIT_SECONDS_MAX, ClientRuntime
from kafka08.structs import NO_OFFSET, Broker, TopicPartition

NO_BATCH: Final = RecordBatch(TopicPartition("", -1), compression.NONE, 0, 0.0)
"""`open` of a queue without an open batch: it has no room for any record."""
NEVER: Final = float("inf")
PACKED_TOGETHER_BYTES: Final = 256 << 10
"""The most uncompressed bytes of compressed batches that are sent together: brokers compress them
again as one message, which must not exceed their limit. A broker of 0.10 would store each by itself
as it is, but 16 times the requests take twice the CPU of both sides. Later ones refuse several."""


class PartitionQueue(kernel.OpenSet):
    """The batches of one partition, oldest first; `open` is the last of them, or NO_BATCH, and
    `builder` its set, to which `KafkaProducer.send` appends without the lock.

    leader      the known leader, kept up to date by the sender
    magic       format of its next batches: the one that its last leader takes
    in_flight   the number of requests with its batches that wait for a response
    used_at     when its last batch was opened, or it was made (monotonic seconds)
    is_joined   whether the last of them has several batches. If it is refused, they are sent again
                one by one: until then the partition waits
    """

    __slots__ = ("batches", "in_flight", "is_joined", "leader", "magic", "open", "tp", "used_at")

    def __init__(self, tp: TopicPartition, magic: int = 0, used_at: float = 0.0) -> None:
        super().__init__()
        self.tp = tp
        self.used_at = used_at
        self.magic = magic
        self.batches: deque[RecordBatch] = deque()
        self.open = NO_BATCH
        self.leader: Broker | None = None
        self.in_flight = 0
        self.is_joined = False

    def enqueue(self, batch: RecordBatch) -> None:
        """Close the last batch, and add `batch`, which may be open."""
        self.close_open()
        self.batches.append(batch)
        if batch.is_open:
            self.open, self.builder = batch, batch.builder

    def close_open(self) -> None:
        """Close the last batch: it accepts no more records."""
        if self.open is not NO_BATCH:
            self.builder = None
            self.open.close()
            self.open = NO_BATCH


@dataclass(slots=True)
class Readiness:
    """The brokers to which the sender can send now.

    leaders         brokers for which at least one batch is sendable
    unknown_leaders topics with a batch to send, but without a known leader
    wait_s          seconds until another batch becomes sendable by time alone
    """

    leaders: set[Broker] = field(default_factory=set)
    unknown_leaders: set[str] = field(default_factory=set)
    wait_s: float = NEVER


class RecordAccumulator:
    """Thread-safe. `lock` also guards the batches' open phase and the queues' leaders.

    batch_size     bytes that a batch of single records reserves; a larger record reserves its own
    buffer_memory  bytes that all incomplete batches reserve together, at most
    linger_s       seconds that an open batch waits for more records
    codec          number of the compression codec, 0 for none
    on_batch       called, without the lock, for a new batch that the waiting sender does not know
    ordered        max.in.flight.requests.per.connection=1: a partition with a request in flight
                   waits, even if its leader has moved
    clock          the time of records without a timestamp, in ms since 1970; None: the system's
    """

    def __init__(
        self,
        *,
        batch_size: int,
        buffer_memory: int,
        linger_s: float,
        codec: int,
        ordered: bool,
        on_batch: Callable[[], object],
        runtime: ClientRuntime,
        clock: TimeMs | None = None,
    ) -> None:
        self.lock = runtime.lock()
        self._freed = runtime.condition(self.lock)
        self._batch_size = batch_size
        self._buffer_memory = buffer_memory
        self._free = buffer_memory
        self._linger_s = linger_s
        self._codec = codec
        self._ordered = ordered
        self._on_batch = on_batch
        self._runtime = runtime
        self._clock = clock
        self.new_magic = 0
        """The magic of new queues, whose leaders are perhaps not connected yet: that of the last
        broker which was asked for metadata."""
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._incomplete: dict[RecordBatch, None] = {}
        """In the order in which they were opened."""
        self._waiting: deque[object] = deque()
        """A token of each thread that waits for memory, in order: small records must not keep a
        large one from ever getting its memory."""
        self._flushing = 0
        self._first = 0
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
            found = self._queues[tp] = PartitionQueue(tp, self.new_magic, now)
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
    ) -> RecordFuture:
        """Add a record of `size` bytes as an entry of magic 0, opening a batch if needed; returns
        its future. `timestamp`: NO_TIMESTAMP for the current time.

        `queue.open.append` alone handles the common case, an open batch with room. Raises
        BufferExhausted after `block_s` without enough memory, and ProducerClosed.
        """
        with self.lock:
            self._check_open()
            full = queue.open
            future: RecordFuture | None = None
            if full is not NO_BATCH:
                future = full.append(key, value, callback, timestamp)
                if future is not None:
                    return future  # another thread has just opened a batch
            magic = queue.magic
            needed = max(self._batch_size, size + TIMESTAMP_BYTES * magic)
            self._await_memory(needed, block_s)
            queue = self._current(queue)
            if queue.open is not full:
                # While this thread waited, another one may have opened a batch with room.
                full = queue.open
                future = full.append(key, value, callback, timestamp)
                if future is not None:
                    return future
            batch = self._open(queue, needed, magic)
            future = batch.append(key, value, callback, timestamp)
            assert future is not None, "a new batch has room for its first record"
            is_full = size + TIMESTAMP_BYTES * magic >= self._batch_size
            if is_full:
                queue.close_open()  # it does not linger
            wake = self._must_wake(queue)
        if wake:
            self._on_batch()
        if full is not NO_BATCH:
            full.pack()
        if is_full:
            batch.pack()
        return future

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
        the records in ms, for magic 1. Raises what `append` raises."""
        with self.lock:
            self._check_open()
            self._await_memory(len(data), block_s)
            queue = self._current(queue)
            self._free -= len(data)
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
            wake = self._must_wake(queue)
        if wake:
            self._on_batch()
        batch.pack()
        return batch

    def _open(self, queue: PartitionQueue, needed: int, magic: int) -> RecordBatch:
        """A new open batch of `needed` bytes; the caller has checked the memory."""
        self._free -= needed
        now = self._runtime.monotonic()
        batch = RecordBatch(queue.tp, self._codec, needed, now, magic=magic, runtime=self._runtime)
        batch.open(RecordFuture, self._clock)
        self._enqueue(queue, batch)
        return batch

    def _enqueue(self, queue: PartitionQueue, batch: RecordBatch) -> None:
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

    def _await_memory(self, wanted: int, block_s: float) -> None:
        """Wait until `wanted` bytes are free, behind those that came before; without time to wait
        only the bytes count."""
        if self._free >= wanted and (block_s <= 0 or not self._waiting):
            return
        deadline = self._runtime.monotonic() + block_s
        token = object()
        self._waiting.append(token)
        try:
            if self.sender_waits:
                self.sender_waits = False
                self._on_batch()  # the lack of memory may have made a queue sendable
            while self._free < wanted or self._waiting[0] is not token:
                left = deadline - self._runtime.monotonic()
                if left <= 0:
                    raise BufferExhausted(
                        f"buffer.memory ({self._buffer_memory} bytes) had no {wanted} bytes free "
                        f"within {block_s * 1000:.0f} ms (max.block.ms)"
                    )
                self._freed.wait(min(left, WAIT_SECONDS_MAX))
                self._check_open()
        finally:
            self._waiting.remove(token)
            if self._waiting:
                self._freed.notify_all()  # the next one may find enough

    def _check_open(self) -> None:
        if self.closed:
            raise ProducerClosed("the producer is closed")

    # --------------------------------------------------------------------------- emptying it

    def ready(self, now: float) -> Readiness:
        """The leaders with sendable batches; the caller holds the lock. A batch is sendable when it
        is full or has lingered, while a thread waits for memory or in `flush`, and after `close`;
        never during its backoff."""
        found = Readiness()
        urgent = bool(self._waiting) or self._flushing > 0 or self.closed
        for queue in self._queues.values():
            if not queue.batches or self._is_busy(queue):
                continue
            wait_s = self._wait_s(queue.batches[0], now, urgent)
            if wait_s > 0:
                found.wait_s = min(found.wait_s, wait_s)
            elif queue.leader is None:
                found.unknown_leaders.add(queue.tp.topic)
            else:
                found.leaders.add(queue.leader)
        return found

    def drain(
        self,
        broker: Broker,
        max_bytes: int,
        now: float,
        magic: int = 0,
        *,
        takes_wrappers: bool = True,
    ) -> tuple[list[list[RecordBatch]], bool]:
        """Take sendable batches for `broker`, at least one and at most about `max_bytes`; the
        caller holds the lock. One list per partition: consecutive batches can be sent as one set.
        Partitions take turns at being first. Also returns whether its queues are empty now.

        `magic`: the format that the broker takes, in which these queues fill their next batches.
        `takes_wrappers`: whether it takes several compressed batches in one set."""
        urgent = bool(self._waiting) or self._flushing > 0 or self.closed
        led = [q for q in self._queues.values() if q.leader == broker and q.batches]
        self._first += 1
        start = self._first % len(led) if led else 0
        drained: list[list[RecordBatch]] = []
        is_all = True
        left = max_bytes
        for queue in led[start:] + led[:start]:
            queue.magic = magic
            if self._is_busy(queue):
                is_all = False
                continue
            taken: list[RecordBatch] = []
            together = 0
            while queue.batches:
                batch = queue.batches[0]
                # At least one batch is taken, however large it is.
                if (drained or taken) and batch.reserved > left:
                    break
                if self._wait_s(batch, now, urgent) > 0:
                    break
                if taken and not may_travel_with(batch, taken[0], together, takes_wrappers):
                    break
                if batch is queue.open:
                    queue.close_open()
                taken.append(queue.batches.popleft())
                left -= batch.reserved
                together += batch.reserved
            if taken:
                queue.in_flight += 1
                queue.is_joined = len(taken) > 1
                drained.append(taken)
            if queue.batches:
                is_all = False
        return drained, is_all

    def put_back(self, batches: Iterable[RecordBatch]) -> None:
        """Return batches of one partition to the front of their queue, in the given order."""
        returned = list(batches)
        with self.lock:
            self._queues[returned[0].tp].batches.extendleft(reversed(returned))

    def request_done(self, tp: TopicPartition) -> None:
        """A request with batches of `tp` is no longer in flight."""
        with self.lock:
            self._queues[tp].in_flight -= 1

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
        `were_in_flight`: their request is done, too, as after `request_done`."""
        done = list(batches)
        with self.lock:
            if were_in_flight:
                self._queues[done[0].tp].in_flight -= 1
            for batch in done:
                self._incomplete.pop(batch, None)
            self._free += sum([batch.reserved for batch in done])
            if self._waiting:
                self._freed.notify_all()
        for batch in done:
            # Outside the lock: callbacks may send.
            count = batch.count
            batch.complete(base_offset, error, log_append_time_ms)
            if base_offset != NO_OFFSET:
                base_offset += count

    def take_overdue(self, ready_before: float, reachable: Collection[Broker]) -> list[RecordBatch]:
        """Remove batches that could have been sent before that time if their leader had been known
        and among `reachable`."""
        overdue: list[RecordBatch] = []
        with self.lock:
            for queue in self._queues.values():
                if queue.leader is not None and queue.leader in reachable:
                    continue
                while queue.batches and not (self._ordered and queue.in_flight):
                    batch = queue.batches[0]
                    if max(batch.created + self._linger_s, batch.retry_at) > ready_before:
                        break
                    if batch is queue.open:
                        queue.close_open()
                    overdue.append(queue.batches.popleft())
        return overdue

    def _is_busy(self, queue: PartitionQueue) -> bool:
        """Whether its batches wait for the response to a request."""
        return queue.in_flight > 0 and (self._ordered or queue.is_joined)

    def _wait_s(self, batch: RecordBatch, now: float, urgent: bool) -> float:
        """Seconds until `batch`, the first of its queue, becomes sendable; 0 or less: now."""
        # Before `urgent`: nothing ends a backoff early.
        if batch.attempts:
            return batch.retry_at - now
        if urgent or not batch.is_open:
            return 0.0
        return batch.created + self._linger_s - now

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
            self._freed.notify_all()

    def take_all(self) -> list[RecordBatch]:
        """Empty the queues: the producer gives up. Returns every incomplete batch, also those in
        flight, by partition and in the order in which they were opened."""
        with self.lock:
            for queue in self._queues.values():
                queue.close_open()
                queue.batches.clear()
            return sorted(self._incomplete, key=lambda batch: batch.tp)


def may_travel_with(
    batch: RecordBatch, first: RecordBatch, together: int, takes_wrappers: bool = True
) -> bool:
    """Whether `batch` fits into the set that begins with `first` and has `together` bytes."""
    if batch.alone or first.alone:
        return False
    if batch.codec == compression.NONE:
        return True
    return takes_wrappers and together + batch.reserved <= PACKED_TOGETHER_BYTES
