"""RecordBatch: records of one partition that are sent, stored and acknowledged together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from os import getpid
from typing import Any, Final

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.errors import KafkaError, UnsupportedForMessageFormat
from kafka08.format.v2 import V2, encoded_headers, stamp
from kafka08.kernel import MessageAndMetadata
from kafka08.kernel.types import EMPTY_ENTRY_BYTES, MAX_MAGIC, NO_TIMESTAMP, TIMESTAMP_BYTES
from kafka08.producer.record import ProducerRecord, RecordMetadata
from kafka08.protocol import compression, message_set
from kafka08.protocol.conversion import Converter
from kafka08.protocol.record_batches import as_messages
from kafka08.protocol.types import Buffer
from kafka08.runtime import WAIT_S_MAX, ClientRuntime, Lock
from kafka08.runtime.threads import THREADS
from kafka08.structs import NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

Append = Callable[..., Any]
Callback = Callable[[RecordMetadata | None, KafkaError | None], Any]
"""`callback(metadata, error)`: one of the two arguments is None."""
TimeMs = Callable[[], int]
Times = Sequence[int] | int
"""A timestamp in ms for each record, or that of all."""


RECORDS: Final = V2.magic
RECORD_BYTES: Final = (EMPTY_ENTRY_BYTES, EMPTY_ENTRY_BYTES + TIMESTAMP_BYTES, 21)
"""By magic: what a record takes beside its key and value; of a batch about. Source:
DefaultRecord.MAX_RECORD_OVERHEAD."""
FIRST_RECORD_BYTES: Final = (*RECORD_BYTES[:RECORDS], V2.head_bytes + 36)
"""The same for the first record, with the head of its batch; at most."""


def refuse(
    key: object, value: object, callback: object = None, timestamp: int = 0, headers: object = None
) -> None:
    """`append` of a batch that is closed."""


class RecordBatch:
    """Records in the order of acceptance. Opened and closed under the accumulator's lock;
    `append` needs none.

    append       adds a record, see kernel.SetBuilder; returns its future, or None without room
    builder      its set while it is open; None when it is closed
    is_grown     whether it has more room than at first, see `grow`
    halves       two batches in its place, see `split`
    magic        format of its messages: 2 for one batch of records, 1 with timestamps, 0 without
    reserved     bytes of buffer.memory that it reserves until it is completed
    created      when it was created (monotonic seconds)
    attempts     failed attempts so far; the next one is not before `retry_at`
    alone        send it in a message set of its own, see Sender
    sent_as      producer id, epoch and first sequence with which it is sent; None: without
    signed_as    those that its set has
    count        the number of its records, once it is closed
    base_offset  offset of its first record, once `done`; NO_OFFSET on error and with acks=0
    error        why it was not stored (or might not have been), once `done`
    """

    __slots__ = (
        "_callbacks",
        "_data",
        "_is_packed",
        "_late_callbacks",
        "_lock",
        "_process",
        "_timestamps",
        "_waiters",
        "alone",
        "append",
        "attempts",
        "base_offset",
        "builder",
        "codec",
        "count",
        "created",
        "error",
        "halves",
        "is_done",
        "is_grown",
        "is_open",
        "is_transactional",
        "magic",
        "reserved",
        "retry_at",
        "runtime",
        "sent_as",
        "signed_as",
        "tp",
    )

    def __init__(
        self,
        tp: TopicPartition,
        codec: int,
        reserved: int,
        created: float,
        *,
        magic: int = 0,
        data: Buffer | None = None,
        count: int = 0,
        timestamps: Times = NO_TIMESTAMP,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        """Closed, with `count` records in the set `data`, until `open` creates a builder."""
        self.tp = tp
        self.codec = codec
        self.magic = magic
        self.reserved = reserved
        self.created = created
        self.append: Append = refuse
        self.is_open = self.is_grown = False
        self.halves: tuple[RecordBatch, RecordBatch] | None = None
        self.attempts = 0
        self.retry_at = created
        self.alone = False
        self.sent_as: tuple[int, int, int] | None = None
        self.signed_as: tuple[int, int, int] | None = None
        self.is_transactional = False
        self.base_offset = NO_OFFSET
        self.error: KafkaError | None = None
        self.builder: kernel.SetBuilder | None = None
        self._callbacks: list[Callback | None] = []
        self._late_callbacks: list[Callable[[], Any]] = []
        self._is_packed = False
        self.count = count
        self._data = data
        self._timestamps = timestamps
        self.runtime = runtime
        self._lock = runtime.lock()
        self._process = getpid()
        self._waiters: list[Lock] = []
        """A lock for each waiting thread, which cannot take it again until the batch is done. An
        Event costs ten calls more: its own lock, condition and queue."""
        self.is_done = False

    def open(self, ref_type: type[kernel.MessageRef], clock: TimeMs | None = None) -> None:
        """Accept records, up to `reserved` bytes; `append` returns `ref_type`s. `clock`: the time
        of records without a timestamp; None: the system's."""
        self.builder = kernel.SetBuilder(self.reserved, self, ref_type, self.magic, clock)
        self.append = self.builder.append
        self.is_open = True

    def close(self) -> None:
        """Accept no more records."""
        builder = self.builder
        if builder is not None:
            self.is_open = False
            self.append, self.builder = refuse, None
            self._data = builder.finish()
            self.count, self._callbacks = builder.count, builder.callbacks
            if builder.timestamps is not None:
                self._timestamps = memoryview(builder.timestamps).cast("q")

    def grow(self, more: int) -> None:
        """Reserve and accept `more` bytes, while it is open."""
        assert self.builder is not None, "a closed batch has its records"
        self.reserved += more
        self.builder.grow(self.reserved)
        self.is_grown = True

    def split(self) -> tuple[RecordBatch, RecordBatch]:
        """Two batches with its records, at least two, which are sent in its place: it is done once
        both are. They keep its sequences, and are filled anew."""
        with self._lock:
            assert self._data is not None, "a batch that is done has no set"
            messages = list(message_set.decode(self._data))
            self._data = None
        middle = self.count // 2
        first = self._part(messages[:middle], 0, self.reserved // 2)
        second = self._part(messages[middle:], middle, self.reserved - first.reserved)
        self._callbacks = []
        self.halves = first, second

        def both_are_done() -> None:
            self.complete(first.base_offset, first.error or second.error)

        first.when_done(lambda: second.when_done(both_are_done))
        return self.halves

    def _part(
        self, messages: Sequence[MessageAndMetadata[Any, Any]], start: int, reserved: int
    ) -> RecordBatch:
        """A closed batch of records of this one, which is closed, from record `start` on."""
        part = RecordBatch(
            *(self.tp, self.codec, reserved, self.created), magic=self.magic, runtime=self.runtime
        )
        part.is_transactional = self.is_transactional
        part.attempts, part.retry_at = self.attempts, self.retry_at
        part.sent_as = self.sent_as
        if self.sent_as is not None and self.sent_as[-1] >= 0:
            producer_id, epoch, sequence = self.sent_as
            part.sent_as = producer_id, epoch, (sequence + start) & INT_MAX
        records = [
            (m.key, m.value, None, m.timestamp, encoded_headers(m.headers) if m.headers else None)
            for m in messages
        ]
        most = FIRST_RECORD_BYTES[RECORDS] + sum(
            RECORD_BYTES[RECORDS] + len(key or b"") + len(value or b"") + len(headers or b"")
            for key, value, _, _, headers in records
        )
        builder = kernel.SetBuilder(most, part, kernel.MessageRef, self.magic)
        for record in records:
            added = builder.append(*record)
            assert added is not None, "there is room for all"
        part._data, part.count = builder.finish(), builder.count
        part._callbacks = self._callbacks[start : start + part.count]
        if builder.timestamps is not None:
            part._timestamps = memoryview(builder.timestamps).cast("q")
        return part

    def place_of(self, index: int) -> tuple[RecordBatch, int]:
        """The batch that has its record `index`, and the index there: others after a `split`."""
        if self.halves is None:
            return self, index
        first, second = self.halves
        if index < first.count:
            return first.place_of(index)
        return second.place_of(index - first.count)

    @classmethod
    def failed(cls, tp: TopicPartition, error: KafkaError) -> RecordBatch:
        """A batch for a record that was not accepted: done, with that error."""
        batch = cls(tp, compression.NONE, 0, 0.0)
        batch.complete(NO_OFFSET, error)
        return batch

    def message_set(self, magic: int = MAX_MAGIC) -> Buffer:
        """The set for a broker that takes messages up to `magic`, or of magic 2 alone; any thread,
        once the batch is closed. The first call compresses it. A batch that was filled for another
        broker is converted. UnsupportedForMessageFormat if it has what the older format lacks."""
        assert not self.is_open, "an open batch is not sent"
        with self._lock:
            assert self._data is not None, "a batch that is done has no set"
            if magic < self.magic:
                self._convert_down(self._data, magic)
            elif magic == RECORDS > self.magic:
                self._convert_up(self._data)
            packed_data = self._packed(self._data)
            if self.sent_as != self.signed_as and self.sent_as is not None:
                assert isinstance(packed_data, bytearray), "the kernel has built it"
                stamp(
                    packed_data,
                    *self.sent_as,
                    is_transactional=self.is_transactional,
                    checksum=kernel.crc32c,
                )
                self.signed_as = self.sent_as
            return packed_data

    def _convert_down(self, data: Buffer, magic: int) -> None:
        """Convert its set, packed or not; the caller holds the lock."""
        if self.magic == RECORDS:
            if self.codec == compression.ZSTD:
                raise UnsupportedForMessageFormat(f"{self.tp}: its leader does not take zstd")
            try:
                data = as_messages(data, magic, drops_headers=False)
            except ValueError as error:
                raise UnsupportedForMessageFormat(f"{self.tp}: {error}") from error
        else:
            data = b"".join(Converter(magic).convert(data))
        self._data = data
        self.magic = magic
        if not magic:
            self._timestamps = NO_TIMESTAMP

    def _convert_up(self, data: Buffer) -> None:
        """Make its set one batch of records, not packed; the caller holds the lock."""
        now_ms = self.runtime.time_ms()
        messages = list(message_set.decode(data))
        times = [now_ms if one.timestamp < 0 else one.timestamp for one in messages]
        self._data = kernel.build_from_lists(
            [one.key for one in messages],
            [one.value for one in messages],
            *(0, len(messages), RECORDS, times),
        )
        self.magic, self._timestamps, self._is_packed = RECORDS, times, False

    def pack(self) -> None:
        """Compress, if configured, in the thread that fills the batch instead of the sender's. The
        sender may be faster, and may even have the response already."""
        with self._lock:
            if self._data is not None:
                self._packed(self._data)

    def _packed(self, data: Buffer) -> Buffer:
        """The set to send; the caller holds the lock."""
        if self.codec != compression.NONE and not self._is_packed:
            times = self._timestamps
            newest_ms = times if isinstance(times, int) else max(times)
            self._data = message_set.pack(data, self.codec, self.count - 1, self.magic, newest_ms)
            self._is_packed = True
            return self._data
        return data

    def records(self) -> list[ProducerRecord]:
        """Its serialized records; empty once it is completed."""
        with self._lock:
            data = self._data
        if data is None:
            return []
        topic, partition = self.tp
        return [
            ProducerRecord(
                *(topic, m.value, m.key, partition, None if m.timestamp < 0 else m.timestamp),
                headers=m.headers or None,
            )
            for m in message_set.decode(data)
        ]

    def complete(
        self,
        base_offset: int,
        error: KafkaError | None = None,
        log_append_time_ms: int = NO_TIMESTAMP,
    ) -> None:
        """Notify waiting threads, then call the callbacks in order. Called once.
        `log_append_time_ms`: the timestamp that the broker gave all records, if it did."""
        with self._lock:
            self.base_offset, self.error = base_offset, error
            if log_append_time_ms != NO_TIMESTAMP:
                self._timestamps = log_append_time_ms
            # Futures may live on; they need not keep the records.
            self._data = None
            late, self._late_callbacks = self._late_callbacks, []
            self.is_done = True
            for waiter in self._waiters:
                waiter.release()
        callbacks, self._callbacks = self._callbacks, []
        if callbacks:
            kernel.run_callbacks(
                callbacks,
                RecordMetadata,
                *self.tp,
                base_offset,
                self._timestamps,
                error,
                self._log_callback,
            )
        for call in late:
            try:
                call()
            except BaseException:  # noqa: BLE001  # the user's code; it is logged
                self._log_callback()

    def _log_callback(self) -> None:
        """In the handler of what the user's code raised in the sender's thread. Nothing of it may
        stop the sender: sys.exit would end that thread alone, without a word, and so would
        asyncio.CancelledError."""
        logger.exception("Error executing user-provided callback on message for %s", self.tp)

    def when_done(self, call: Callable[[], Any]) -> None:
        """Call `call()`, the user's code, once it is done, in the sender's thread; at once if it is
        done."""
        self._check_process()
        with self._lock:
            if not self.is_done:
                self._late_callbacks.append(call)
                return
        try:
            call()
        except Exception:  # noqa: BLE001  # the user's code; it is logged
            self._log_callback()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done; False after `timeout` seconds. RuntimeError in a process that was
        forked before it was done."""
        self._check_process()
        waiter = self.runtime.lock()
        waiter.acquire()
        with self._lock:
            if self.is_done:
                return True
            self._waiters.append(waiter)
        if timeout is None:
            return waiter.acquire()
        if waiter.acquire(timeout > 0, min(timeout, WAIT_S_MAX) if timeout > 0 else -1):
            return True
        with self._lock:
            self._waiters.remove(waiter)
            return self.is_done

    def _check_process(self) -> None:
        if not self.is_done and self._process != getpid():
            raise RuntimeError(
                f"{self.tp}: the process that sent this record, from which this one was forked, "
                "alone gets its result"
            )

    def metadata(self, index: int) -> RecordMetadata:
        """The metadata of record `index` of a batch that is done; raises its error."""
        if self.halves is not None:
            batch, index = self.place_of(index)
            return batch.metadata(index)
        if self.error is not None:
            # The records share it: without this each raise would extend the last traceback.
            raise self.error.with_traceback(None)
        offset = NO_OFFSET if self.base_offset == NO_OFFSET else self.base_offset + index
        times = self._timestamps
        timestamp = times if isinstance(times, int) else times[index]
        return RecordMetadata(self.tp.topic, self.tp.partition, offset, timestamp)


def first_late(batches: Iterable[RecordBatch], timeout: float | None) -> RecordBatch | None:
    """Wait until all are done, `timeout` seconds in all; returns the first that is late."""
    deadline: float | None = None
    for batch in batches:
        left = timeout
        if timeout is not None:
            now = batch.runtime.monotonic()
            deadline = now + timeout if deadline is None else deadline
            left = max(0.0, deadline - now)
        if not batch.wait(left):
            return batch
    return None


def no_headers(tp: TopicPartition) -> UnsupportedForMessageFormat:
    """The error for headers that would be dropped."""
    return UnsupportedForMessageFormat(f"{tp}: its leader stores no headers: they came with 0.11")
