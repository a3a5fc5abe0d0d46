"""A poll, an iteration and a batch take messages of fetched sets, and leave the right offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.fetching.owned_partition import Chunk, OwnedPartition
from kafka08.consumer.group.polled_stream import Message, PolledStream
from kafka08.errors import DeserializationFailed, InvalidMessage, MessageTooLarge
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from tests.consumer.streams import InterruptedExit, chunk_of, partition_of
from tests.forking import in_child


def stream_of(
    value_deserializer: Callable[[str, bytes], object] | None = None,
) -> PolledStream:
    return PolledStream(
        runtime=THREADS,
        fetch_bytes=1024,
        key_deserializer=None,
        value_deserializer=value_deserializer,
        on_room=lambda: None,
    )


def offer(stream: PolledStream, partition: OwnedPartition, *values: bytes) -> None:
    assert stream.offer(chunk_of(partition, *values))


def values(messages: list[Message] | None) -> list[object]:
    return [message.value for message in messages or []]


NOW = 0.0


def iteration(*values: bytes) -> tuple[PolledStream, OwnedPartition, Iterator[Message]]:
    """A stream with one fetched set, its partition, and an iteration that has not begun."""
    stream = stream_of()
    partition = partition_of(stream)
    offer(stream, partition, *values)
    messages = stream.iterate(NOW)
    assert messages is not None
    return stream, partition, messages


def test_a_poll_takes_from_several_sets_up_to_its_limit() -> None:
    """The rest stays for the next poll."""
    stream = stream_of()
    first, second = partition_of(stream, 0), partition_of(stream, 1)
    offer(stream, first, b"a", b"b")
    offer(stream, second, b"c", b"d")
    assert values(stream.take(3, NOW)) == [b"a", b"b", b"c"]
    assert stream.positions([first, second]) == {first: 2, second: 1}
    assert values(stream.take(3, NOW)) == [b"d"]
    assert stream.take(3, NOW) is None


def test_messages_of_a_poll_are_unfinished_until_finish() -> None:
    """They are unfinished from the first offset of each partition on."""
    stream = stream_of()
    first, second = partition_of(stream, 0, 7), partition_of(stream, 1)
    offer(stream, first, b"a", b"b", b"c")
    offer(stream, second, b"d")
    offer(stream, first, b"e")
    stream.take(1, NOW)
    stream.finish()
    stream.take(9, NOW)
    assert stream.unfinished_from == {first.topic_partition: 8, second.topic_partition: 0}
    stream.finish()
    assert stream.unfinished_from == {}


def test_an_iteration_has_one_unfinished_message() -> None:
    """The last message is unfinished, and the position is behind it."""
    stream, partition, messages = iteration(b"a", b"b", b"c")
    assert [next(messages).offset, next(messages).offset] == [0, 1]
    assert stream.unfinished_from == {partition.topic_partition: 1}
    assert stream.position_of(partition) == 2
    stream.finish()
    assert stream.unfinished_from == {}


def test_after_a_commit_only_the_next_message_is_unfinished() -> None:
    """The commit finishes the messages up to the current one only."""
    stream, partition, messages = iteration(b"a", b"b", b"c")
    next(messages)
    stream.finish()
    assert stream.unfinished_from == {}
    next(messages)
    assert stream.unfinished_from == {partition.topic_partition: 1}


def test_offsets_finish_the_messages_before_them() -> None:
    """This holds for messages of a poll and of an iteration."""
    stream = stream_of()
    partition = partition_of(stream)
    tp = partition.topic_partition
    offer(stream, partition, b"a", b"b", b"c", b"d")
    stream.take(2, NOW)
    stream.finish_before({tp: 1})
    assert stream.unfinished_from == {tp: 1}
    stream.finish_before({tp: 0, TopicPartition("other", 0): 9})
    assert stream.unfinished_from == {tp: 1}
    stream.finish()
    messages = stream.iterate(NOW)
    assert messages is not None
    next(messages)
    stream.finish_before({tp: 2})
    assert stream.unfinished_from == {tp: 2}
    stream.finish_before({tp: 3})
    assert stream.unfinished_from == {}


def test_a_partition_that_continues_elsewhere_has_no_unfinished_message() -> None:
    """This holds for an iteration that returned a message of it, too."""
    stream = stream_of()
    first, second = partition_of(stream, 0), partition_of(stream, 1)
    offer(stream, first, b"a", b"b")
    messages = stream.iterate(NOW)
    assert messages is not None
    next(messages)
    stream.forget_unfinished([second.topic_partition])
    assert stream.unfinished_from == {first.topic_partition: 0}
    stream.forget_unfinished([first.topic_partition])
    assert stream.unfinished_from == {}


def test_a_poll_after_an_iteration_is_unfinished_as_a_whole() -> None:
    """Its messages are unfinished from the first offset of each partition on, also if the poll
    continues the set of the iteration."""
    stream, first, messages = iteration(b"a", b"b", b"c")
    second = partition_of(stream, 1)
    offer(stream, second, b"d")
    next(messages)
    stream.finish()
    assert values(stream.take(9, NOW)) == [b"b", b"c", b"d"]
    assert stream.unfinished_from == {first.topic_partition: 1, second.topic_partition: 0}


def test_a_called_iteration_ends_and_continues_where_it_was() -> None:
    """The consumer does its work between two messages."""
    stream, _, messages = iteration(b"a", b"b", b"c")
    assert next(messages).value == b"a"
    stream.call()
    assert list(messages) == []
    stream.is_called = False
    assert values(list(stream.iterate(NOW) or [])) == [b"b", b"c"]


def test_an_iteration_ends_when_its_user_takes_a_partition_away() -> None:
    """As a seek does, or a pause: the rest of the set must not follow."""
    stream, partition, messages = iteration(b"a", b"b", b"c")
    next(messages)
    stream.revoke([partition])
    assert list(messages) == []


def pause(stream: PolledStream, partition: OwnedPartition) -> None:
    """A poll that raises WokenUp follows."""
    stream.revoke([partition])
    stream.is_called = False


def seek_and_poll(stream: PolledStream, partition: OwnedPartition) -> None:
    """Polls the first message at another position of the partition."""
    pause(stream, partition)
    offer(stream, partition_of(stream, 0, 7), b"x", b"y")
    assert values(stream.take(1, NOW)) == [b"x"]


@pytest.mark.parametrize(
    ("act", "rest"),
    [
        (lambda stream, _: stream.take(1, NOW), [b"c"]),
        (lambda stream, _: stream.take_batch(BatchLimits(1), NOW), [b"c"]),
        (pause, []),
        (seek_and_poll, [b"y"]),
    ],
    ids=["poll", "batch", "pause", "seek and poll"],
)
def test_an_iteration_ends_when_its_user_polls(
    act: Callable[[PolledStream, OwnedPartition], object], rest: list[bytes]
) -> None:
    """Inside the loop: the next iteration continues behind the poll, and finishes its messages."""
    stream, partition, messages = iteration(b"a", b"b", b"c")
    next(messages)
    stream.finish()
    act(stream, partition)
    assert list(messages) == []
    stream.finish()
    assert values(list(stream.iterate(NOW) or [])) == rest


def test_progress_differs_with_each_message() -> None:
    """It is how the heartbeat thread knows that the reader is at work."""
    stream = stream_of()
    offer(stream, partition_of(stream), b"a", b"b")
    seen = {stream.progress}
    for _ in stream.iterate(NOW) or []:
        seen.add(stream.progress)
    assert len(seen) == 3


def test_progress_differs_with_each_set() -> None:
    """Sets that begin at the same offset are told apart, also if a later one takes the memory of an
    earlier one: a member that only iterates would be taken for one that has stopped polling."""
    stream, seen = stream_of(), []
    for number in range(50):
        offer(stream, partition_of(stream, number), b"a")
        for _ in stream.iterate(NOW) or []:
            seen.append(stream.progress)
    assert 50 == len(seen) == len(set(seen))


def refuse_bad(topic: str, data: bytes) -> str:
    if data == b"bad":
        raise ValueError(f"{topic}: bad")
    return data.decode()


def test_a_failing_deserializer_is_raised_again_until_the_position_moves() -> None:
    """Behind the messages in front of it; the error names topic, partition and offset."""
    stream = stream_of(refuse_bad)
    partition = partition_of(stream, 0, 5)
    offer(stream, partition, b"good", b"bad", b"good")
    assert values(stream.take(9, NOW)) == ["good"]
    for _ in range(2):
        with pytest.raises(DeserializationFailed, match=re.escape("[t,0], offset 6")) as failed:
            stream.take(9, NOW)
        assert (failed.value.topic_partition, failed.value.offset) == (TopicPartition("t", 0), 6)
        assert isinstance(failed.value.__cause__, ValueError)
        assert stream.position_of(partition) == 6


def test_an_iteration_meets_a_failing_deserializer_in_the_same_way() -> None:
    """Each iteration raises DeserializationFailed at that message."""
    stream = stream_of(refuse_bad)
    partition = partition_of(stream)
    offer(stream, partition, b"good", b"bad")
    for expected in ([0], []):
        messages = stream.iterate(NOW)
        assert messages is not None
        assert [next(messages).offset for _ in expected] == expected
        with pytest.raises(DeserializationFailed):
            next(messages)
        assert stream.position_of(partition) == 1


def test_a_failing_deserializer_moves_no_position_back() -> None:
    """After polls or a batch of its set: the next batch begins with the message that failed."""
    stream = stream_of(refuse_bad)
    partition = partition_of(stream)
    offer(stream, partition, b"good", b"good", b"bad", b"good")
    assert stream.take_batch(BatchLimits(1), NOW)
    assert values(stream.take(1, NOW)) == ["good"]
    with pytest.raises(DeserializationFailed, match="offset 2"):
        stream.take(1, NOW)
    assert stream.position_of(partition) == 2
    batch = stream.take_batch(BatchLimits(9), NOW)
    assert batch is not None
    assert batch.values() == [b"bad", b"good"]


def test_an_interrupted_poll_hands_nothing_out_and_loses_nothing() -> None:
    """A signal handler may raise in the middle: all of it is fetched again."""

    def interrupt(topic: str, data: bytes) -> bytes:
        if data == b"c":
            raise KeyboardInterrupt
        return data

    stream = stream_of(interrupt)
    first, second = partition_of(stream, 0), partition_of(stream, 1)
    offer(stream, first, b"a", b"b")
    offer(stream, second, b"c")
    with pytest.raises(KeyboardInterrupt):
        stream.take(9, NOW)
    assert stream.positions([first, second]) == {first: 0, second: 0}
    assert (first.fetch_offset, second.fetch_offset) == (0, 0)
    assert stream.unfinished_from == {}


def test_a_take_without_messages_has_returned_none() -> None:
    """A set that the poll before has read to its end may be begun once more; nothing of it counts
    as returned, or an error that is raised next would set the position."""
    stream = stream_of()
    partition = partition_of(stream)
    offer(stream, partition, b"a")
    assert values(stream.take(1, NOW)) == [b"a"]
    stream.finish()
    assert stream.take(1, NOW) is None
    assert stream.unfinished_from == {}


def test_an_interrupted_batch_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler may raise when the batch is ready: it is not behind the position."""
    stream = stream_of()
    partition = partition_of(stream)
    offer(stream, partition, b"a", b"b")
    monkeypatch.setattr(stream, "_condition", InterruptedExit(stream._condition))
    with pytest.raises(KeyboardInterrupt):
        stream.take_batch(BatchLimits(1), NOW)
    assert (stream.position_of(partition), stream.unfinished_from) == (0, {})
    assert values(stream.take(9, NOW)) == [b"a", b"b"]


