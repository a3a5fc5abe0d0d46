"""UnreadStreams warns once of a stream that the program does not read."""

from __future__ import annotations

import logging

import pytest

from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.consumer.zookeeper.unread_streams import StreamKey, UnreadStreams
from kafka08.errors import ConsumerTimeout
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from tests.consumer.streams import AllIsWell, chunk_of, partition_of

OWNERS = {TopicPartition("t", 0): "c-0", TopicPartition("t", 1): "c-1"}


@pytest.fixture
def streams() -> dict[StreamKey, MemberStream]:
    return {
        ("t", f"c-{number}"): MemberStream(supervisor=AllIsWell(), runtime=THREADS, timeout_ms=0)
        for number in range(2)
    }


def fill(stream: MemberStream) -> None:
    stream.offer(chunk_of(partition_of(stream), b"a"))


def test_an_unread_stream_is_named_once(
    streams: dict[StreamKey, MemberStream], caplog: pytest.LogCaptureFixture
) -> None:
    """The second check that finds messages in a stream while another one is read gives a warning:
    the stream's number, its partitions, and what to do."""
    first, second = streams.values()
    unread = UnreadStreams("c", streams, lambda: OWNERS)
    fill(first)
    fill(second)
    next(first)
    assert unread.look()
    assert [] == caplog.messages
    assert not unread.look()
    [said] = caplog.messages
    assert "stream 1 is not read: [t,1] wait" in said
    assert "thread of its own" in said
    unread.look()
    assert 1 == len(caplog.messages)


def test_a_short_program_hears_of_it_at_its_end(
    streams: dict[StreamKey, MemberStream], caplog: pytest.LogCaptureFixture
) -> None:
    """A program that shuts down before the second check gets the warning then. A stream with a
    warning gets no second one."""
    first, second = streams.values()
    unread = UnreadStreams("c", streams, lambda: OWNERS)
    fill(first)
    fill(second)
    unread.look_last()
    assert [] == caplog.messages
    next(first)
    unread.look_last()
    unread.look_last()
    [said] = caplog.messages
    assert "stream 1 is not read: [t,1] wait" in said


def test_a_program_that_has_not_begun_gets_no_warning(
    streams: dict[StreamKey, MemberStream], caplog: pytest.LogCaptureFixture
) -> None:
    """A program that reads none of its streams gets no warning: it may be starting."""
    for stream in streams.values():
        fill(stream)
    unread = UnreadStreams("c", streams, lambda: OWNERS)
    assert all(unread.look() for _ in range(5))
    assert [] == caplog.messages


def test_a_stream_without_messages_is_not_named(
    streams: dict[StreamKey, MemberStream], caplog: pytest.LogCaptureFixture
) -> None:
    """A stream without messages gets no warning, as with more streams than partitions."""
    first, _ = streams.values()
    fill(first)
    next(first)
    unread = UnreadStreams("c", streams, lambda: OWNERS)
    assert all(unread.look() for _ in range(5))
    assert [] == caplog.messages


def test_the_look_ends_when_all_are_read(
    streams: dict[StreamKey, MemberStream], caplog: pytest.LogCaptureFixture
) -> None:
    """The checks end when every stream has been read, also one that had no messages."""
    for stream in streams.values():
        with pytest.raises(ConsumerTimeout):
            next(stream)
    with caplog.at_level(logging.WARNING):
        assert not UnreadStreams("c", streams, lambda: OWNERS).look()
    assert [] == caplog.messages
