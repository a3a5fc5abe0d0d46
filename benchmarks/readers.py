"""One reader of a topic as a process of its own: how fast it reads, and what that takes.

    python -m benchmarks.readers KIND ADDRESS ZOOKEEPER TOPIC PARTITIONS COUNT

Prints, as JSON, seconds for COUNT messages (from the moment at which the partitions are assigned,
the first fetch included), CPU seconds of the process for them, and its peak memory in megabytes.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import uuid
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka08.consumer import KafkaConsumer, KafkaStream

CONSUMED_AT_ONCE = 10_000
FETCH_BYTES = 1 << 20
"""max.partition.fetch.bytes of our KafkaConsumer."""


def confluent(address: str, _: str, topic: str, partitions: int, count: int) -> Callable[[], int]:
    """confluent-kafka's consume(10000), which knows no groups of 0.8: partitions are assigned.

    As it comes it stops fetching for a whole second whenever its queue is full, and the quicker the
    broker, the more often; so that it shows what it can, it is told to look again at once."""
    speaks_0_8 = {"api.version.request": False, "broker.version.fallback": "0.8.2.2"}
    return confluent_reader(address, topic, partitions, count, speaks_0_8)


def confluent_0_10(
    address: str, _: str, topic: str, partitions: int, count: int
) -> Callable[[], int]:
    """The same, as it speaks to a broker of 0.10."""
    return confluent_reader(address, topic, partitions, count, {})


def confluent_frame(
    address: str, _: str, topic: str, partitions: int, count: int
) -> Callable[[], int]:
    """The same into a Polars frame, by pyarrow: the columns of `scanned_frame`."""
    import polars
    import pyarrow

    consumer = confluent_consumer(address, topic, partitions, {})

    def read() -> int:
        parts = []
        seen = 0
        while seen < count:
            messages = consumer.consume(CONSUMED_AT_ONCE, 10)
            seen += len(messages)
            columns = {
                "topic": pyarrow.array([m.topic() for m in messages], pyarrow.string()),
                "partition": pyarrow.array([m.partition() for m in messages], pyarrow.int32()),
                "offset": pyarrow.array([m.offset() for m in messages], pyarrow.int64()),
                "key": pyarrow.array([m.key() for m in messages], pyarrow.binary()),
                "value": pyarrow.array([m.value() for m in messages], pyarrow.binary()),
            }
            parts.append(pyarrow.record_batch(columns))
        return len(polars.DataFrame(pyarrow.Table.from_batches(parts)))

    return read


def scanned_frame(
    address: str, _: str, topic: str, partitions: int, count: int
) -> Callable[[], int]:
    """kafka08.arrow.scan into a Polars frame; its look-up of the ranges is measured, too."""
    import polars

    from kafka08.arrow import scan

    def read() -> int:
        with scan(address, topic) as found:
            return len(polars.DataFrame(found))

    return read


def confluent_reader(
    address: str, topic: str, partitions: int, count: int, keys: dict[str, Any]
) -> Callable[[], int]:
    consumer = confluent_consumer(address, topic, partitions, keys)

    def read() -> int:
        seen = 0
        while seen < count:
            seen += sum(
                message.value() is not None for message in consumer.consume(CONSUMED_AT_ONCE, 10)
            )
        return seen

    return read


def confluent_consumer(address: str, topic: str, partitions: int, keys: dict[str, Any]) -> Any:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"bench-{uuid.uuid4()}",
            "enable.auto.commit": False,
            **keys,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)])
    return consumer


def iterator(_: str, zookeeper: str, topic: str, partitions: int, count: int) -> Callable[[], int]:
    """Ours, message by message."""
    stream = our_stream(zookeeper, topic)

    def read() -> int:
        return sum(message.value is not None for message in islice(stream, count))

    return read


def batches(_: str, zookeeper: str, topic: str, partitions: int, count: int) -> Callable[[], int]:
    """Ours, in batches, each made a pyarrow record batch."""
    import pyarrow  # noqa: F401 (its import is not what is measured)

    found = our_stream(zookeeper, topic).batches()

    def read() -> int:
        seen = 0
        while seen < count:
            seen += next(found).to_arrow().num_rows
        return seen

    return read


def polled_messages(
    address: str, _: str, topic: str, partitions: int, count: int
) -> Callable[[], int]:
    """Our KafkaConsumer, message by message."""
    consumer = our_consumer(address, topic, partitions)

    def read() -> int:
        return sum(message.value is not None for message in islice(consumer, count))

    return read


def polled_lists(
    address: str, _: str, topic: str, partitions: int, count: int
) -> Callable[[], int]:
    """Our KafkaConsumer, by polls of max.poll.records (500)."""
    consumer = our_consumer(address, topic, partitions)

    def read() -> int:
        seen = 0
        while seen < count:
            seen += sum(message.value is not None for message in consumer.poll(10.0))
        return seen

    return read


def polled_batches(
    address: str, _: str, topic: str, partitions: int, count: int
) -> Callable[[], int]:
    """Our KafkaConsumer, in batches, each made a pyarrow record batch."""
    import pyarrow  # noqa: F401 (its import is not what is measured)

    found = our_consumer(address, topic, partitions).batches()

    def read() -> int:
        seen = 0
        while seen < count:
            seen += next(found).to_arrow().num_rows
        return seen

    return read


def bare_fetches(
    address: str, _: str, topic: str, partitions: int, count: int
) -> Callable[[], int]:
    """Fetches on one connection without any work on the messages: the sizes and offsets of
    `polled_batches`, one request after the other. Entries have one size each, as the benchmark
    writes them, so that the next offset is known without a look at them."""
    from kafka08.client.requests import fetch_request, fetch_results
    from kafka08.kernel.types import ENTRY_HEADER
    from kafka08.network.connection import Connection
    from kafka08.protocol.fetch import LIMITED_VERSION, FetchResponse
    from kafka08.structs import TopicPartition

    host, _, port = address.partition(":")
    connection = Connection(host, int(port), negotiates=True)
    positions = {TopicPartition(topic, number): 0 for number in range(partitions)}

    def read() -> int:
        while sum(positions.values()) < count:
            request = fetch_request(
                {tp: (offset, FETCH_BYTES) for tp, offset in positions.items()},
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=partitions * FETCH_BYTES,
                version=LIMITED_VERSION,
            )
            response = connection.send(request)
            assert isinstance(response, FetchResponse)
            for tp, result in fetch_results(response).items():
                if len(result.message_set) >= ENTRY_HEADER.size:
                    _, size = ENTRY_HEADER.unpack_from(result.message_set)
                    positions[tp] += len(result.message_set) // (ENTRY_HEADER.size + size)
        return sum(positions.values())

    return read


def our_consumer(address: str, topic: str, partitions: int) -> KafkaConsumer:
    from kafka08.consumer import KafkaConsumer
    from kafka08.structs import TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
    return consumer


def our_stream(zookeeper: str, topic: str) -> KafkaStream[bytes, bytes]:
    from kafka08.consumer import ConsumerConfig, ConsumerConnector

    config = ConsumerConfig(
        group_id=f"bench-{uuid.uuid4()}",
        zookeeper_connect=zookeeper,
        auto_offset_reset="smallest",
        auto_commit_enable=False,
    )
    return ConsumerConnector(config).create_message_streams({topic: 1})[topic][0]


KINDS = {
    "confluent": confluent,
    "iterator": iterator,
    "batches": batches,
    "confluent 0.10": confluent_0_10,
    "messages": polled_messages,
    "lists": polled_lists,
    "polled batches": polled_batches,
    "bare fetches": bare_fetches,
    "confluent frame": confluent_frame,
    "scan into polars": scanned_frame,
}


def main(kind: str, address: str, zookeeper: str, topic: str, partitions: str, count: str) -> None:
    read = KINDS[kind](address, zookeeper, topic, int(partitions), int(count))
    cpu, started = time.process_time(), time.perf_counter()
    seen = read()
    seconds = time.perf_counter() - started
    figures = {
        "messages": seen,
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    os._exit(0)  # The threads of either client end with it; nothing is to be committed.


if __name__ == "__main__":
    main(*sys.argv[1:])