def test_a_damaged_message_is_raised_behind_those_before_it() -> None:
    """Its set is fetched again."""
    stream = stream_of()
    partition = partition_of(stream)
    chunk = chunk_of(partition, b"good", b"spoiled")
    data = bytearray(chunk.data)
    data[-1] ^= 1
    assert stream.offer(chunk._replace(data=data, hold=True))
    assert values(stream.take(9, NOW)) == [b"good"]
    with pytest.raises(InvalidMessage, match="offset 1"):
        stream.take(9, NOW)
    assert (partition.fetch_offset, partition.held) == (1, False)


def test_an_error_in_place_of_a_set_waits_for_the_messages_before_it() -> None:
    """A poll does not lose what it has already taken."""
    stream = stream_of()
    first, second = partition_of(stream, 0), partition_of(stream, 1)
    offer(stream, first, b"a")
    error = MessageTooLarge("too large")
    assert stream.offer(Chunk(second, b"", 0, 0, error=error, hold=True))
    assert values(stream.take(9, NOW)) == [b"a"]
    assert not second.held, "it is fetched again"
    assert stream.offer(Chunk(second, b"", 0, 0, error=error, hold=True))
    with pytest.raises(MessageTooLarge):
        stream.take(9, NOW)


def test_a_batch_is_unfinished_from_its_first_offset() -> None:
    """The rest of the set stays for the next batch."""
    stream = stream_of()
    partition = partition_of(stream)
    offer(stream, partition, b"a", b"b", b"c")
    batch = stream.take_batch(BatchLimits(2), NOW)
    assert batch is not None
    assert batch.values() == [b"a", b"b"]
    assert stream.unfinished_from == {partition.topic_partition: 0}
    assert stream.position_of(partition) == 2
    stream.finish()
    assert values(stream.take(9, NOW)) == [b"c"]


def test_an_iteration_ends_in_a_forked_process() -> None:
    """Its parent goes on with the set."""
    _, _, messages = iteration(b"a", b"b")
    assert next(messages).value == b"a"
    assert in_child(lambda: next(messages)).startswith("RuntimeError: the threads")
    assert next(messages).value == b"b"
