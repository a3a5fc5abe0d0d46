"""Headers in Arrow columns, to brokers and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafka08.admin import AdminClient
from kafka08.arrow import scan
from kafka08.arrow.options import parse_read_options
from kafka08.consumer import KafkaConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import ConfigError, KafkaError
from kafka08.producer import KafkaProducer
from kafka08.protocol.header_columns import HEADERS
from kafka08.structs import TopicPartition
from tests.integration.polling_cluster import read

COUNT = 500
ROWS: list[list[dict[str, Any]] | None] = [
    [{"key": "n", "value": b"%d" % n}, {"key": "", "value": None}] * (n % 3) if n % 5 else None
    for n in range(COUNT)
]
STORED = [row or None for row in ROWS]
"""A message cannot tell an empty list from none."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, config={"api.level": "0.11.0"}) as cluster:
        yield cluster


def table() -> pa.Table:
    columns = {
        "value": pa.array([b"%d" % n for n in range(COUNT)], pa.binary()),
        "headers": pa.array(ROWS, HEADERS),
    }
    return pa.table(columns)


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("kind", ["table", "slice", "partitions"])
def test_headers_of_columns_are_those_of_a_scan(
    cluster: EmbeddedCluster, codec: str, kind: str
) -> None:
    """What send_columns takes a scan gives back, row by row, also of a slice, and where a column
    chooses partitions; KafkaConsumer sees the same."""
    topic = f"{kind}-{codec}"
    cluster.create_topic(topic, 2)
    rows, first, count = table(), 0, COUNT
    if kind == "slice":
        rows, first, count = rows.slice(7, 100), 7, 100
    if kind == "partitions":
        rows = rows.append_column("partition", pa.array([n % 2 for n in range(COUNT)]))
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, compression_type=codec, batch_size=1000
    ) as producer:
        producer.send_columns(topic, rows, partition=0 if kind != "partitions" else None).result(30)
    with scan(cluster.bootstrap, topic, columns=["partition", "value", "headers"]) as found:
        back = pa.table(found)
    assert back.schema.field("headers").type == HEADERS
    numbers = [int(value) for value in back["value"].to_pylist()]
    assert sorted(numbers) == list(range(first, first + count))
    assert back["headers"].to_pylist() == [STORED[n] for n in numbers]
    if kind == "partitions":
        assert [n % 2 for n in numbers] == back["partition"].to_pylist()
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        for message in read(reader, 50, 30):
            wanted = STORED[int(message.value or b"")] or []
            assert list(message.headers) == [(one["key"], one["value"]) for one in wanted]


def test_a_scan_goes_into_another_topic(cluster: EmbeddedCluster) -> None:
    """Batches of a scan are what send_columns takes, headers among them."""
    for topic in ("source", "copy"):
        cluster.create_topic(topic)
    columns = ["key", "value", "timestamp", "headers"]
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send_columns("source", table()).result(30)
        with scan(cluster.bootstrap, "source", columns=columns) as source:
            for batch in source:
                producer.send_columns("copy", batch).result(30)
    tables = []
    for topic in ("source", "copy"):
        with scan(cluster.bootstrap, topic, columns=columns) as found:
            tables.append(pa.table(found))
    assert tables[0] == tables[1]
    assert tables[1]["headers"].to_pylist() == STORED


def test_a_topic_of_an_older_format_takes_none(cluster: EmbeddedCluster) -> None:
    """The broker, which would have to drop them, refuses the set."""
    admin = AdminClient(zookeeper=cluster.zookeeper.connect_string)
    admin.create_topic("older", 1, 1, {"message.format.version": "0.10.2"})
    admin.close()
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, retries=0) as producer:
        with pytest.raises(KafkaError):
            producer.send_columns("older", table()).result(30)
        producer.send_columns("older", table().select(["value"])).result(30)
    with scan(cluster.bootstrap, "older", columns=["headers"]) as found:
        assert pa.table(found)["headers"].to_pylist() == [None] * COUNT


def test_requests_without_headers_are_refused() -> None:
    """For those of 0.8 a broker would drop headers."""
    given = {"subscribe": "t", "kafka.bootstrap.servers": "h:1", "includeHeaders": "true"}
    assert parse_read_options(given).include_headers
    with pytest.raises(
        ConfigError, match=r"includeHeaders needs kafka\.api\.version\.request=true"
    ):
        parse_read_options({**given, "kafka.api.version.request": "false"})
