"""KafkaStream: the public part of a stream, and the types of its messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_type

import pytest

from kafka08.consumer import ConsumerConnector, KafkaStream, MessageAndMetadata, SimpleConsumer
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.errors import ConsumerTimeout
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from tests.consumer.streams import AllIsWell, chunk_of, partition_of


@pytest.fixture
def behind() -> MemberStream:
    return MemberStream(supervisor=AllIsWell(), runtime=THREADS, timeout_ms=0)


def test_messages_by_loop_and_by_next_and_batches_take_turns(behind: MemberStream) -> None:
    """A loop, next() and batches() continue behind each other on one stream."""
    stream: KafkaStream[bytes, bytes] = KafkaStream(behind, "g_a-0")
    behind.offer(chunk_of(partition_of(behind), b"a", b"b", b"c", b"d"))
    assert next(stream).value == b"a"
    for message in stream:
        assert message.value == b"b"
        break
    assert next(stream.batches(max_messages=1)).values() == [b"c"]
    assert next(stream).value == b"d"
    with pytest.raises(ConsumerTimeout):
        next(stream)


def test_only_reading_is_public(behind: MemberStream) -> None:
    """The methods for fetchers, rebalancer and connector are not public."""
    stream: KafkaStream[bytes, bytes] = KafkaStream(behind, "g_a-0")
    public = {name for name in dir(stream) if not name.startswith("_")}
    assert public == {"batches", "skip_damaged", "thread_id"}


def test_it_prints_its_name_and_whether_it_has_ended(behind: MemberStream) -> None:
    """repr() has the name in the owner znodes, as `group describe` shows it, and whether the stream
    has ended."""
    stream: KafkaStream[bytes, bytes] = KafkaStream(behind, "g_a-0")
    assert repr(stream) == "<KafkaStream g_a-0>"
    behind.close()
    assert repr(stream) == "<KafkaStream g_a-0, ended>"


def test_types_may_be_named_while_the_program_runs() -> None:
    """Types may be used in annotations of a module without `from __future__ import annotations`."""
    assert KafkaStream[str, bytes] is not None
    assert MessageAndMetadata[str, bytes] is not None


if TYPE_CHECKING:

    def text(data: bytes) -> str:
        return data.decode()

    def number(data: bytes) -> int:
        return int(json.loads(data))

    def decoders_make_the_types(connector: ConsumerConnector, consumer: SimpleConsumer) -> None:
        """Checked by mypy, which refuses every other type; a null key or value is None."""
        plain = connector.create_message_streams({"t": 1})
        assert_type(plain, dict[str, list[KafkaStream[bytes, bytes]]])
        keyed = connector.create_message_streams({"t": 1}, text)
        assert_type(keyed, dict[str, list[KafkaStream[str, bytes]]])
        values = connector.create_message_streams({"t": 1}, value_decoder=number)
        assert_type(values, dict[str, list[KafkaStream[bytes, int]]])
        both = connector.create_message_streams({"t": 1}, text, number)
        assert_type(both, dict[str, list[KafkaStream[str, int]]])
        topic_filter: Any = None
        filtered = connector.create_message_streams_by_filter(topic_filter, value_decoder=number)
        assert_type(filtered, list[KafkaStream[bytes, int]])
        for message in both["t"][0]:
            assert_type(message, MessageAndMetadata[str, int])
            assert_type(message.key, str | None)
            assert_type(message.value, int | None)
        for read in consumer.read_range(TopicPartition("t", 0), 0, key_decoder=text):
            assert_type(read, MessageAndMetadata[str, bytes])
