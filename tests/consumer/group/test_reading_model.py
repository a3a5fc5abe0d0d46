"""Polls, iterations, batches, seeks, pauses and commits in any order, against a model: each
partition's messages come in order and once, and unfinished ones are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.fetching.owned_partition import Chunk, Position
from kafka08.consumer.group.polled_stream import Message
from kafka08.errors import DeserializationFailed
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition
from tests.consumer.group.test_partitions import A, B, found, partitions_of

T = TypeVar("T")
NOW = 0.0
BAD_EACH = 4
"""Every fourth message of B has a value that the deserializer refuses."""
partitions_ = st.sampled_from([A, B])


def value_at(tp: TopicPartition, offset: int) -> bytes:
    return b"bad" if tp == B and offset % BAD_EACH == BAD_EACH - 1 else b"%d" % offset


def refuse_bad(topic: str, data: bytes) -> bytes:
    if data == b"bad":
        raise ValueError("bad")
    return data


class ReadingModel(RuleBasedStateMachine):
    """`expected` has the next offset of each partition, `unfinished` the first unfinished one of
    those that have some. An iteration is kept across all other calls."""

    @initialize()
    def start(self) -> None:
        self.partitions, self.stream, _ = partitions_of(A, B)
        self.stream._deserializers = (None, refuse_bad)
        found(self.partitions, p0=0, p1=0)
        self.expected = {A: 0, B: 0}
        self.unfinished: dict[TopicPartition, int] = {}
        self.iteration: Iterator[Message] = iter(())

    @rule(number=st.integers(0, 1), count=st.integers(1, 9), codec=st.integers(0, 1))
    def fetch(self, number: int, count: int, codec: int) -> None:
        for owned in self.partitions.owned[number : number + 1]:
            if not owned.revoked and not owned.held and owned.sink.has_room:
                tp, begin = owned.topic_partition, owned.fetch_offset
                values = [(None, value_at(tp, begin + n)) for n in range(count)]
                data = message_set.encode(values, codec, begin)
                assert self.stream.offer(Chunk(owned, data, begin, begin + count))

    @rule(limit=st.integers(1, 12))
    def poll(self, limit: int) -> None:
        self._begin_call()
        for message in self._until_bad(lambda: self.stream.take(limit, NOW)) or []:
            self._returned(TopicPartition("t", message.partition), message.offset)

    @rule(limit=st.integers(1, 6))
    def poll_batch(self, limit: int) -> None:
        self._begin_call()
        batch = self.stream.take_batch(BatchLimits(limit), NOW)
        for offset in batch.offsets if batch is not None else ():
            assert batch is not None
            self._returned(batch.topic_partition, offset)

    @rule()
    def iterate(self) -> None:
        """One message of an iteration, which continues an earlier one if that has not ended."""
        message = self._until_bad(lambda: next(self.iteration, None))
        if message is None:
            self._begin_call()
            self.iteration = self.stream.iterate(NOW) or iter(())
            message = self._until_bad(lambda: next(self.iteration, None))
        self.unfinished.clear()
        if message is not None:
            self._returned(TopicPartition("t", message.partition), message.offset)

    @rule()
    def poll_without_reading(self) -> None:
        """It raises before that, WokenUp for instance."""
        self._begin_call()

    @rule(tp=partitions_, offset=st.integers(0, 40))
    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.partitions.seek({tp: Position(offset)})
        self.expected[tp] = offset
        self.unfinished.pop(tp, None)

    @rule(tp=partitions_)
    def pause_or_resume(self, tp: TopicPartition) -> None:
        if tp in self.partitions.paused:
            self.partitions.resume([tp])
        else:
            self.partitions.pause([tp])

    @rule()
    def commit(self) -> None:
        self.stream.finish()
        self.unfinished.clear()

    @precondition(lambda self: self.unfinished)
    @rule(data=st.data())
    def commit_offset(self, data: st.DataObject) -> None:
        tp = data.draw(st.sampled_from(sorted(self.unfinished)))
        offset = data.draw(st.integers(self.unfinished[tp], self.expected[tp]))
        self.stream.finish_before({tp: offset})
        self.unfinished[tp] = offset

    @invariant()
    def positions_are_behind_what_was_returned(self) -> None:
        assert self.expected == self.partitions.positions()

    @invariant()
    def commits_are_before_what_is_unfinished(self) -> None:
        assert {**self.expected, **self.unfinished} == self.partitions.finished()

    def _begin_call(self) -> None:
        """As the Poller does before each poll, and an iteration before each set."""
        self.stream.finish()
        self.stream.is_called = False
        self.unfinished.clear()

    def _returned(self, tp: TopicPartition, offset: int) -> None:
        assert self.expected[tp] == offset
        self.unfinished.setdefault(tp, offset)
        self.expected[tp] = offset + 1

    def _until_bad(self, read: Callable[[], T]) -> T | None:
        """The result of `read`; None at a message that the deserializer refuses."""
        try:
            return read()
        except DeserializationFailed as error:
            refused = {error.topic_partition: error.offset}
        assert refused.items() <= self.expected.items()
        return None


TestReading = ReadingModel.TestCase
TestReading.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
