"""Arrow columns are sent to a topic: the messages equal the rows, and futures have their
offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.errors import UnknownTopicOrPartition
from kafka08.hashing import murmur2
from kafka08.producer import KafkaProducer
from kafka08.structs import TopicPartition
from tests.producer.producers import SECONDS, config_on, producer_on
from tests.producer.tcp_cluster import TcpCluster

pyarrow = pytest.importorskip("pyarrow")
ROWS = 200
VALUES = [b"%d" % n * (n % 20) if n % 7 else None for n in range(ROWS)]
KEYS = [b"k%d" % (n % 11) if n % 3 else None for n in range(ROWS)]


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster({"t": {0: 1, 1: 2}}) as cluster:
        yield cluster


def check(cluster: TcpCluster, future: Any, keys: list[Any], values: list[Any]) -> None:
    """Checks that each row is stored once, at the offset in its future."""
    seen: list[int] = []
    for tp, offset, places in future.result(SECONDS):
        log = cluster.messages(tp)
        for n, place in enumerate(places):
            assert log[offset + n] == (keys[place], values[place])
            seen.append(place)
    assert sorted(seen) == list(range(len(values)))


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("kind", ["batch", "table", "slice"])
def test_rows_arrive(cluster: TcpCluster, kind: str, codec: str) -> None:
    """Rows of a RecordBatch, of a Table with several batches, and of a slice that begins within a
    batch, are stored."""
    rows = pyarrow.record_batch({"value": pyarrow.array(VALUES, pyarrow.binary())})
    values = VALUES
    if kind == "table":
        rows, values = pyarrow.Table.from_batches([rows, rows]), VALUES * 2
    if kind == "slice":
        rows, values = rows.slice(13, 100), VALUES[13:113]
    with producer_on(cluster, batch_size=500, compression_type=codec) as producer:
        check(cluster, producer.send_columns("t", rows), [None] * len(values), values)
        assert producer.free_bytes == producer.config.buffer_memory


def test_keys_choose_partitions(cluster: TcpCluster) -> None:
    """Keys choose partitions as in send(). Text columns are sent as UTF-8."""
    texts = ["é" * (n % 5) for n in range(ROWS)]
    rows = pyarrow.record_batch({"key": pyarrow.array(KEYS), "value": pyarrow.array(texts)})
    with producer_on(cluster, batch_size=500) as producer:
        future = producer.send_columns("t", rows)
        check(cluster, future, KEYS, [text.encode() for text in texts])
    for partition in (0, 1):
        for key, _ in cluster.messages(TopicPartition("t", partition)):
            assert key is None or (murmur2(key) & 0x7FFFFFFF) % 2 == partition


def test_a_column_chooses_partitions(cluster: TcpCluster) -> None:
    """A partition column chooses the partition of each row, and keys are only stored. Columns may
    begin at different offsets of their buffers."""
    numbers = [n % 2 for n in range(ROWS)]
    keys = pyarrow.array([b"x", *KEYS]).slice(1)
    rows = pyarrow.record_batch(
        {"partition": pyarrow.array(numbers), "key": keys, "value": pyarrow.array(VALUES)}
    )
    with producer_on(cluster) as producer:
        check(cluster, producer.send_columns("t", rows), KEYS, VALUES)
        check_one = producer.send_columns("t", rows, partition=1).result(SECONDS)
        assert {stored.tp.partition for stored in check_one} == {1}
    ones = [(k, v) for k, v, p in zip(KEYS, VALUES, numbers, strict=True) if p]
    assert cluster.messages(TopicPartition("t", 1))[: len(ones)] == ones


@pytest.mark.parametrize(
    ("column", "bad", "error"),
    [("partition", 7, UnknownTopicOrPartition), ("timestamp", -5, ValueError)],
)
def test_a_table_is_sent_whole_or_not_at_all(
    cluster: TcpCluster, column: str, bad: int, error: type[Exception]
) -> None:
    """If a later row names no partition of the topic, or has an impossible time, no row is sent:
    the caller may send the table again. The batches before that row were sent."""
    rows = [pyarrow.record_batch({"value": ["a"], column: [number]}) for number in (0, bad)]
    with producer_on(cluster) as producer, pytest.raises(error):
        producer.send_columns("t", pyarrow.Table.from_batches(rows)).result(SECONDS)
    assert all(cluster.messages(TopicPartition("t", partition)) == [] for partition in (0, 1))


@pytest.mark.parametrize(
    ("column", "error", "said"),
    [
        ({"partition": pyarrow.array([0, None])}, ValueError, "column 'partition' has a null"),
        ({"partition": pyarrow.array(["0", "1"])}, TypeError, "'partition' has string; integers"),
        ({"partition": pyarrow.array([0.5, 1.0])}, TypeError, "'partition' has double; integers"),
        ({"key": pyarrow.array([1, 2])}, TypeError, "'key' has int64; bytes or text"),
    ],
    ids=["null", "text", "fraction", "number"],
)
def test_a_column_of_another_kind_is_named(
    cluster: TcpCluster, column: dict[str, Any], error: type[Exception], said: str
) -> None:
    """Nothing of the call is sent. A null partition was "'<' not supported"."""
    rows = pyarrow.table({"value": pyarrow.array(["a", "b"]), **column})
    with producer_on(cluster) as producer:
        with pytest.raises(error, match=said):
            producer.send_columns("t", rows)
        producer.flush(10)
    assert not cluster.messages(TopicPartition("t", 0))


def test_impossible_columns_are_refused(cluster: TcpCluster) -> None:
    """Other columns than value, key and partition are refused, and so are unknown partitions and a
    producer with a serializer."""
    bad = pyarrow.record_batch({"text": pyarrow.array(["a"])})
    with producer_on(cluster) as producer:
        with pytest.raises(ValueError, match="columns text"):
            producer.send_columns("t", bad)
        wrong = pyarrow.record_batch({"value": pyarrow.array(["a"]), "partition": [7]})
        assert isinstance(producer.send_columns("t", wrong).exception(), UnknownTopicOrPartition)
    own = KafkaProducer(config_on(cluster), value_serializer=lambda t, v: v)
    with own, pytest.raises(ValueError, match="bypass serializers"):
        own.send_columns("t", bad)
