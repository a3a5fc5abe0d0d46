"""How costs grow with threads, partitions, topics, groups: dimension × sizes → cost, exponent.

The exponent is that of the cost as a function of the size: 0 where it stays the same, 1 where it
grows like the size. Costs are CPU time of the client, or of the broker (growth_servers.py), on one
broker of ours; those of a new topic are the time that the first record waits.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from benchmarks import growth_servers, growth_wide, scratch
from benchmarks.growth_place import PARTITIONS, SMALL, Dimension, Place, topic_of
from benchmarks.subjects import await_leaders
from kafka08.admin import AdminClient
from kafka08.consumer import KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition

ROWS: Final = 20_000
ROWS_EACH: Final = 20
"""Rows of a partition: each is a batch of so many, whatever the number of partitions."""
IDLE_S: Final = 3.0
SETTLE_S: Final = 1.0
LEADERS_S: Final = 300


def waiting_threads(place: Place, threads: int) -> float:
    """Microseconds a message of 1,000 bytes, with as little memory that threads wait for it."""
    messages = 20_000
    topic = topic_of(SMALL)
    with KafkaProducer(bootstrap_servers=place.bootstrap, buffer_memory=1 << 20) as producer:
        producer.partitions_for(topic)
        record = ProducerRecord(topic, bytes(1000))

        def send() -> None:
            for _ in range(messages // threads):
                producer.send(record)

        senders = [threading.Thread(target=send) for _ in range(threads)]
        began = time.process_time()
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        producer.flush()
        return (time.process_time() - began) / messages * 1e6


def one_active_partition(place: Place, partitions: int) -> float:
    """Microseconds for a record and its response, in a producer that knows so many partitions."""
    records = 300
    topic = topic_of(partitions)
    with KafkaProducer(bootstrap_servers=place.bootstrap) as producer:
        record = ProducerRecord(topic, b"x", partition=partitions // 2)
        producer.send(record).result()
        began = time.process_time()
        for _ in range(records):
            producer.send(record).result()
        return (time.process_time() - began) / records * 1e6


def all_partitions_active(place: Place, partitions: int) -> float:
    """Microseconds a record, each to another partition."""
    rounds = max(1, 2000 // partitions)
    topic = topic_of(partitions)
    with KafkaProducer(bootstrap_servers=place.bootstrap, buffer_memory=1 << 28) as producer:
        producer.partitions_for(topic)
        began = time.process_time()
        for _ in range(rounds):
            for number in range(partitions):
                producer.send(ProducerRecord(topic, b"x", partition=number))
            producer.flush()
        return (time.process_time() - began) / rounds / partitions * 1e6


def new_topics(place: Place, topics: int) -> float:
    """Milliseconds that the first record to each of so many topics waits. They exist."""
    records = [ProducerRecord(f"growth-topic-{number}", b"x") for number in range(topics)]
    with KafkaProducer(bootstrap_servers=place.bootstrap) as maker:
        for record in records:
            maker.partitions_for(record.topic)
    with KafkaProducer(bootstrap_servers=place.bootstrap) as producer:
        began = time.monotonic()
        for record in records:
            producer.send(record)
        waited = time.monotonic() - began
    return waited / topics * 1e3


def columns(place: Place, partitions: int, rows_each: int = ROWS_EACH) -> float:
    """Microseconds a row of `send_columns`, with a column of partitions."""
    import pyarrow

    count = rows_each * partitions
    numbers = [n * 7919 % partitions for n in range(count)]
    rows = pyarrow.record_batch({"value": [b"x" * 10] * count, "partition": numbers})
    calls = max(1, ROWS // count)
    with KafkaProducer(bootstrap_servers=place.bootstrap, buffer_memory=1 << 28) as producer:
        producer.partitions_for(topic_of(partitions))
        began = time.thread_time()
        for _ in range(calls):
            producer.send_columns(topic_of(partitions), rows)
        spent = time.thread_time() - began
        producer.flush()
    return spent / calls / count * 1e6


def chosen_partition(place: Place, partitions: int) -> float:
    """Microseconds for a record with a partition, in the caller of a producer with a serializer."""
    records = 5000
    with KafkaProducer(
        bootstrap_servers=place.bootstrap,
        value_serializer=lambda topic, value: value,
        buffer_memory=1 << 28,
    ) as producer:
        topic = topic_of(partitions)
        producer.partitions_for(topic)
        began = time.thread_time()
        for number in range(records):
            producer.send(ProducerRecord(topic, b"x", partition=number * 7919 % partitions))
        spent = time.thread_time() - began
        producer.flush()
    return spent / records * 1e6


def consumer_of(place: Place, partitions: int) -> KafkaConsumer:
    """A consumer that has read all partitions to their ends."""
    consumer = KafkaConsumer(
        bootstrap_servers=place.bootstrap, auto_offset_reset="latest", enable_auto_commit=False
    )
    topic = topic_of(partitions)
    consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
    settled_at = time.monotonic() + SETTLE_S + partitions / 2000
    while time.monotonic() < settled_at:
        consumer.poll(0.1)
    return consumer


def idle_consumer(place: Place, partitions: int) -> float:
    """Thousandths of a core that a consumer of so many idle partitions takes."""
    with consumer_of(place, partitions) as consumer:
        began, cpu_began = time.monotonic(), time.process_time()
        while time.monotonic() < began + IDLE_S:
            consumer.poll(IDLE_S)
        return (time.process_time() - cpu_began) / (time.monotonic() - began) * 1e3


def one_message(place: Place, partitions: int) -> float:
    """Milliseconds for one message in one of so many partitions, produced and consumed."""
    messages = 20
    topic = topic_of(partitions)
    with (
        consumer_of(place, partitions) as consumer,
        KafkaProducer(bootstrap_servers=place.bootstrap) as producer,
    ):
        producer.partitions_for(topic)
        began = time.process_time()
        for number in range(messages):
            producer.send(ProducerRecord(topic, b"x", partition=number * 37 % partitions))
            while not consumer.poll(1):
                pass
        return (time.process_time() - began) / messages * 1e3


DIMENSIONS: Final = (
    Dimension("threads that wait for memory", "us", (1, 8, 64), waiting_threads),
    Dimension("partitions, one active", "us", PARTITIONS, one_active_partition),
    Dimension("partitions, all active", "us", PARTITIONS, all_partitions_active),
    Dimension("new topics", "ms", (10, 30, 100), new_topics),
    Dimension("partitions in a column", "us", PARTITIONS, columns),
    Dimension("partitions, one chosen", "us", PARTITIONS, chosen_partition),
    Dimension("idle partitions", "mcore", PARTITIONS, idle_consumer),
    Dimension("idle partitions, one message", "ms", PARTITIONS, one_message),
    *growth_servers.DIMENSIONS,
    *growth_wide.DIMENSIONS,
)


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    return statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    ).slope


@contextmanager
def broker(directory: Path, sizes: Collection[int]) -> Iterator[Place]:
    """A broker with a topic of each number of partitions."""
    keys = {"log.index.size.max.bytes": 4096, "message.max.bytes": 64 << 20}
    with (
        EmbeddedCluster(brokers=1, config=keys, data_dir=directory / "cluster") as cluster,
        AdminClient(cluster.zookeeper.connect_string) as admin,
    ):
        for size in sorted(sizes):
            admin.create_topic(topic_of(size), size, 1)
            admin.await_leaders(topic_of(size), LEADERS_S * 1000)
            leader: Any = SimpleNamespace(name="ours", address=cluster.bootstrap)
            await_leaders(leader, topic_of(size), size, LEADERS_S)
        pid = cluster.brokers[0].process.pid
        with ExitStack() as kept:
            yield Place(cluster.bootstrap, cluster.zookeeper.connect_string, pid, directory, kept)


def measure(place: Place, one: Dimension, sizes: Sequence[int], rounds: int) -> list[float]:
    """The cost at each size, the median of so many, or of the row's own number."""
    count = min(rounds, one.rounds or rounds)
    return [statistics.median(one.cost(place, size) for _ in range(count)) for size in sizes]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench growth", description=__doc__)
    parser.add_argument("--only", default="", help="only dimensions whose name contains this")
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many (default 3)")
    parser.add_argument("--largest", type=int, default=5000, help="no more partitions than this")
    parser.add_argument("--json", dest="json_file", help="write the table to this file")
    scratch.add_option(parser)
    options = parser.parse_args(arguments)
    chosen = [one for one in DIMENSIONS if options.only in one.name]
    table: list[dict[str, Any]] = []
    topics = {SMALL, 500}.union(*(one.sizes for one in chosen if one.sizes == PARTITIONS))
    topics = {size for size in topics if size <= options.largest}
    with scratch.scratch(options) as directory, broker(directory, topics) as place:
        for one in chosen:
            is_partitions = one.sizes == PARTITIONS
            sizes = [size for size in one.sizes if not is_partitions or size <= options.largest]
            costs = measure(place, one, sizes, options.rounds)
            slope = exponent(sizes, costs)
            row = {"unit": one.unit, "sizes": sizes, "costs": costs, "exponent": slope}
            table.append({"dimension": one.name, **row})
            shown = [f"{size:,}: {cost:.2f}" for size, cost in zip(sizes, costs, strict=True)]
            print(f"{one.name:30} {one.unit:>6}  {'  '.join(shown):45}  exponent {slope:5.2f}")
            sys.stdout.flush()
    if options.json_file:
        Path(options.json_file).write_text(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
