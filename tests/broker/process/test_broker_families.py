"""The families of a broker with many topics, without the broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka08.broker.process.broker_families import (
    SPARE_LABELS,
    labels_of,
    labels_of_topic,
    of_logs,
    of_traffic,
)
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replica.traffic import Traffic
from kafka08.exposition import text_of
from kafka08.metrics import SAMPLES_PER_TURN, Pauses
from kafka08.structs import TopicPartition

TOPICS = 3 * SAMPLES_PER_TURN // 2
BYTES_IN = "kafka_server_brokertopicmetrics_bytesin_total"


def partitions() -> list[Partition]:
    """Two of each topic, with 1 byte in the first and the topic's number in the second."""
    found = []
    for topic in range(TOPICS):
        for number in range(2):
            partition = Partition(TopicPartition(f"t{topic}", number), 0)
            partition.bytes_in = topic if number else 1
            found.append(partition)
    return found


def manager(former: Traffic) -> Any:
    return SimpleNamespace(former_traffic=former)


def test_traffic_counts_each_topic_and_all_with_deleted_ones() -> None:
    """Each topic has the sum of its partitions; the sum of all includes partitions that are gone,
    or the counter would fall when a topic is deleted."""
    of_all = of_traffic(manager(Traffic(bytes_in=7)), partitions(), Pauses(lambda: None))
    lines = text_of(of_all).splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith(BYTES_IN))
    expected = {f'{BYTES_IN}{{topic="t{topic}"}}': f"{1 + topic}.0" for topic in range(TOPICS)}
    total = 7 + TOPICS + sum(range(TOPICS))
    assert {BYTES_IN: f"{total}.0", **expected} == found


def test_other_tasks_run_while_thousands_of_topics_are_exported() -> None:
    """Between two pauses there are few samples, in whichever families they are."""
    written = longest = 0

    def pause() -> None:
        nonlocal written
        written = 0

    for family in of_traffic(manager(Traffic()), partitions(), Pauses(pause)):
        for found in family.batches:
            written += len(found.values)
            longest = max(longest, written)
    assert SAMPLES_PER_TURN <= longest <= 2 * SAMPLES_PER_TURN


def test_labels_of_former_partitions_are_let_go() -> None:
    """They are kept from scrape to scrape for the partitions that there are; topics that come and
    go would leave theirs for ever."""
    for topic in range(SPARE_LABELS + 100):
        labels_of(TopicPartition(f"former{topic}", 0))
        labels_of_topic(f"former{topic}")
    list(of_logs([], Pauses(lambda: None)))
    kept = [cache.cache_info().currsize for cache in (labels_of, labels_of_topic)]
    assert kept == [0, 0]
    labels_of(TopicPartition("t", 0))
    list(of_logs([], Pauses(lambda: None)))
    assert labels_of.cache_info().currsize == 1
