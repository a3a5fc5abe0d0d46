"""RecordBatch: records of one partition that are sent, stored and acknowledged together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from kafka08 import kernel
from kafka08.errors import KafkaError
from kafka08.producer.record import ProducerRecord, RecordMetadata
from kafka08.protocol import compression, message_set
from kafka08.protocol.types import Buffer
from kafka08.runtime import ClientRuntime, Event
from kafka08.runtime.threads import THREADS
from kafka08.structs import NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

Append = Callable[..., Any]
Callback = Callable[[RecordMetadata | None, KafkaError | None], Any]
"""`callback(metadata, error)`: one of the two arguments is None."""


def refuse(key: object, value: object, callback: object = None) -> None:
    """`append` of a batch that is closed."""


class RecordBatch:
    """Records in the order of acceptance. Opened and closed under the accumulator's lock;
    `append` needs none.

    append       adds a record, see kernel.SetBuilder; returns its future, or None without room
    reserved     bytes of buffer.memory that it reserves until it is completed
    created      when it was created (monotonic seconds)
    attempts     failed attempts so far; the next one is not before `retry_at`
    alone        send it in a message set of its own, see Sender
    base_offset  offset of its first record, once `done`; NO_OFFSET on error and with acks=0
    error        why it was not stored (or may not have been), once `done`
    """

    __slots__ = (
        "_builder",
        "_callbacks",
        "_count",
        "_data",
        "_event",
        "_is_packed",
        "_late_callbacks",
        "_lock",
        "alone",
        "append",
        "attempts",
        "base_offset",
        "codec",
        "created",
        "error",
        "is_done",
        "is_open",
        "reserved",
        "retry_at",
        "runtime",
        "tp",
    )

    def __init__(
        self,
        tp: TopicPartition,
        codec: int,
        reserved: int,
        created: float,
        *,
        data: Buffer | None = None,
        count: int = 0,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        """Closed, with `count` records in the set `data`, until `open` creates a builder."""
        self.tp = tp
        self.codec = codec
        self.reserved = reserved
        self.created = created
        self.append: Append = refuse
        self.is_open = False
        self.attempts = 0
        self.retry_at = created
        self.alone = False
        self.base_offset = NO_OFFSET
        self.error: KafkaError | None = None
        self._builder: kernel.SetBuilder | None = None
        self._callbacks: list[Callback | None] = []
        self._late_callbacks: list[Callable[[], Any]] = []
        self._is_packed = False
        self._count = count
        self._data = data
        self.runtime = runtime
        self._lock = runtime.lock()
        self._event: Event | None = None
        self.is_done = False

    def open(self, ref_type: type[kernel.MessageRef]) -> None:
        """Accept records, up to `reserved` bytes; `append` returns `ref_type`s."""
        self._builder = kernel.SetBuilder(self.reserved, self, ref_type)
        self.append = self._builder.append
        self.is_open = True

    def close(self) -> None:
        """Accept no more records."""
        builder = self._builder
        if builder is not None:
            self.is_open = False
            self.append, self._builder = refuse, None
            self._data = builder.finish()
            self._count, self._callbacks = builder.count, builder.callbacks

    @classmethod
    def failed(cls, tp: TopicPartition, error: KafkaError) -> RecordBatch:
        """A batch for a record that was not accepted: done, with that error."""
        batch = cls(tp, compression.NONE, 0, 0.0)
        batch.complete(NO_OFFSET, error)
        return batch

    @property
    def count(self) -> int:
        """The number of its records, once it is closed."""
        return self._count

    def message_set(self) -> Buffer:
        """The set to send; any thread, once the batch is closed. The first call compresses it."""
        assert not self.is_open, "an open batch is not sent"
        with self._lock:
            assert self._data is not None, "a batch that is done has no set"
            return self._packed(self._data)

    def pack(self) -> None:
        """Compress, if configured, in the thread that fills the batch instead of the sender's. The
        sender may be faster, and may even have the response already."""
        with self._lock:
            if self._data is not None:
                self._packed(self._data)

    def _packed(self, data: Buffer) -> Buffer:
        """The set to send; the caller holds the lock."""
        if self.codec != compression.NONE and not self._is_packed:
            packed = compression.compress(self.codec, data)
            self._data = kernel.wrap(packed, self._count - 1, self.codec)
            self._is_packed = True
            return self._data
        return data

    def records(self) -> list[ProducerRecord]:
        """Its serialized records; empty once it is completed."""
        with self._lock:
            data = self._data
        if data is None:
            return []
        decoded = message_set.decode(data)
        return [ProducerRecord(self.tp.topic, m.value, m.key, self.tp.partition) for m in decoded]

    def complete(self, base_offset: int, error: KafkaError | None = None) -> None:
        """Notify waiting threads, then call the callbacks in order. Called once."""
        with self._lock:
            self.base_offset, self.error = base_offset, error
            self._data = None
            late, self._late_callbacks = self._late_callbacks, []
            self.is_done = True
            if self._event is not None:
                self._event.set()
        callbacks, self._callbacks = self._callbacks, []
        topic, partition = self.tp
        metadata: RecordMetadata | None = None
        for index, callback in enumerate(callbacks):
            if callback is None:
                continue
            if error is None:
                offset = NO_OFFSET if base_offset == NO_OFFSET else base_offset + index
                metadata = _new_metadata(RecordMetadata, (topic, partition, offset))
            try:
                callback(metadata, error)
            except Exception:  # the user's code: it must not stop the sender
                logger.exception(
                    "Error executing user-provided callback on message for %s", self.tp
                )
        for call in late:
            call()

    def when_done(self, call: Callable[[], Any]) -> None:
        """Call `call()` once it is done, in the sender's thread; at once if it is done."""
        with self._lock:
            if not self.is_done:
                self._late_callbacks.append(call)
                return
        call()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done; False after `timeout` seconds."""
        with self._lock:
            if self.is_done:
                return True
            if self._event is None:
                self._event = self.runtime.event()  # created late: few batches are waited for
            event = self._event
        return event.wait(timeout)

    def metadata(self, index: int) -> RecordMetadata:
        """The metadata of record `index` of a batch that is done; raises its error."""
        if self.error is not None:
            # The records share it: without this each raise would extend the last traceback.
            raise self.error.with_traceback(None)
        offset = NO_OFFSET if self.base_offset == NO_OFFSET else self.base_offset + index
        return RecordMetadata(self.tp.topic, self.tp.partition, offset)


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


_new_metadata = tuple.__new__
"""Half the time of RecordMetadata(…): one is created for every callback."""
