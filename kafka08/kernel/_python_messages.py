"""Iterates over the messages of a set, and decompresses its wrappers (twin).

Source: kafka.message.ByteBufferMessageSet.internalIterator and kafka.consumer.ConsumerIterator
0.8.2.2; inner offsets and timestamps of magic 1 as in
org.apache.kafka.common.record.RecordsIterator 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from threading import get_ident
from typing import Any, Generic, TypeVar

from kafka08.format import Batch, Message, RecordFormat, batch_at, format_of, impossible_size
from kafka08.format.batch import Header
from kafka08.kernel._python_sets import (
    MAX_OFFSET,
    check_codec,
    check_crc,
    codec_of,
    fields,
    signed64,
    timestamp_of,
    timestamp_type_of,
    walk,
)
from kafka08.kernel.types import (
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC_POSITION,
    MAX_NESTING,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    NO_TIMESTAMP_TYPE,
    Buffer,
    CorruptMessage,
    Decoder,
    Decompress,
    Unpacker,
)

K = TypeVar("K")
V = TypeVar("V")


class MessageAndMetadata(Generic[K, V]):
    """One message as a consumer sees it. Key and value are decoded, `bytes` without a decoder; None
    is null.

    `message` is `value` under its name in Kafka 0.8. `timestamp` is in milliseconds since 1970, -1
    if the message has none; `timestamp_type` is CREATE_TIME (0: set by the producer),
    LOG_APPEND_TIME (1: by the broker) or NO_TIMESTAMP_TYPE (-1: a message of magic 0). `headers`
    are (name, value) pairs, which records of 0.11 may have.
    """

    __slots__ = (
        "headers",
        "key",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: K | None,
        value: V | None,
        timestamp: int = NO_TIMESTAMP,
        timestamp_type: int = NO_TIMESTAMP_TYPE,
        headers: tuple[Header, ...] = (),
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.headers = headers

    @property
    def message(self) -> V | None:
        return self.value

    def _fields(self) -> tuple[object, ...]:
        return (
            self.topic,
            self.partition,
            self.offset,
            self.key,
            self.value,
            self.timestamp,
            self.timestamp_type,
            self.headers,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageAndMetadata):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __reduce__(self) -> tuple[type[MessageAndMetadata[K, V]], tuple[object, ...]]:
        return MessageAndMetadata, self._fields()

    def __repr__(self) -> str:
        time = ""
        if self.timestamp_type != NO_TIMESTAMP_TYPE:
            time = f", timestamp={self.timestamp}, timestamp_type={self.timestamp_type}"
        if self.headers:
            time += f", headers={self.headers!r}"
        return (
            f"MessageAndMetadata(topic={self.topic!r}, partition={self.partition}, "
            f"offset={self.offset}, key={self.key!r}, value={self.value!r}{time})"
        )


class Frame:
    """One level of an iteration into wrappers.

    view         the set at this level
    position     the position of the next entry
    shift        added to its offsets, which are relative inside a magic-1 wrapper
    end_offset   the next offset once this level is read, that after its wrapper; 0 at the top
    timestamp_ms, timestamp_type   of its wrapper; NO_TIMESTAMP_TYPE at the top and inside a
                 wrapper of magic 0
    """

    __slots__ = ("end_offset", "position", "shift", "timestamp_ms", "timestamp_type", "view")

    def __init__(
        self,
        view: memoryview,
        shift: int = 0,
        end_offset: int = 0,
        timestamp_ms: int = NO_TIMESTAMP,
        timestamp_type: int = NO_TIMESTAMP_TYPE,
    ) -> None:
        self.view = view
        self.position = 0
        self.shift = shift
        self.end_offset = end_offset
        self.timestamp_ms = timestamp_ms
        self.timestamp_type = timestamp_type


class Records:
    """The messages of a batch that is being read. An error comes again with each call."""

    def __init__(self, batch: Batch, messages: Iterator[Message]) -> None:
        self.batch = batch
        self._messages = messages
        self._error: ValueError | None = None

    def next(self) -> Message | None:
        if self._error is not None:
            raise self._error
        try:
            return next(self._messages, None)
        except ValueError as error:
            self._error = error
            raise


def after(offset: int) -> int:
    """The next offset; the largest offset itself if there is none."""
    return min(offset + 1, MAX_OFFSET)


class DeepWalk:
    """The messages of a set with from_offset <= offset < until_offset; decompresses wrappers as it
    reaches them.

    `next_offset` is the offset for the next fetch: above all messages so far, and `until_offset`
    once no message below it can follow. After an error, the next call meets the same entry again.
    `position` is the start of the current outermost entry. Outermost wrappers with a timestamp
    below `min_timestamp_ms` are skipped.
    """

    def __init__(
        self,
        data: Buffer,
        from_offset: int,
        until_offset: int | None,
        decompress: Decompress,
        verify_crc: bool,
        min_timestamp_ms: int | None = None,
    ) -> None:
        self.next_offset = from_offset
        self.position = 0
        self._from_offset = from_offset
        self._until_offset = MAX_OFFSET if until_offset is None else until_offset
        self._decompress = decompress
        self._verify_crc = verify_crc
        self._min_timestamp_ms = min_timestamp_ms
        self._left_bytes = 0
        self._frames = [Frame(memoryview(data))]
        self._records: Records | None = None

    def next(self) -> Message | None:
        """The next message; None at the end."""
        while self._frames and self.next_offset < self._until_offset:
            if self._records is not None:
                message = self._next_record(self._records)
                if message is not None:
                    return message
                continue
            frame = self._frames[-1]
            size = self._next_size(frame)
            if not size:
                self._frames.pop()
                self.next_offset = max(self.next_offset, frame.end_offset)
                continue
            if len(self._frames) == 1 and self._step_batch(frame):
                continue
            (stored_offset, _) = ENTRY_HEADER.unpack_from(frame.view, frame.position)
            message = self._step(frame, signed64(stored_offset + frame.shift), size)
            if message is not None:
                return message
        return None

    def _next_size(self, frame: Frame) -> int:
        """Bytes of the frame's next entry; 0 at its end."""
        view, at = frame.view, frame.position
        outermost = len(self._frames) == 1
        if outermost:
            self.position = at
        if at == len(view):
            return 0
        offset = -1
        if len(view) - at >= ENTRY_HEADER_BYTES:
            stored_offset, size = ENTRY_HEADER.unpack_from(view, at)
            offset = signed64(stored_offset + frame.shift)
            if size < MIN_MESSAGE_BYTES:
                raise self._corrupt(offset, f"message with corrupt size {size}")
            if size <= len(view) - at - ENTRY_HEADER_BYTES:
                return ENTRY_HEADER_BYTES + int(size)
        if outermost:
            return 0
        raise self._corrupt(offset, "partial message inside a compressed set")

    def _step_batch(self, frame: Frame) -> bool:
        """Open or skip the next entry if it is a batch of records."""
        form = format_of(frame.view[frame.position + MAGIC_POSITION])
        if not isinstance(form, RecordFormat):
            return False
        batch = batch_at(frame.view, frame.position)
        if batch is None:
            raise impossible_size(frame.view, frame.position)
        if batch.last_offset >= self._from_offset:
            if self._verify_crc:
                form.check_crc(frame.view, batch)
            check_codec(batch)
            if batch.base_offset >= self._until_offset:
                self.next_offset = self._until_offset
                return True
            if batch.is_control:
                self._end(batch)
            elif not self._is_too_old(batch.max_timestamp_ms):
                self._records = self._open(form, frame.view, batch)
        frame.position = batch.end
        return True

    def _open(self, form: RecordFormat, view: memoryview, batch: Batch) -> Records:
        def unpack(codec: int, value: memoryview) -> Buffer:
            try:
                return self._decompressed(codec, value)
            except ValueError as error:
                reason = f"cannot be decompressed: {error}"
                raise self._corrupt(batch.last_offset, reason) from error

        return Records(batch, form.records(view, batch, unpack))

    def _next_record(self, records: Records) -> Message | None:
        """The next message of a batch; None at its end, or if it is skipped."""
        message = records.next()
        if message is None:
            self._records = None
            self._end(records.batch)
            return None
        if message.offset >= self._until_offset:
            self.next_offset = self._until_offset
            return None
        if message.offset < self._from_offset:
            return None
        self.next_offset = max(self.next_offset, after(message.offset))
        return message

    def _end(self, batch: Batch) -> None:
        """The batch has no more messages."""
        self.next_offset = max(self.next_offset, min(after(batch.last_offset), self._until_offset))

    def _step(self, frame: Frame, offset: int, size: int) -> Message | None:
        """Read one entry. Returns its message, or None if it was skipped or decompressed."""
        view, at = frame.view, frame.position
        if offset < self._from_offset:
            frame.position += size
            return None
        try:
            if self._verify_crc:
                check_crc(view, at, offset, size)
            codec = codec_of(view, at)
            timestamp_ms, key, value = fields(view, at, offset, size)
        except CorruptMessage as error:
            raise self._corrupt(offset, error.reason) from None
        if codec:
            if self._is_too_old(timestamp_ms):
                frame.position += size
                return None
            inner = self._unpack(view, at, codec, offset, value)
            frame.position += size
            self._frames.append(inner)
            return None
        if offset >= self._until_offset:
            self.next_offset = self._until_offset
            return None
        frame.position += size
        self.next_offset = max(self.next_offset, after(offset))
        timestamp_type = timestamp_type_of(view, at)
        if NO_TIMESTAMP_TYPE not in (timestamp_type, frame.timestamp_type):
            timestamp_type = frame.timestamp_type
            if timestamp_type == LOG_APPEND_TIME:
                timestamp_ms = frame.timestamp_ms
        return Message(offset, key, value, timestamp_ms, timestamp_type)

    def _is_too_old(self, timestamp_ms: int) -> bool:
        if self._min_timestamp_ms is None or len(self._frames) > 1:
            return False
        return timestamp_ms < self._min_timestamp_ms

    def _unpack(
        self, view: memoryview, at: int, codec: int, offset: int, value: memoryview | None
    ) -> Frame:
        if value is None:
            raise self._corrupt(offset, "compressed message without a value")
        if len(self._frames) > MAX_NESTING:
            raise self._corrupt(offset, f"more than {MAX_NESTING} levels of compressed messages")
        try:
            inner = memoryview(self._decompressed(codec, value))
        except ValueError as error:
            raise self._corrupt(offset, f"cannot be decompressed: {error}") from error
        shift = 0
        if view[at + MAGIC_POSITION] == 1:
            try:
                *_, (_, last, _) = [(0, offset, 0), *walk(inner)]
            except CorruptMessage as error:
                raise self._corrupt(offset, error.reason) from None
            shift = max(0, signed64(offset - last))
        return Frame(
            inner, shift, after(offset), timestamp_of(view, at), timestamp_type_of(view, at)
        )

    def _decompressed(self, codec: int, value: memoryview) -> Buffer:
        decompress = self._decompress
        if not isinstance(decompress, Unpacker):
            return decompress(codec, value)
        if len(self._frames) == 1:
            self._left_bytes = decompress.max_bytes
        inner = decompress.function(codec, value, self._left_bytes)
        self._left_bytes -= len(inner)
        return inner

    def _corrupt(self, offset: int, reason: str) -> CorruptMessage:
        return CorruptMessage(self.position, offset, reason)


