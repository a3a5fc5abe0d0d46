"""PolledStream: the fetched sets of a KafkaConsumer, and its reader's position in them.

Only the reader's own thread revokes partitions, so it needs no fence. Another thread that needs the
reader uses `call`; the reader then returns to its consumer between two messages, and the consumer
does the work in the reader's thread.

*Finished.* Messages that were returned are unfinished until `finish`: those of a poll, a batch, or
the one message of an iteration. `positions` are behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from math import inf
from typing import Any, TypeVar

from kafka08.consumer.fetching.batch import BatchLimits, MessageBatch
from kafka08.consumer.fetching.owned_partition import Chunk, OwnedPartition
from kafka08.consumer.fetching.stream import UNREADABLE, FetchedStream
from kafka08.consumer.group.deserializers import Deserializer
from kafka08.errors import DeserializationFailed, KafkaError
from kafka08.kernel import MessageAndMetadata, MessageIterator
from kafka08.runtime import WAIT_S_MAX, ClientRuntime
from kafka08.structs import NO_OFFSET, TopicPartition

Message = MessageAndMetadata[Any, Any]
T = TypeVar("T")


class PolledStream(FetchedStream):
    """The reader is the thread that uses the consumer; any thread may `call`.

    is_called   the reader shall return to its consumer, which clears this first
    polls       how often `finish` was called: at the start of each poll
    """

    def __init__(
        self,
        *,
        runtime: ClientRuntime,
        fetch_bytes: int,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        on_room: Callable[[], None],
    ) -> None:
        super().__init__(runtime=runtime, fetch_bytes=fetch_bytes, on_room=on_room, timestamps=True)
        self.is_called = False
        self.polls = 0
        self._deserializers = (key_deserializer, value_deserializer)
        self._unfinished_from: dict[TopicPartition, int] = {}
        """The first offset of each partition that a poll or batch has returned."""
        self._iterated: MessageIterator | None = None
        """The messages of `iterate`, until the next poll. The last one is unfinished until
        `finish`."""
        self._iterated_of: TopicPartition | None = None
        self._iterations = 0
        self._finished_offset = NO_OFFSET
        """The last finished offset of this iterator."""

    def call(self) -> None:
        """Make the reader return to its consumer."""
        self.is_called = True
        self._iterator.limit = -inf
        self.wake()

    # ---------------------------------------------------------------------------------- reading

    def take(self, limit: int, give_up_at: float) -> list[Message] | None:
        """Up to `limit` messages, as soon as some arrive; None after `give_up_at`, or when the
        reader is called. Raises like `iterate`, but first returns the messages before the fault.
        Call `finish` first."""
        self._leave_iteration()
        taken: list[Message] = []
        begun: dict[OwnedPartition, int] = {}
        try:
            while len(taken) < limit:
                if not self._await_messages(-inf if taken else give_up_at, bool(taken)):
                    break
                assert self._chunk is not None, "there are messages"
                partition, position = self._chunk.partition, self._position()
                # A set may begin before the one that was read: see FetchedStream.reset.
                begun[partition] = min(begun.get(partition, position), position)
                wanted = limit - len(taken)
                before = len(taken)
                try:
                    taken.extend(islice(self._messages, wanted))
                except UNREADABLE as error:
                    self._iterator.damage = error
                    if taken:
                        break
                except Exception as error:  # the user's deserializer
                    failed = self._failed(error)
                    if taken:
                        break
                    raise failed from error
                else:
                    if len(taken) - before < wanted:
                        self._iterator.ended = self._messages
            if taken:  # an exhausted set may have been begun, and nothing taken from it
                for partition, offset in begun.items():
                    self._unfinished_from[partition.topic_partition] = offset
        except KafkaError:
            raise  # the position is where it was
        except BaseException:
            self._take_back(begun)
            raise
        return taken or None

    def take_batch(self, limits: BatchLimits, give_up_at: float) -> MessageBatch | None:
        """A batch within these limits; None as in `take`."""
        self._leave_iteration()
        before = self._batch
        try:
            batch = self._await(partial(self._take_batch, limits), give_up_at)
            if batch is not None and self._chunk is not None:
                self._unfinished_from[batch.topic_partition] = batch.first_offset
        except BaseException:
            self._take_back_batch(before)
            raise
        return batch

    def iterate(self, give_up_at: float) -> Iterator[Message] | None:
        """An iterator over the rest of a set; None as in `take`. It ends early when the reader is
        called, polls, or leaves the set, and has no message for another thread. It raises
        InvalidMessage and DeserializationFailed."""
        if not self._await_messages(give_up_at, False):
            return None
        assert self._chunk is not None, "there are messages"
        self._iterated = self._messages
        self._iterations += 1
        self._iterated_of = self._chunk.partition.topic_partition
        self._finished_offset = self._messages.position_offset
        self._iterator.claim()
        self._iterator.limit = inf
        if self.is_called:  # looked at last: `call` sets both in the other order
            self._iterator.limit = -inf
        return self._iterator

    def _find_more(self, give_up_at: float | None) -> float:
        """The end of an iterated set."""
        self._check_process()
        damage = self._iterator.damage
        if damage is not None and not isinstance(damage, UNREADABLE):  # the user's deserializer
            self._iterator.damage = None
            raise self._failed(damage) from damage
        raise StopIteration

    def _leave_iteration(self) -> None:
        self._iterator.limit = -inf
        self._iterated = None

    def finish(self) -> None:
        """The user has finished the returned messages."""
        self.polls += 1
        self._unfinished_from.clear()
        if self._iterated is not None:
            self._finished_offset = self._iterated.position_offset

    def finish_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The user has finished the returned messages before these offsets."""
        for tp, offset in offsets.items():
            if tp in self._unfinished_from:
                self._unfinished_from[tp] = max(self._unfinished_from[tp], offset)
            if tp == self._iterated_of:
                self._finished_offset = max(self._finished_offset, offset - 1)

    # -------------------------------------------------------------------------------- positions

    def position_of(self, partition: OwnedPartition) -> int:
        """The offset behind the messages of `partition` that were returned."""
        return self.positions([partition])[partition]

    @property
    def unfinished_from(self) -> dict[TopicPartition, int]:
        """partition → the first offset that was returned and is not finished; it may be the
        partition's position."""
        messages = self._iterated
        if messages is None or messages.position_offset <= self._finished_offset:
            return self._unfinished_from
        assert self._iterated_of is not None, "it is set with the other"
        return {self._iterated_of: messages.position_offset}

    def forget_unfinished(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions continue at another position, without their unfinished messages."""
        for tp in partitions:
            self._unfinished_from.pop(tp, None)
            if tp == self._iterated_of:
                self._leave_iteration()
                self._iterated_of = None

    def revoke(self, partitions: Iterable[OwnedPartition]) -> None:
        """Also ends an iteration, which may be in a set of these partitions: the user takes them
        away between two of its messages."""
        super().revoke(partitions)
        self.call()

    @property
    def progress(self) -> object:
        """A value that changes whenever the reader takes another message from an iteration."""
        return self._iterations, self._messages.position_offset

    def wait_until(self, done: Callable[[], bool], give_up_at: float) -> bool:
        """Wait until `done()`; False after `give_up_at`. A change of its result needs a `wake`."""
        with self._condition:
            while not done():
                remaining = give_up_at - self._monotonic()
                if remaining <= 0:
                    return False
                self._condition.wait(min(remaining, WAIT_S_MAX))
        return True

    # -------------------------------------------------------------------------------- its parts

    def _fence(self) -> None:
        """Does nothing: the caller is the reader."""

    @property
    def _is_reader(self) -> bool:
        """Always true: the one thread that uses the consumer is the reader."""
        return True

    def _await(self, take: Callable[[], T | None], give_up_at: float) -> T | None:
        """The first result of `take` that is not None; None if the reader is called, or after
        `give_up_at`."""
        with self._condition:
            self._reader = self._runtime.current_task()
            while True:
                taken = take()
                if taken is not None or self.is_called or self._closed:
                    return taken
                remaining = give_up_at - self._monotonic()
                if remaining <= 0:
                    return None
                self._waiting = True
                try:
                    self._condition.wait(min(remaining, WAIT_S_MAX))
                finally:
                    self._waiting = False

    def _await_messages(self, give_up_at: float, has_some: bool) -> bool:
        """Whether the current set has messages. With `has_some` messages already, an error in
        place of the next set is not raised: that set will be fetched again."""
        try:
            return bool(self._await(self._find_messages, give_up_at))
        except KafkaError:
            if has_some:
                return False
            raise

    def _position(self) -> int:
        """The position in the current set's partition."""
        assert self._chunk is not None
        return max(self._offset_after_current(), self._chunk.partition.consumed_offset)

    def _messages_of(self, chunk: Chunk, from_offset: int) -> MessageIterator:
        topic = chunk.partition.topic_partition.topic
        key, value = self._deserializers
        self._decoders = (key and partial(key, topic), value and partial(value, topic))
        return super()._messages_of(chunk, from_offset)

    def _how_to_skip(self, topic_partition: TopicPartition, next_offset: int) -> str:
        return (
            ". If that remains, continue after it with skip_damaged(), or "
            f"seek({topic_partition!r}, {next_offset})"
        )

    def _failed(self, error: Exception) -> DeserializationFailed:
        """The error for a message on which a deserializer failed. The position stays before it."""
        chunk = self._chunk
        assert chunk is not None, "a message comes out of a set"
        tp = chunk.partition.topic_partition
        offset = self._messages.next_offset - 1
        chunk.partition.consumed_offset = offset
        self._chunk = chunk._replace(from_offset=offset)
        self._messages = self._iterator.messages = self._messages_of(chunk, offset)
        self._leave_iteration()
        self._batch = None
        return DeserializationFailed(
            f"{tp}, offset {offset}: a deserializer raised {error!r}. The position stays there; "
            f"skip it with seek({tp!r}, {offset + 1})",
            tp,
            offset,
        )

    def _take_back(self, back: Mapping[OwnedPartition, int]) -> None:
        """Undo a `take` that raised: fetch again from these offsets."""
        with self._condition:
            if self._chunk is not None and self._chunk.partition in back:
                self._drop_chunk()
            for partition, offset in back.items():
                if not partition.revoked:
                    partition.consumed_offset = offset
                    partition.fetch_again()
            self._chunks = type(self._chunks)(
                chunk for chunk in self._chunks if chunk.partition not in back
            )
        self._on_room()
