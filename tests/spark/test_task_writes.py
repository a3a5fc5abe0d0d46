"""What a task of the sink sends, on brokers in memory: partitions as planned, sets sent again."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.client.retry import RetryPolicy
from kafka08.errors import InvalidMessage, MessageSetSizeTooLarge, UnsupportedForMessageFormat
from kafka08.hashing import murmur2
from kafka08.protocol.header_columns import HEADERS
from kafka08.spark import sink
from kafka08.spark.partition_counts import planned_counts
from kafka08.spark.sink import RowWriter
from kafka08.spark.write_options import WriteOptions, parse_write_options
from kafka08.structs import TopicPartition
from tests.client.fake_cluster import FakeCluster

KEYS = [b"%d" % number for number in range(50)]
POLICY = RetryPolicy()


class Sink:
    """Writes keyed rows to topic t of a cluster in memory, as a task of a worker that is reused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.brokers = FakeCluster({"t": {0: 1, 1: 2}})
        self.client = ClusterClient(
            self.brokers.bootstrap, creates_topics=True, runtime=self.brokers.runtime
        )
        monkeypatch.setattr(sink, "cluster_at", lambda *_, **__: self.client)

    def options(self, topic: str | None = "t") -> WriteOptions:
        """Options as the driver plans them now."""
        given = {"kafka.bootstrap.servers": "b1:9092", "kafka.api.version.request": "false"}
        parsed = parse_write_options(given if topic is None else given | {"topic": topic})
        return replace(parsed, partition_counts=planned_counts(self.client, topic, POLICY))

    def write(self, options: WriteOptions, headers: list[object] | None = None) -> None:
        columns = {"key": pa.array(KEYS, pa.binary()), "value": pa.array(KEYS, pa.binary())}
        if headers is not None:
            columns["headers"] = pa.array(headers, HEADERS)
        if options.topic is None:
            columns["topic"] = pa.array(["t"] * len(KEYS))
        rows = pa.RecordBatch.from_pydict(columns)
        RowWriter(options, self.brokers.clock).write(iter([rows]))

    def keys_as_of(self, count: int) -> dict[int, list[bytes]]:
        """The keys of each partition where the topic has `count` of them."""
        found: dict[int, list[bytes]] = {}
        for key in KEYS:
            found.setdefault((murmur2(key) & 0x7FFFFFFF) % count, []).append(key)
        return found

    def stored(self) -> dict[int, list[bytes | None]]:
        logs = sorted(self.brokers.logs)
        return {tp.partition: [key for key, _ in self.brokers.messages(tp)] for tp in logs}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Sink:
    return Sink(monkeypatch)


@pytest.mark.parametrize("topic", ["t", None])
def test_a_write_uses_partitions_that_were_added_since_the_last(
    written: Sink, topic: str | None
) -> None:
    """A worker that is reused used to know the partitions of its first write for ever."""
    written.write(written.options(topic))
    assert written.stored() == written.keys_as_of(2)
    written.brokers.logs.clear()
    written.brokers.leaders[TopicPartition("t", 2)] = 1
    written.write(written.options(topic))
    assert written.stored() == written.keys_as_of(3)


def test_all_tasks_use_the_partitions_of_the_plan(written: Sink) -> None:
    """Otherwise a key would go to two partitions in one write, while some are being added."""
    planned = written.options()
    written.brokers.leaders[TopicPartition("t", 2)] = 1
    written.write(planned)
    assert written.stored() == written.keys_as_of(2)


def test_a_topic_that_appears_after_the_plan_is_looked_up(written: Sink) -> None:
    """A column may name a topic that brokers create at the first request for it."""
    written.write(replace(written.options(None), partition_counts={}))
    assert written.stored() == written.keys_as_of(2)


def test_a_set_that_arrived_damaged_is_sent_again(written: Sink) -> None:
    """The broker's error 2 says that the bytes changed on their way; the Java producer sends the
    set again, too."""
    written.brokers.refuse(TopicPartition("t", 0), InvalidMessage.code)
    written.write(written.options())
    assert written.stored() == written.keys_as_of(2)


def test_a_set_larger_than_a_segment_is_an_error_with_advice(written: Sink) -> None:
    """The broker says no more than error 18."""
    written.brokers.refuse(TopicPartition("t", 0), MessageSetSizeTooLarge.code)
    with pytest.raises(MessageSetSizeTooLarge, match=r"segment\.bytes; lower kafka\.batch\.size"):
        written.write(written.options())


def test_headers_are_never_dropped(written: Sink) -> None:
    """A broker without headers takes no row of a set that has some; null and empty lists are rows
    without."""
    written.write(written.options(), [None, *[[]] * (len(KEYS) - 1)])
    before = written.stored()
    with pytest.raises(
        UnsupportedForMessageFormat, match=r"\[t,[01]\] at b\d:9092: headers in a row"
    ):
        written.write(written.options(), [[{"key": "a", "value": None}]] * len(KEYS))
    assert written.stored() == before