class MessageIterator:
    """Iterator of MessageAndMetadata over one fetched set.

    position_offset  offset of the last message returned, -1 before the first
    next_offset      the offset for the next fetch once the iterator is exhausted; before that, the
                     offset after the last message returned

    If a decoder raises, its message counts as read but not as returned: the next call continues
    after it. (A StopIteration of the decoder becomes a RuntimeError; otherwise it would look like
    the end of the set.) The next call raises any other error again.
    """

    def __init__(
        self,
        walk: DeepWalk,
        topic: str,
        partition: int,
        key_decoder: Decoder | None,
        value_decoder: Decoder | None,
    ) -> None:
        self.position_offset = -1
        self._walk = walk
        self._topic = topic
        self._partition = partition
        self._key_decoder = key_decoder
        self._value_decoder = value_decoder

    @property
    def next_offset(self) -> int:
        return self._walk.next_offset

    def __iter__(self) -> MessageIterator:
        return self

    def __next__(self) -> MessageAndMetadata[Any, Any]:
        found = self._walk.next()
        if found is None:
            raise StopIteration
        key = decode(found.key, self._key_decoder)
        value = decode(found.value, self._value_decoder)
        self.position_offset = found.offset
        return MessageAndMetadata(
            self._topic,
            self._partition,
            found.offset,
            key,
            value,
            found.timestamp_ms,
            found.timestamp_type,
            found.headers,
        )


