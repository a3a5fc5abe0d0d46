"""One client at a broker of today as a process of its own: how fast it reads or sends.

    python -m benchmarks.modern_client SUBJECT KEYS TOPIC COUNT

KEYS is a JSON object: Kafka's keys of the connection. Prints, as JSON, thousands of messages a
second from its first call to its last message or acknowledgement, CPU microseconds for each, and
its peak memory in megabytes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

PARTITIONS: Final = 4
MESSAGE_BYTES: Final = 100
BULK: Final = 10_000
AT_ONCE: Final = 10_000
LINGER_MS: Final = 5
IDEMPOTENT: Final = {"enable.idempotence": "true", "acks": "all", "linger.ms": str(LINGER_MS)}

Keys = dict[str, str]


def values(count: int) -> list[bytes]:
    return [b"%0*d" % (MESSAGE_BYTES, number) for number in range(count)]


def of_librdkafka(keys: Keys) -> dict[str, Any]:
    """The same connection in its words."""
    found: dict[str, Any] = {"bootstrap.servers": keys["bootstrap.servers"]}
    if keys.get("security.protocol") == "SSL":
        found |= {"security.protocol": "SSL", "ssl.ca.location": keys["ssl.truststore.location"]}
    return found


# Reading


def their_consume(keys: Keys, topic: str, count: int) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            **of_librdkafka(keys),
            "group.id": f"bench-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(PARTITIONS)])
    seen = 0
    while seen < count:
        seen += sum(message.value() is not None for message in consumer.consume(AT_ONCE, 10))


def our_consumer(keys: Keys, topic: str) -> Any:
    from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig

    consumer = KafkaConsumer(KafkaConsumerConfig(keys))
    consumer.assign([(topic, n) for n in range(PARTITIONS)])
    consumer.seek_to_beginning()
    return consumer


def our_iteration(keys: Keys, topic: str, count: int) -> None:
    with our_consumer(keys, topic) as consumer:
        seen = 0
        for message in consumer:
            seen += message.value is not None
            if seen == count:
                return


def our_arrow_batches(keys: Keys, topic: str, count: int) -> None:
    with our_consumer(keys, topic) as consumer:
        seen = 0
        for batch in consumer.batches():
            seen += batch.to_arrow().num_rows
            if seen >= count:
                return


def their_async_iteration(keys: Keys, topic: str, count: int) -> None:
    from aiokafka import AIOKafkaConsumer

    async def read() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=keys["bootstrap.servers"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        seen = 0
        async for message in consumer:
            seen += message.value is not None
            if seen == count:
                break
        await consumer.stop()

    asyncio.run(read())


def our_async_iteration(keys: Keys, topic: str, count: int) -> None:
    from kafka08.consumer import AsyncKafkaConsumer, KafkaConsumerConfig

    async def read() -> None:
        async with AsyncKafkaConsumer(KafkaConsumerConfig(keys)) as consumer:
            await consumer.assign([(topic, n) for n in range(PARTITIONS)])
            await consumer.seek_to_beginning()
            seen = 0
            async for message in consumer:
                seen += message.value is not None
                if seen == count:
                    break

    asyncio.run(read())


# Sending


def their_produce(keys: Keys, topic: str, sent: list[bytes]) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {**of_librdkafka(keys), **IDEMPOTENT, "queue.buffering.max.messages": 500_000}
    )
    for value in sent:
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.001)
    if left := producer.flush(120):
        raise SystemExit(f"{left} not stored")


def our_producer(keys: Keys) -> Any:
    from kafka08.producer import KafkaProducer, KafkaProducerConfig

    return KafkaProducer(KafkaProducerConfig({**keys, **IDEMPOTENT}))


def our_send(keys: Keys, topic: str, sent: list[bytes]) -> None:
    from kafka08.producer import ProducerRecord

    with our_producer(keys) as producer:
        for value in sent:
            producer.send(ProducerRecord(topic, value))
        producer.flush(120)


def our_send_many(keys: Keys, topic: str, sent: list[bytes]) -> None:
    with our_producer(keys) as producer:
        for start in range(0, len(sent), BULK):
            producer.send_many(topic, sent[start : start + BULK])
        producer.flush(120)


def their_async_send(keys: Keys, topic: str, sent: list[bytes]) -> None:
    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=keys["bootstrap.servers"],
            enable_idempotence=True,
            linger_ms=LINGER_MS,
        )
        await producer.start()
        for value in sent:
            await producer.send(topic, value)
        await producer.stop()

    asyncio.run(send())


def our_async_send(keys: Keys, topic: str, sent: list[bytes]) -> None:
    from kafka08.producer import AsyncKafkaProducer, KafkaProducerConfig, ProducerRecord

    async def send() -> None:
        config = KafkaProducerConfig({**keys, **IDEMPOTENT})
        async with AsyncKafkaProducer(config) as producer:
            for value in sent:
                await producer.send(ProducerRecord(topic, value))

    asyncio.run(send())


READERS: Final[dict[str, Callable[[Keys, str, int], None]]] = {
    "their consume": their_consume,
    "our iteration": our_iteration,
    "our Arrow batches": our_arrow_batches,
    "their async iteration": their_async_iteration,
    "our async iteration": our_async_iteration,
}
SENDERS: Final[dict[str, Callable[[Keys, str, list[bytes]], None]]] = {
    "their produce": their_produce,
    "our send": our_send,
    "our send_many": our_send_many,
    "their async send": their_async_send,
    "our async send": our_async_send,
}
FILL: Final = "our send_many"


def load(subject: str) -> None:
    """Import what the subject needs: only its work is measured."""
    if subject.startswith("their"):
        modules = ["aiokafka" if "async" in subject else "confluent_kafka"]
    else:
        modules = [
            "kafka08.consumer.group.async_consumer",
            "kafka08.producer.async_producer",
            "pyarrow",
        ]
    for module in modules:
        import_module(module)


def peak_mb() -> float:
    """Since the start of this program; getrusage has that of its parent, too (proc(5))."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main(subject: str, keys: Keys, topic: str, count: int) -> None:
    load(subject)
    sent = values(count) if subject in SENDERS else []
    used, began = time.process_time(), time.monotonic()
    if subject in SENDERS:
        SENDERS[subject](keys, topic, sent)
    else:
        READERS[subject](keys, topic, count)
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    figures = {"rate": count / seconds / 1e3, "cpu": cpu / count * 1e6, "memory": peak_mb()}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
