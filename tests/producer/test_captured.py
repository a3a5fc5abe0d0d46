"""Our producer sends the bytes that the JVM's console producer sent (clients-0.8.2.2.json)."""

from __future__ import annotations

import pytest

from kafka08 import kernel
from kafka08.producer import KeyedMessage, Producer, ProducerConfig
from kafka08.protocol import codec, message_set
from kafka08.protocol.compression import CODECS
from kafka08.protocol.frame import SIZE
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.types import Buffer
from tests.client.fake_cluster import PORT, FakeCluster
from tests.protocol.captures import Exchange, exchanges


def is_of_the_old_producer(exchange: Exchange) -> bool:
    """Whether the old producer sent the Produce, which has acks 1. The capture has both producers;
    the new one sends -1, and gives every message the offset 0."""
    if not exchange.name.startswith("clients-0.8.2.2:console-producer"):
        return False
    _, request = codec.decode_request(exchange.request[SIZE.size :])
    return isinstance(request, ProduceRequest) and request.required_acks == 1


PRODUCED = [exchange for exchange in exchanges() if is_of_the_old_producer(exchange)]
assert len(PRODUCED) == len(CODECS)


@pytest.mark.parametrize("exchange", PRODUCED, ids=str)
def test_requests_of_the_jvm_console_producer(exchange: Exchange) -> None:
    """The same messages give the same bytes. Compressed, they give the same set in a wrapper with
    the same offset; each deflate and snappy compresses in its own way."""
    header, theirs = codec.decode_request(exchange.request[SIZE.size :])
    assert isinstance(theirs, ProduceRequest)
    (topic,) = theirs.topics
    cluster = FakeCluster({topic.topic: {part.partition: 1 for part in topic.partitions}})
    config = ProducerConfig(
        metadata_broker_list=f"b1:{PORT}",
        request_required_acks=theirs.required_acks,
        request_timeout_ms=theirs.timeout_ms,
        compression_codec=CODECS[wrapper(topic.partitions[0].message_set)[1]],
    )
    with Producer(
        config,
        partitioner=lambda key, _: key,
        runtime=cluster.network.runtime(),
    ) as ours:
        ours.send(
            [
                KeyedMessage(topic.topic, m.value, m.key, part.partition)
                for part in topic.partitions
                for m in message_set.decode(part.message_set)
            ]
        )
    (sent,) = cluster.network.requests(ProduceRequest)
    assert isinstance(sent, ProduceRequest)
    if config.codec_of(topic.topic) == 0:
        assert codec.encode_request(sent, *header[2:]) == exchange.request
    for mine, part in zip(sent.topics[0].partitions, topic.partitions, strict=True):
        assert wrapper(mine.message_set) == wrapper(part.message_set)
        assert inner(mine.message_set) == inner(part.message_set)


def wrapper(data: Buffer) -> tuple[int, int]:
    """(offset, codec) of the first entry."""
    first = next(iter(kernel.entries(data)))
    return first.offset, first.attributes


def inner(data: Buffer) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of the messages."""
    return [(m.offset, m.key, m.value) for m in message_set.decode(data)]