class StreamIterator:
    """Iterator over the messages of a stream: those of one set after the other, until `limit`.

    messages   the current set; replace it when it is exhausted
    ended      `messages`, once it is exhausted
    damage     the Exception that it has raised: CorruptMessage, UnknownCodec, or a decoder's
    limit      no message is returned from this time of `clock` on: -inf at first; inf, no limit
    busy       whether the reader is between the comparison with `limit` and its message

    One thread at a time iterates. Another stops it by setting `limit` to -inf and then waiting
    until it is not busy: after that no message is returned, and the position of `messages` is
    exact.

    In a `for` loop over the compiled one, a signal handler that raises loses no message: it takes
    the message itself, and the interpreter runs no handler between that and the loop.
    """

    def __init__(
        self,
        messages: MessageIterator,
        clock: Callable[[], float],
        find_more: Callable[[float | None], float],
    ) -> None:
        """`find_more` is called when `take` returns None, and `take` after that again. It waits for
        another set or a later limit, or raises. It gets its last result for this message, None at
        first: when to give up, say."""
        self.messages = messages
        self.ended: MessageIterator | None = None
        self.damage: Exception | None = None
        self.limit = -inf
        self._reader = 0
        self._is_busy = False
        self._clock = clock
        self._find_more = find_more

    @property
    def busy(self) -> bool:
        return self._is_busy

    def __iter__(self) -> StreamIterator:
        return self

    def __next__(self) -> MessageAndMetadata[Any, Any]:
        give_up_at = None
        while (message := self.take()) is None:
            give_up_at = self._find_more(give_up_at)
        return message

    def claim(self) -> None:
        """Only the caller's thread gets messages from now on."""
        self._reader = get_ident()

    def take(self) -> MessageAndMetadata[Any, Any] | None:
        """The next message. None if the set is exhausted (then `ended` is set) or has raised
        (`damage`), `limit` has come, or another thread has claimed the messages."""
        if self._reader not in (0, get_ident()):
            return None
        self._is_busy = True
        try:
            limit = self.limit
            if limit != inf and self._clock() >= limit:
                return None
            for message in self.messages:
                return message
            self.ended = self.messages
        except Exception as error:  # noqa: BLE001 - `find_more` raises it
            self.damage = error
        finally:
            self._is_busy = False
        return None


