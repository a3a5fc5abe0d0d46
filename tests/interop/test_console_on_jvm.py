"""The console reads a JVM broker of 0.8.2.2."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.exporter import Watch
from kafka08.observe.place import ClusterPlace
from kafka08.pages import messages
from kafka08.pages.live import Live
from kafka08.pages.messages import Browser, SearchRequest, Start
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from tests.interop.group_crowd import check_crowd
from tests.interop.jvm import JvmKafka

TOPIC = "console-reads"
MESSAGES = [(b"a", b"one"), (None, b"two"), (b"a", None)]


@pytest.fixture(scope="module")
def live(jvm_kafka: JvmKafka) -> Iterator[Live]:
    """A topic of three messages in the second of two partitions, and a look at its cluster."""
    jvm_kafka.create_topic(TOPIC, partitions=2)
    config = KafkaProducerConfig({"bootstrap.servers": jvm_kafka.bootstrap, "retries": "100"})
    with KafkaProducer(config) as producer:
        for key, value in MESSAGES:
            producer.send(ProducerRecord(TOPIC, value, key=key, partition=1)).result(60)
    watch = Watch(jvm_kafka.zookeeper)
    with Live(ClusterPlace(jvm_kafka.zookeeper), watch, THREADS) as live:
        live.look()
        yield live


def ask(jvm_kafka: JvmKafka, question: SearchRequest) -> dict[str, Any]:
    bootstrap = parse_bootstrap(jvm_kafka.bootstrap)
    with closing(ClusterClient(bootstrap)) as cluster:
        return Browser(cluster, THREADS, negotiates=False).search(question)


def values(response: dict[str, Any]) -> list[bytes | None]:
    assert {} == response["faults"]
    parts: list[dict[str, Any] | None] = [message["value"] for message in response["messages"]]
    return [None if part is None else base64.b64decode(part["data"]) for part in parts]


def test_its_state_is_shown(live: Live) -> None:
    """The console shows a JVM broker and its log ends, and requests no timestamps from it."""
    overview = json.loads(gzip.decompress(live.state.text))["overview"]
    assert [True] == [row["is_alive"] for row in overview["brokers"]]
    assert [0, 3] == [row[5] for row in overview["partitions"][TOPIC]]
    assert live.view is not None
    assert not live.view.negotiates


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (SearchRequest(TOPIC), [b"one", b"two", None]),
        (SearchRequest(TOPIC, 1, Start.OFFSET, 1), [b"two", None]),
        (SearchRequest(TOPIC, start=Start.EARLIEST, key=b"a"), [b"one", None]),
        (SearchRequest(TOPIC, start=Start.TIME, number=0), [b"one", b"two", None]),
        (SearchRequest(TOPIC, start=Start.TIME, number=2**52), []),
    ],
    ids=["latest", "offset", "key", "time before", "time after"],
)
def test_its_messages_are_found(
    live: Live, jvm_kafka: JvmKafka, question: SearchRequest, expected: list[bytes | None]
) -> None:
    """A search by time finds messages by the time of their segments, since 0.8.2.2 has no other."""
    assert expected == values(ask(jvm_kafka, question))


@pytest.mark.parametrize(
    ("bound", "value"), [("SCANNED_MAX", 1), ("BYTES_MAX", 1), ("SECONDS_MAX", 0.0)]
)
def test_a_search_ends_at_each_bound(
    live: Live, jvm_kafka: JvmKafka, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    """A search that reaches a bound says so, and the next one continues there."""
    monkeypatch.setattr(messages, "BATCH", BatchLimits(max_messages=1))
    monkeypatch.setattr(messages, bound, value)
    first = ask(jvm_kafka, SearchRequest(TOPIC, 1, Start.EARLIEST))
    assert first["is_cut"]
    assert len(first["messages"]) < len(MESSAGES)
    assert {1: first["scanned"]} == first["next"]
    monkeypatch.undo()
    rest = ask(jvm_kafka, SearchRequest(TOPIC, 1, Start.AT, at=first["next"]))
    assert [value for _, value in MESSAGES] == values(first) + values(rest)


@pytest.mark.usefixtures("live")
def test_offsets_of_many_groups_are_read_at_once(jvm_kafka: JvmKafka) -> None:
    """Several OffsetFetch requests are in flight, each for all partitions of the cluster; 0.8.2.2
    responds in order."""
    partitions = [TopicPartition(TOPIC, number) for number in range(2)]
    check_crowd(jvm_kafka.zookeeper, jvm_kafka.bootstrap, partitions)
