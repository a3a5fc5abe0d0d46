"""Arrow columns are sent to a topic: the messages equal the rows, and futures have their
offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.errors import UnknownTopicOrPartition, UnsupportedForMessageFormat
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


HEADERS = [[("n", b"%d" % n), ("", None)] * (n % 3) if n % 5 else None for n in range(ROWS)]


def with_headers(headers: list[Any]) -> Any:
    items = [None if row is None else [{"key": k, "value": v} for k, v in row] for row in headers]
    kind = pyarrow.list_(pyarrow.struct({"key": pyarrow.string(), "value": pyarrow.binary()}))
    return pyarrow.array(items, kind)


def test_leaders_without_headers_take_no_row_of_a_table_that_has_some(cluster: TcpCluster) -> None:
    """Headers are never dropped; a column of nulls and empty lists has none."""
    rows = pyarrow.table({"value": ["a", "b"], "headers": with_headers([None, [("n", b"")]])})
    none = pyarrow.table({"value": ["a", "b"], "headers": with_headers([None, []])})
    with producer_on(cluster) as producer:
        with pytest.raises(UnsupportedForMessageFormat, match="its leader stores no headers"):
            producer.send_columns("t", rows)
        producer.flush(10)
        assert not any(cluster.messages(TopicPartition("t", n)) for n in (0, 1))
        check(cluster, producer.send_columns("t", none), [None] * 2, [b"a", b"b"])


@pytest.mark.parametrize(
    ("headers", "error", "said"),
    [
        (pyarrow.array(["a"]), TypeError, "'headers' has string; list<item: struct<key: string"),
        (with_headers([[(None, b"")]]), ValueError, "a header of row 0 has no name"),
    ],
    ids=["text", "no name"],
)
def test_headers_that_cannot_be_sent(
    cluster: TcpCluster, headers: Any, error: type[Exception], said: str
) -> None:
    """Nothing of the call is sent."""
    with producer_on(cluster) as producer, pytest.raises(error, match=said):
        producer.send_columns("t", pyarrow.record_batch({"value": ["a"], "headers": headers}))
