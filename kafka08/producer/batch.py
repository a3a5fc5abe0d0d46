"""RecordBatch: the records of one partition that are sent, stored and answered together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from kafka08 import kernel
from kafka08.errors import KafkaError
from kafka08.producer.record import ProducerRecord, RecordMetadata
from kafka08.protocol import compression, message_set
from kafka08.protocol.types import Buffer
from kafka08.structs import NO_OFFSET, TopicPartition

log = logging.getLogger(__name__)

ENTRY_BYTES: Final = 26
"""Bytes of an entry beside key and value: offset, size, crc, magic, attributes, two lengths."""
NO_ROOM: Final = -1

Callback = Callable[[RecordMetadata | None, KafkaError | None], Any]
"""`callback(metadata, error)`: one of the two is None."""


class RecordBatch:
    """Records in the order they were accepted. Its open phase belongs to the accumulator's lock.

    pairs        (key, value) of each record until the set is built, then empty
    room         bytes that may still be added; NO_ROOM once it is closed
    callbacks    by record, shorter than the batch where the last ones have none
    reserved     bytes of buffer.memory that it holds until it is completed
    created      when its first record came (monotonic seconds)
    attempts     failed tries so far; the next one not before `retry_at`
    alone        send it in a message set of its own, see Sender
    base_offset  offset of its first record, once `done`; NO_OFFSET on error and with acks=0
    error        why it was not stored (or may not have been), once `done`
    """

    __slots__ = (
        "_build_lock",
        "_count",
        "_data",
        "_done",
        "_late_callbacks",
        "alone",
        "attempts",
        "base_offset",
        "callbacks",
        "codec",
        "created",
        "error",
        "pairs",
        "reserved",
        "retry_at",
        "room",
        "tp",
    )

    def __init__(
        self, tp: TopicPartition, codec: int, room: int, reserved: int, created: float
    ) -> None:
        self.tp = tp
        self.codec = codec
        self.room = room
        self.reserved = reserved
        self.created = created
        self.pairs: list[tuple[bytes | None, bytes | None]] = []
        self.callbacks: list[Callback | None] = []
        self.attempts = 0
        self.retry_at = created
        self.alone = False
        self.base_offset = NO_OFFSET
        self.error: KafkaError | None = None
        self._late_callbacks: list[Callable[[], Any]] = []
        self._count = 0
        self._data: Buffer | None = None
        self._build_lock = threading.Lock()
        self._done = threading.Event()

    @classmethod
    def of_set(cls, tp: TopicPartition, data: Buffer, count: int, created: float) -> RecordBatch:
        """A closed batch of a set that is built already, uncompressed."""
        batch = cls(tp, compression.NONE, NO_ROOM, len(data), created)
        batch._data, batch._count = data, count
        return batch

    @classmethod
    def failed(cls, tp: TopicPartition, error: KafkaError) -> RecordBatch:
        """A batch of a record that was not accepted: done, with that error."""
        batch = cls(tp, compression.NONE, NO_ROOM, 0, 0.0)
        batch.complete(NO_OFFSET, error)
        return batch

    @property
    def count(self) -> int:
        """How many records it has (so far)."""
        return self._count or len(self.pairs)

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def add_callback(self, index: int, callback: Callback) -> None:
        """`callback` for record `index`, the last one of the open batch."""
        self.callbacks.extend([None] * (index - len(self.callbacks)))
        self.callbacks.append(callback)

    def message_set(self) -> Buffer:
        """The set as it is sent, built once the batch is closed; any thread. The records
        themselves are freed then: from here on a batch costs what its bytes cost."""
        with self._build_lock:
            if self._data is None:
                assert self.room < 0, "an open batch is not sent"
                count = len(self.pairs)
                if self.codec == compression.NONE:
                    self._data = kernel.build_set(self.pairs)
                else:
                    self._data = message_set.encode(self.pairs, self.codec)
                self._count = count
                self.pairs = []
            return self._data

    def records(self) -> list[ProducerRecord]:
        """Its records as they were serialized, while it is not completed."""
        decoded = message_set.decode(self.message_set())
        return [ProducerRecord(self.tp.topic, m.value, m.key, self.tp.partition) for m in decoded]

    def complete(self, base_offset: int, error: KafkaError | None = None) -> None:
        """Tell everybody who waits, then call the callbacks in order. Called once."""
        with self._build_lock:
            self._count = self.count
            self.base_offset, self.error = base_offset, error
            self.pairs = []
            self._data = None
            late, self._late_callbacks = self._late_callbacks, []
            self._done.set()
        callbacks, self.callbacks = self.callbacks, []
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
                log.exception("Error executing user-provided callback on message for %s", self.tp)
        for call in late:
            call()

    def when_done(self, call: Callable[[], Any]) -> None:
        """`call()` once it is done, in the sender's thread; at once if it is."""
        with self._build_lock:
            if not self._done.is_set():
                self._late_callbacks.append(call)
                return
        call()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done; False if that took more than `timeout` seconds."""
        return self._done.wait(timeout)

    def metadata(self, index: int) -> RecordMetadata:
        """Where record `index` of a batch that is done was stored; raises its error."""
        if self.error is not None:
            # Records share it: without this each raise would add to the traceback of the last.
            raise self.error.with_traceback(None)
        offset = NO_OFFSET if self.base_offset == NO_OFFSET else self.base_offset + index
        return RecordMetadata(self.tp.topic, self.tp.partition, offset)


_new_metadata = tuple.__new__
"""Half the time of RecordMetadata(…): one of these is made for every callback."""
