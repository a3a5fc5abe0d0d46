"""kafka08.arrow.scan on a JVM broker of 0.10.2.2: timestamps, and reads by time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from kafka08.arrow import scan
from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.client.requests import produce_request
from kafka08.kernel.types import CREATE_TIME
from kafka08.protocol import compression, message_set
from kafka08.structs import TopicPartition
from tests.interop.jvm import POM_0_10_2, JvmBroker, JvmKafka

pytestmark = pytest.mark.releases

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TP = TopicPartition("timed", 0)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmBroker]:
    with JvmKafka(tmp_path_factory.mktemp("kafka-0.10.2.2"), pom=POM_0_10_2) as kafka:
        yield kafka.brokers[0]


def write(broker: JvmBroker, times: Sequence[int], codec: int, magic: int) -> None:
    """A set of messages with these timestamps, into a topic that this creates."""
    client = ClusterClient(parse_bootstrap(broker.address), retry_policy=RetryPolicy(100, 100))
    messages = [(None, b"%d" % ms) for ms in times]
    data = message_set.encode(messages, codec, 0, magic, times if magic else None)
    request = produce_request({TP: data}, required_acks=1, timeout_ms=10_000)
    request.version = 2 if magic else 0
    with closing(client):
        client.at_leader(TP, lambda connection: connection.send(request))


def test_timestamps_and_reads_by_time(broker: JvmBroker) -> None:
    """A scan returns the producer's timestamps from plain and compressed sets, and null for
    messages of 0.8. A read by time begins and ends at the exact message."""
    now_ms = int(time.time() * 1000) - 100_000
    plain, packed = ([now_ms + start + n for n in range(0, 5000, 1000)] for start in (0, 20_000))
    write(broker, plain, compression.NONE, 1)
    write(broker, packed, compression.SNAPPY, 1)
    write(broker, [0], compression.NONE, 0)

    def rows(**bounds: datetime) -> list[tuple[object, ...]]:
        columns = ["offset", "timestamp", "timestampType"]
        with scan(broker.address, TP.topic, columns=columns, **bounds) as found:  # type: ignore[arg-type]
            return [tuple(row.values()) for batch in found for row in batch.to_pylist()]

    def at(time_ms: int) -> datetime:
        return EPOCH + timedelta(milliseconds=time_ms)

    stamped = [(n, at(ms), CREATE_TIME) for n, ms in enumerate([*plain, *packed])]
    assert rows() == [*stamped, (10, None, CREATE_TIME)]
    assert rows(start=at(plain[3]), end=at(packed[2] + 1)) == stamped[3:8]