class StreamLoop:
    """Iterates a StreamIterator, and keeps `owner` alive meanwhile."""

    def __init__(self, stream: StreamIterator, owner: object) -> None:
        self._stream = stream
        self.owner = owner

    def __iter__(self) -> StreamLoop:
        return self

    def __next__(self) -> MessageAndMetadata[Any, Any]:
        return self._stream.__next__()


def decode(data: memoryview | None, decoder: Decoder | None) -> object:
    if data is None:
        return None
    if decoder is None:
        return bytes(data)
    try:
        return decoder(bytes(data))
    except StopIteration as error:
        raise RuntimeError("a decoder raised StopIteration") from error


def messages(
    data: Buffer,
    topic: str,
    partition: int,
    from_offset: int,
    decompress: Decompress,
    key_decoder: Decoder | None = None,
    value_decoder: Decoder | None = None,
    verify_crc: bool = True,
    until_offset: int | None = None,
) -> MessageIterator:
    """The messages of a fetched set with from_offset <= offset < until_offset, in order.

    `decompress` decompresses wrappers. A partial entry at the end of `data` ends the iteration
    without an error. CorruptMessage for all other corrupt data (sizes, CRC, magic, lengths, a
    wrapper that cannot be decompressed or has a partial entry inside), UnknownCodec. `data` must
    not change meanwhile.
    """
    walk = DeepWalk(data, from_offset, until_offset, decompress, verify_crc)
    return MessageIterator(walk, topic, partition, key_decoder, value_decoder)


def find_timestamp(
    data: Buffer, target_ms: int, decompress: Decompress, from_offset: int = 0
) -> tuple[int, int] | None:
    """(offset, timestamp) of the first message from `from_offset` on whose timestamp is >=
    `target_ms`; None if there is none.

    Wrappers are decompressed only if their own timestamp is >= `target_ms`. CRCs are not verified;
    other errors as `messages`. Source: FileRecords.searchForTimestamp 0.10.2.2.
    """
    walk = DeepWalk(data, from_offset, None, decompress, False, target_ms)
    while (found := walk.next()) is not None:
        if found.timestamp_ms >= target_ms:
            return found.offset, found.timestamp_ms
    return None
