"""Topics of a test's own on a running cluster, filled with messages that say where they are."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafka08.admin import AdminClient
from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.client.requests import produce_request, produce_results
from kafka08.consumer import SimpleConsumer
from kafka08.errors import AdminError, check
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Pair = tuple[bytes | None, bytes | None]
Row = tuple[int, int, bytes | None, bytes | None]

_numbers = itertools.count(1)


def pair(partition: int, offset: int) -> Pair:
    """The message at that place: null keys and null values among them."""
    key = None if offset % 3 == 0 else b"key-%d" % offset
    value = None if offset % 7 == 6 else b"%d-%d" % (partition, offset)
    return key, value


def rows_of(partition: int, start: int, until: int) -> list[Row]:
    """The expected result of a read of [start, until), as (partition, offset, key, value)."""
    return [(partition, offset, *pair(partition, offset)) for offset in range(start, until)]


def collected(frame: DataFrame) -> list[Row]:
    """The rows of a read, sorted."""
    return sorted(
        (row.partition, row.offset, _plain(row.key), _plain(row.value))
        for row in frame.select("partition", "offset", "key", "value").collect()
    )


def _plain(field: Any) -> bytes | None:
    return None if field is None else bytes(field)


class Topics:
    """A running cluster. `filled` and `append` number messages by their offsets."""

    def __init__(self, bootstrap: str, zookeeper: str, required_acks: int = 1) -> None:
        self.bootstrap = bootstrap
        self._required_acks = required_acks
        self.zookeeper = zookeeper
        self.client = ClusterClient(parse_bootstrap(bootstrap), retry_policy=RetryPolicy(100, 100))
        self._ends: dict[TopicPartition, int] = {}

    def close(self) -> None:
        self.client.close()

    def new_topic(self, partitions: int = 2, config: Mapping[str, str] | None = None) -> str:
        """A fresh topic with leaders."""
        name = f"spark-{os.getpid()}-{next(_numbers)}"
        self.create(name, partitions, config)
        return name

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        admin = AdminClient(zookeeper=self.zookeeper)
        try:
            admin.create_topic(name, partitions, 1, config)
        finally:
            admin.close()
        for partition in range(partitions):
            self.client.at_leader(TopicPartition(name, partition), lambda _: None)

    def add_partition(self, name: str, partition: int) -> None:
        """The next partition of a topic, with a leader."""
        admin = AdminClient(zookeeper=self.zookeeper)
        try:
            admin.alter_topic(name, partitions=partition + 1)
        finally:
            admin.close()
        self.client.refresh([name])
        self.client.at_leader(TopicPartition(name, partition), lambda _: None)

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until no broker knows it."""
        admin = AdminClient(zookeeper=self.zookeeper)
        try:
            admin.delete_topic(name)
        finally:
            admin.close()
        until(lambda: name not in self.client.refresh().topics, f"the end of {name}")

    def recreate(self, name: str, partitions: int) -> None:
        """Delete a topic and create it again; `append` begins at 0."""
        self.delete(name)

        def is_made() -> bool:
            try:
                self.create(name, partitions)
            except AdminError:
                return False  # its znode is the last to go
            return True

        until(is_made, f"a new {name}")
        self._ends = {tp: end for tp, end in self._ends.items() if tp.topic != name}

    def filled(self, counts: Sequence[int], codec: int = 0, set_size: int = 10) -> str:
        """A new topic with this many messages in its partitions."""
        topic = self.new_topic(len(counts))
        for partition, count in enumerate(counts):
            self.append(topic, partition, count, codec, set_size)
        return topic

    def append(
        self, topic: str, partition: int, count: int, codec: int = 0, set_size: int = 10
    ) -> None:
        """The next `count` messages of a partition, in sets of `set_size`. `codec` -1: all codecs
        in turn."""
        tp = TopicPartition(topic, partition)
        start = self._ends.get(tp, 0)
        for at in range(start, start + count, set_size):
            until = min(at + set_size, start + count)
            messages = [pair(partition, offset) for offset in range(at, until)]
            self.produce(tp, messages, (at // set_size) % 4 if codec < 0 else codec)
        self._ends[tp] = start + count

    def produce(self, tp: TopicPartition, messages: Sequence[Pair], codec: int = 0) -> None:
        """One set, as it is."""
        data = message_set.encode(messages, codec)

        def ask(connection: Connection) -> None:
            request = produce_request(
                {tp: data}, required_acks=self._required_acks, timeout_ms=10_000
            )
            response = produce_results(connection.send(request))[tp]  # type: ignore[arg-type]
            check(response.error_code, str(tp))

        self.client.at_leader(tp, ask)

    def simple_consumer(self) -> SimpleConsumer:
        """At the one broker there is."""
        return SimpleConsumer(*parse_bootstrap(self.bootstrap)[0])

    def read(self, spark: SparkSession, **options: str) -> DataFrame:
        """`spark.read` of this cluster with `options`."""
        reader = spark.read.format("kafka08").option("kafka.bootstrap.servers", self.bootstrap)
        return reader.options(**options).load()
