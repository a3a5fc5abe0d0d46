"""FetchedStream: fetched sets, and their reader's position in them, for both kinds of groups.

*Finished.* Commits store the positions of finished messages only; a subclass says when a message
is. A batch is finished as a whole when the next one is requested. Batches are cut and handed out
under the condition, since there are few of them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, Final, NamedTuple

from kafka08 import kernel
from kafka08.consumer.fetching.batch import BatchLimits, MessageBatch
from kafka08.consumer.fetching.fetched import next_offset_after
from kafka08.consumer.fetching.owned_partition import Chunk, OwnedPartition
from kafka08.errors import InvalidMessage
from kafka08.kernel import Columns
from kafka08.lifecycle import ProcessBound
from kafka08.protocol.message_set import fetched_unpacker
from kafka08.runtime import ClientRuntime
from kafka08.structs import NO_LEADER_EPOCH, TopicPartition

logger = logging.getLogger(__name__)

Decoder = Callable[[bytes], Any]

UNREADABLE: Final = (kernel.CorruptMessage, kernel.UnknownCodec)
NO_MESSAGES: Final = kernel.messages(b"", "", 0, 0, fetched_unpacker(0))


class Cut(NamedTuple):
    """How the current set is cut into batches, and where the next one starts."""

    limits: BatchLimits
    columns: Iterator[Columns]
    next_offset: int


class FetchedStream(ProcessBound):
    """One reader's sets. The fetchers offer them; a group takes partitions away, and closes it."""

    def __init__(
        self,
        *,
        runtime: ClientRuntime,
        capacity: int = 2,
        fetch_bytes: int = 0,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
        on_room: Callable[[], None] = lambda: None,
        timestamps: bool = False,
    ) -> None:
        """Fetching for this stream pauses while more than `capacity` sets wait; `on_room` is called
        when it may continue. `fetch_bytes`: see fetched_unpacker. `timestamps`: whether batches
        have a column of them."""
        self._timestamps = timestamps
        self._runtime = runtime
        self._monotonic = runtime.monotonic
        self._capacity = capacity
        self._unpack = fetched_unpacker(fetch_bytes)
        self._decoders = (key_decoder, value_decoder)
        self._on_room = on_room
        self._condition = runtime.condition()
        self._chunks: deque[Chunk] = deque()
        self._chunk: Chunk | None = None
        self._messages = NO_MESSAGES
        self._iterator = kernel.StreamIterator(NO_MESSAGES, runtime.monotonic, self._find_more)
        self._damaged: tuple[OwnedPartition, int] | None = None
        """The partition of the last InvalidMessage, and the offset after the message."""
        self._cut: Cut | None = None
        self._batch: MessageBatch | None = None
        """The batch in processing; None while messages are returned one by one."""
        self._waiting = False
        self._closed = False
        self._reader: object = None
        self._acknowledged = -1
        """Offset in the current set that the reader declared finished by committing while it
        processed that message; a later commit from another thread must not undo this."""

    def _abandon(self) -> None:
        self._condition = self._runtime.condition()
        self._iterator.limit = -inf

    # What a subclass decides

    def _find_more(self, give_up_at: float | None) -> float:
        """Wait until the iterator can go on. Returns when to give up, see StreamIterator."""
        raise NotImplementedError

    def _fence(self) -> None:
        """Stop the reader; returns when it takes no further message of the current set."""
        raise NotImplementedError

    @property
    def _is_reader(self) -> bool:
        """Whether the caller is the thread that reads."""
        raise NotImplementedError

    def _how_to_skip(self, topic_partition: TopicPartition, next_offset: int) -> str:
        """How to read on after a damaged message: the end of the error's text."""
        raise NotImplementedError

    # Sets and positions

    def _find_messages(self) -> bool | None:
        """True if the current set has unread messages, or a new one was begun; None if there is no
        set. The iterator decodes, which may take long."""
        damage = self._iterator.damage
        if self._chunk is not None and damage is not None:
            raise self._unreadable(damage) from damage
        if self._chunk is not None and self._messages is not self._iterator.ended:
            return True
        self._finish_chunk()
        if not self._chunks:
            return None
        self._begin_next_chunk()
        self._note_room()
        return True

    def _take_batch(self, limits: BatchLimits) -> MessageBatch | None:
        """A batch of the current or a waiting set; None if there is none."""
        while True:
            if self._chunk is not None:
                try:
                    found = self._next_columns(self._chunk, limits)
                except UNREADABLE as error:
                    raise self._unreadable(error) from error
                if found is not None:
                    return self._hand_out(self._chunk, *found)
            self._finish_chunk()
            if not self._chunks:
                return None
            self._begin_next_chunk()
            self._note_room()

    def _note_room(self) -> None:
        """Let fetching go on if it may: a fetcher looks at all of its partitions then."""
        if self.has_room:
            self._on_room()

    def _next_columns(self, chunk: Chunk, limits: BatchLimits) -> tuple[Cut, Columns] | None:
        """The next rows of the current set, after those that were returned, and where they come
        from."""
        start = max(self._offset_after_current(), chunk.from_offset)
        cut, self._cut = self._cut, None  # which a signal handler that raises leaves behind
        if cut is None or cut.limits != limits or cut.next_offset != start:
            columns = kernel.column_batches(
                chunk.data,
                start,
                None,
                self._unpack,
                verify_crc=not chunk.verified,
                max_rows=limits.max_messages,
                max_bytes=limits.max_bytes,
                timestamps=self._timestamps,
            )
            cut = Cut(limits, columns, start)
        for found in cut.columns:
            if found.count:
                return cut, found
        return None

    def _hand_out(self, chunk: Chunk, cut: Cut, columns: Columns) -> MessageBatch:
        batch = MessageBatch(chunk.partition.topic_partition, columns)
        following = batch.last_offset + 1
        cut = cut._replace(next_offset=following)
        # A single message that is requested next is the one after the batch.
        messages = self._messages_of(chunk, following)
        # No call between these: a signal handler sees all or none.
        self._batch = batch
        self._cut = cut
        self._acknowledged = -1
        self._messages = self._iterator.messages = messages
        return batch

    def _take_back_batch(self, before: MessageBatch | None) -> None:
        """A signal handler has raised, perhaps after a batch was handed out and before the reader
        had it: hand it out again. `before`: the batch that the reader had."""
        with self._condition:
            chunk, batch = self._chunk, self._batch
            if chunk is None or batch is None or batch is before:
                return
            first = batch.first_offset
            chunk.partition.consumed_offset = max(chunk.partition.consumed_offset, first)
            self._chunk = chunk = chunk._replace(from_offset=first)
            self._messages = self._iterator.messages = self._messages_of(chunk, first)
            self._batch = self._cut = None

    def _begin_next_chunk(self) -> None:
        """Continue with the first waiting set. It waits until all else is done: a signal handler
        that raises, at one of the calls, loses no set."""
        chunk = self._chunks[0]
        partition = chunk.partition
        if chunk.error is not None:
            partition.fetch_again()
            self._chunks.popleft()
            raise chunk.error
        if chunk.from_offset > partition.consumed_offset:
            logger.warning(
                "%s: messages from %d to %d are gone; reading continues at %d",
                partition.topic_partition,
                partition.consumed_offset,
                chunk.from_offset - 1,
                chunk.from_offset,
            )
        # Below it, too: auto.offset.reset may have chosen a position before messages that were
        # fetched already.
        partition.consumed_offset = chunk.from_offset
        partition.consumed_epoch = chunk.epoch
        messages = self._messages_of(chunk, chunk.from_offset)
        self._iterator.damage = None
        self._messages = self._iterator.messages = messages
        self._chunk = chunk
        self._chunks.popleft()

    def _messages_of(self, chunk: Chunk, from_offset: int) -> kernel.MessageIterator:
        return kernel.messages(
            chunk.data,
            *chunk.partition.topic_partition,
            from_offset,
            self._unpack,
            *self._decoders,
            verify_crc=not chunk.verified,
        )

    def _finish_chunk(self) -> None:
        chunk = self._chunk
        if chunk is not None:
            chunk.partition.consumed_offset = max(chunk.next_offset, self._offset_after_current())
            self._drop_chunk()

    def _drop_chunk(self) -> None:
        self._chunk = None
        self._messages = self._iterator.messages = NO_MESSAGES
        self._iterator.damage = None
        self._cut = None
        self._batch = None
        self._acknowledged = -1

    def _unreadable(self, error: Exception) -> InvalidMessage:
        """The error for a broken message. It will be fetched once more, and never skipped."""
        chunk = self._chunk
        assert chunk is not None, "an error comes from a set"
        partition = chunk.partition
        # A reader that reaches a broken message has finished the one before it.
        partition.consumed_offset = max(self._offset_after_current(), partition.consumed_offset)
        self._drop_chunk()
        self._chunks = deque(c for c in self._chunks if c.partition is not partition)
        partition.fetch_again()
        self._on_room()
        offset, next_offset = partition.consumed_offset, next_offset_after(error)
        self._damaged = None if next_offset is None else (partition, next_offset)
        tp = partition.topic_partition
        how_to_skip = "" if next_offset is None else self._how_to_skip(tp, next_offset)
        return InvalidMessage(f"{tp}, at or after offset {offset}: {error}{how_to_skip}")

    def skip_damaged(self) -> tuple[TopicPartition, int] | None:
        """See KafkaStream.skip_damaged."""
        with self._condition:
            if self._damaged is None:
                return None
            partition, next_offset = self._damaged
            self._damaged = None
            reading = self._chunk is not None and self._chunk.partition is partition
            if reading or partition.revoked or partition.consumed_offset >= next_offset:
                return None
            self._chunks = deque(c for c in self._chunks if c.partition is not partition)
            partition.consumed_offset = next_offset
            partition.fetch_again()
        self._on_room()
        return partition.topic_partition, next_offset

    @property
    def is_closed(self) -> bool:
        """Whether its connector has closed it."""
        return self._closed

    @property
    def has_room(self) -> bool:
        """Whether another set may be fetched for it: `capacity` sets may wait meanwhile."""
        return len(self._chunks) <= self._capacity

    @property
    def is_waited_for(self) -> bool:
        """Whether its reader has read all fetched messages and waits for more."""
        return self._waiting and not self._chunks

    @property
    def was_asked(self) -> bool:
        """Whether any thread has ever requested a message of it."""
        return self._reader is not None

    @property
    def has_messages(self) -> bool:
        """Whether fetched sets are waiting for its reader."""
        return bool(self._chunks)

    def offer(self, chunk: Chunk) -> bool:
        """Hand over a fetched set and move the partition's fetch position after it; False if the
        set is out of date by now. Never waits."""
        partition = chunk.partition
        with self._condition:
            if self._closed or partition.revoked or partition.fetch_offset != chunk.from_offset:
                return False
            partition.fetch_offset = chunk.next_offset
            partition.fetch_epoch = chunk.epoch
            partition.held = chunk.hold
            self._chunks.append(chunk)
            self._condition.notify_all()
        return True

    def reset(
        self,
        partition: OwnedPartition,
        from_offset: int,
        to_offset: int,
        epoch: int = NO_LEADER_EPOCH,
    ) -> bool:
        """Move the fetch position of a partition whose `from_offset` does not exist."""
        with self._condition:
            if partition.revoked or partition.fetch_offset != from_offset:
                return False
            partition.start_at(to_offset, epoch)
        return True

    def confirm(self, partition: OwnedPartition, offset: int) -> None:
        """The leader has what was fetched up to `offset`."""
        with self._condition:
            if partition.fetch_offset == offset:
                partition.confirm()

    def positions(self, partitions: Iterable[OwnedPartition]) -> dict[OwnedPartition, int]:
        """The first unfinished offset of each of these partitions of this stream, all at one
        moment: if they were read one after the other, a set finished in between would count as not
        begun. For the message in processing see `position`."""
        with self._condition:
            found = {partition: partition.consumed_offset for partition in partitions}
            current = self.position()
            if current is not None and current[0] in found:
                found[current[0]] = current[1]
            return found

    def position(self) -> tuple[OwnedPartition, int] | None:
        """The partition being read and its first unfinished offset; None between two sets. A call
        in the reading thread declares the message that it is processing finished."""
        with self._condition:
            if self._chunk is None:
                return None
            # A signal handler may run in the reading thread while that takes its next message.
            if self._is_reader and not self._iterator.busy:
                self._acknowledged = self._offset_after_current() - 1
            return self._chunk.partition, self._unfinished()

    def handed_out(self) -> tuple[OwnedPartition, int] | None:
        """The partition being read and the offset after the last returned message; None between
        two sets. Unlike `position` it declares nothing finished."""
        with self._condition:
            if self._chunk is None:
                return None
            partition = self._chunk.partition
            return partition, self._offset_after_current() or partition.consumed_offset

    def wake(self) -> None:
        """Have a waiting reader check the session and the stall again."""
        with self._condition:
            self._condition.notify_all()

    def revoke(self, partitions: Iterable[OwnedPartition]) -> None:
        """Take partitions away. Afterwards none of their messages is returned any more, and their
        `consumed_offset` is final: an unfinished message in processing stays uncommitted."""
        with self._condition:
            self._fence()
            for partition in partitions:
                partition.revoked = True
            if self._chunk is not None and self._chunk.partition.revoked:
                self._chunk.partition.consumed_offset = self._unfinished()
                self._drop_chunk()
            self._chunks = deque(c for c in self._chunks if not c.partition.revoked)
        self._on_room()

    def close(self) -> None:
        """End the stream. A message in processing that its reader has not committed stays
        unfinished: the caller may be a signal handler, or handle the reader's own error."""
        with self._condition:
            self._fence()
            self._closed = True
            if self._chunk is not None:
                self._chunk.partition.consumed_offset = self._unfinished()
                self._drop_chunk()
            self._chunks.clear()
            self._condition.notify_all()

    def _unfinished(self) -> int:
        """First unfinished offset of the current set's partition."""
        assert self._chunk is not None
        behind = self._offset_after_current()
        if not behind:
            return self._chunk.partition.consumed_offset
        if self._acknowledged == behind - 1:
            return behind
        if self._messages.position_offset < 0 and self._batch is not None:
            return self._batch.first_offset
        return behind - 1

    def _offset_after_current(self) -> int:
        """The offset after the message or batch of the current set that the reader is processing; 0
        if there is none."""
        handed_out = self._messages.position_offset
        if handed_out < 0 and self._batch is not None:
            return self._batch.last_offset + 1
        return handed_out + 1
