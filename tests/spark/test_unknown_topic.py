"""A write to a topic that no broker knows, where brokers create none: kafka08.spark.sink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from kafka08.arrow.connections import resolved
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import UnknownTopicOrPartition
from kafka08.spark.partition_counts import UNKNOWN_TOPIC_S
from kafka08.spark.sink import RowWriter
from kafka08.spark.write_options import WriteOptions, parse_write_options
from tests.mock_clock import MockClock
from tests.spark.filling import Topics

ROWS = pa.RecordBatch.from_pydict({"value": pa.array([b"a", b"b"], pa.binary())})


@pytest.fixture(scope="module")
def topics() -> Iterator[Topics]:
    """A cluster without topics, whose broker creates none."""
    with EmbeddedCluster(1, {"auto.create.topics.enable": "false"}) as cluster:
        topics = Topics(cluster.bootstrap, cluster.zookeeper.connect_string)
        yield topics
        topics.close()


def options(topics: Topics, topic: str) -> WriteOptions:
    parsed = parse_write_options({"kafka.bootstrap.servers": topics.bootstrap, "topic": topic})
    return replace(parsed, address=resolved(parsed.address, parsed.settings))


def test_it_is_an_error_soon(topics: Topics) -> None:
    """The write waits for the topic, but not as long as its 50 retries would take."""
    clock = MockClock()
    with pytest.raises(UnknownTopicOrPartition):
        RowWriter(options(topics, "nowhere"), clock).write(iter([ROWS]))
    assert sum(clock.slept) == pytest.approx(UNKNOWN_TOPIC_S, abs=0.3)


class Creating(MockClock):
    """Creates a topic while a write waits for it."""

    def __init__(self, topics: Topics, topic: str) -> None:
        super().__init__()
        self._topics = topics
        self._topic = topic

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if len(self.slept) == 5:
            self._topics.create(self._topic, 2)


def test_a_topic_that_appears_is_written(topics: Topics) -> None:
    """A topic that the broker learns of within that time gets all rows."""
    clock = Creating(topics, "late")
    written = RowWriter(options(topics, "late"), clock).write(iter([ROWS]))
    assert written.counts["late"][0] == len(ROWS)
    assert len(clock.slept) >= 5
