"""`kafka08 mirror` between two clusters: killed and started again, with brokers that die."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.consumer import SimpleConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from kafka08.structs import TopicPartition
from tests.mirror.mirrored import (
    DEADLINE_S,
    KEYS,
    PARTITIONS,
    Feed,
    Mirrors,
    check,
    committed,
    copies,
)
from tests.scrape import Scrape
from tests.waiting import until


@pytest.fixture(scope="module")
def source() -> Iterator[EmbeddedCluster]:
    config = {"num.partitions": PARTITIONS, "metrics.port": 0}
    with EmbeddedCluster(1, config, level="0.8.2") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def target() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, config={"num.partitions": PARTITIONS}) as cluster:
        yield cluster


@pytest.fixture
def mirrors(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path) -> Iterator[Mirrors]:
    mirrors = Mirrors(source, target, tmp_path / "mirror.log")
    yield mirrors
    if mirrors.running is not None:
        mirrors.end(signal.SIGKILL)
    sys.stderr.write(mirrors.said)


def bytes_out(cluster: EmbeddedCluster, topic: str) -> float:
    """How much of a topic its only broker has sent to consumers."""
    return Scrape(cluster.brokers[0]).value(
        "kafka_server_brokertopicmetrics_bytesout_total", topic=topic
    )


def test_a_run_after_a_clean_stop_copies_nothing_again(
    source: EmbeddedCluster, target: EmbeddedCluster, mirrors: Mirrors
) -> None:
    """SIGTERM commits what was acknowledged: the next run begins right behind it."""
    topic = "stopped"
    source.create_topic(topic, PARTITIONS)
    target.create_topic(topic, PARTITIONS)
    feed = Feed(source, topic)
    for _ in range(2):
        feed.write(20 * KEYS)
        mirrors.start(topic)
        until(lambda: copies(target, topic) >= feed.count)
        assert 0 == mirrors.end()
    assert 0 == check(target, topic, feed.count)
    assert feed.count == committed(source, topic)
    assert 2 == mirrors.said.count(f"Copied {20 * KEYS} messages")


def test_kill_9_loses_nothing(
    source: EmbeddedCluster, target: EmbeddedCluster, mirrors: Mirrors
) -> None:
    """Killed in the middle and started again, three times, while messages come in: all of them are
    there, and the last copies of each key in their order."""
    topic = "killed"
    source.create_topic(topic, PARTITIONS)
    target.create_topic(topic, PARTITIONS)
    feed = Feed(source, topic)
    for _ in range(3):
        feed.write(1000 * KEYS)
        before = copies(target, topic)
        mirrors.start(topic)
        until(lambda before=before: copies(target, topic) > before)  # type: ignore[misc]
        mirrors.end(signal.SIGKILL)
        assert committed(source, topic) <= copies(target, topic)
    feed.write(KEYS)
    mirrors.start(topic)
    until(lambda: committed(source, topic) == feed.count)
    assert 0 == mirrors.end()
    check(target, topic, feed.count)


def test_a_broker_of_the_target_that_dies_is_waited_for(
    source: EmbeddedCluster, target: EmbeddedCluster, mirrors: Mirrors
) -> None:
    """It has the only replica of some partitions: the mirror continues once it is back, messages
    for the others arrive meanwhile, and none is lost or out of order."""
    topic = "orphaned"
    source.create_topic(topic, PARTITIONS)
    target.create_topic(topic, PARTITIONS)
    feed = Feed(source, topic)
    feed.write(10 * KEYS)
    mirrors.start(topic, "--producer-override", "request.timeout.ms=2000")
    until(lambda: copies(target, topic) >= feed.count)
    victim = target.leader_of(topic, 0)
    target.kill(victim)
    feed.write(500 * KEYS)
    until(lambda: "not stored by the target" in mirrors.said)
    target.restart(victim)
    until(lambda: committed(source, topic) == feed.count)
    assert 0 == mirrors.end()
    check(target, topic, feed.count)


@pytest.mark.parametrize("on_failure", ["skip", "abort"])
def test_one_message_too_large_costs_no_other(
    source: EmbeddedCluster, target: EmbeddedCluster, mirrors: Mirrors, on_failure: str
) -> None:
    """The target's leader refuses the whole set that it comes in. Skipped, it alone is missing;
    else the mirror ends and says which it was, and has not committed it."""
    topic = f"large-{on_failure}"
    source.create_topic(topic)
    target.create_topic(topic, config={"max.message.bytes": 1000})
    values = [b"x" * (5000 if n == 10 else 10) for n in range(20)]
    config = KafkaProducerConfig(bootstrap_servers=source.bootstrap)
    with KafkaProducer(config) as producer:
        producer.send_many(topic, values).result(DEADLINE_S)
    mirrors.start(topic, "--on-failure", on_failure)
    assert mirrors.running is not None
    if on_failure == "abort":
        assert 1 == mirrors.running.wait(DEADLINE_S)
        mirrors.running = None
        assert f"[{topic},0]: the target refused 1 messages, offsets 10:" in mirrors.said
        assert committed(source, topic) <= 10
        return
    until(lambda: committed(source, topic) == len(values))
    assert 0 == mirrors.end()
    leader = target.leader_of(topic)
    with SimpleConsumer(leader.host, leader.port) as consumer:
        copied = [m.value for m in consumer.read_range(TopicPartition(topic, 0), 0)]
    assert [*values[:10], *values[11:]] == copied
    assert "skipped 1 that the target refused" in mirrors.said


def test_a_target_that_is_gone_does_not_keep_a_stop(
    source: EmbeddedCluster, target: EmbeddedCluster, mirrors: Mirrors
) -> None:
    """Unacknowledged messages are not committed, and SIGTERM ends the mirror nevertheless."""
    topic = "away"
    source.create_topic(topic, PARTITIONS)
    target.create_topic(topic, PARTITIONS)
    feed = Feed(source, topic)
    feed.write(10 * KEYS)
    mirrors.start(topic)
    until(lambda: committed(source, topic) == feed.count)
    for broker in target.brokers:
        target.kill(broker)
    before = bytes_out(source, topic)
    feed.write(10 * KEYS)
    until(lambda: bytes_out(source, topic) > before, "the mirror to fetch some of them")
    assert 0 == mirrors.end()
    assert 10 * KEYS == committed(source, topic)
    for broker in target.brokers:
        target.restart(broker)
    mirrors.start(topic)
    until(lambda: committed(source, topic) == feed.count)
    assert 0 == mirrors.end()
    check(target, topic, feed.count)


def test_a_cluster_is_not_mirrored_into_itself(source: EmbeddedCluster, mirrors: Mirrors) -> None:
    """It is misuse, reported before any read."""
    mirrors.start("any", "--target-bootstrap", source.bootstrap)
    assert mirrors.running is not None
    assert 2 == mirrors.running.wait(DEADLINE_S)
    mirrors.running = None
    assert "source and target are the same cluster" in mirrors.said
