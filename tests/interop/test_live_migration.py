"""A live group of one JVM member and one of ours on a JVM 0.8.2.2 broker, there and back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka08.errors import MigrationError
from kafka08.migration import OffsetMigration, State, Watching
from kafka08.migration.connections import Connections
from kafka08.migration.mirror import Mirror
from kafka08.structs import TopicPartition
from kafka08.zk.orders import Storage
from tests.histories.offsets import OffsetHistory
from tests.interop.jvm import JvmKafka, JvmProcess
from tests.migration.live_group import Load, MemberProcess, until, watched_stores

GROUP = TOPIC = "live-migration"
PARTITIONS = 4
WATCHING = Watching(seconds=3.0, interval_ms=1500, period_s=0.2)


class JvmMember:
    """A ConsoleConsumer whose lines, `<partition> <offset>`, go into the history as they come."""

    def __init__(
        self, kafka: JvmKafka, directory: Path, history: OffsetHistory, storage: Storage
    ) -> None:
        directory.mkdir()
        properties = directory / "consumer.properties"
        keys = {
            "group.id": GROUP,
            "consumer.id": "jvm",
            "zookeeper.connect": kafka.zookeeper,
            "zookeeper.session.timeout.ms": "20000",
            "rebalance.backoff.ms": "500",
            "auto.offset.reset": "smallest",
            "auto.commit.interval.ms": "200",
            **storage.properties,
        }
        properties.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        where = ["--zookeeper", kafka.zookeeper, "--topic", TOPIC]
        self.process = JvmProcess(
            "JVM member",
            directory / "consumer.out",
            "kafka.tools.ConsoleConsumer",
            *where,
            "--consumer.config",
            str(properties),
            ready=lambda: True,
        )
        self._history = history
        self.process.start()

    def stop(self) -> None:
        """A clean stop, which commits; then its lines are noted."""
        self.process.stop()
        for line in self.process.output().split("\n")[:-1]:
            words = line.split()
            if len(words) == 2 and all(word.isdecimal() for word in words):
                self._history.handed(TopicPartition(TOPIC, int(words[0])), int(words[1]))


@pytest.fixture
def connections(jvm_kafka: JvmKafka) -> Iterator[Connections]:
    with Connections(jvm_kafka.zookeeper, jvm_kafka.bootstrap) as connections:
        yield connections


@contextmanager
def mirrored(migration: OffsetMigration) -> Iterator[None]:
    """A mirror at work, until the end of the block."""
    stopping = threading.Event()

    def work() -> None:
        mirror = Mirror(migration)
        while not stopping.wait(0.2):
            mirror.copy()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def test_there_and_back_with_a_jvm_member(
    jvm_kafka: JvmKafka, connections: Connections, tmp_path: Path
) -> None:
    """Ours switches by itself; the JVM's is recognised, the properties that it needs are said, what
    it does meanwhile is seen, and a mirror stands in for it. Nothing is skipped, and no committed
    offset goes back. What comes again is what our stream had in hand of the partitions that it gave
    up: one message each time that the JVM's member joins (guarantee 4 of docs/consumer.md)."""
    jvm_kafka.create_topic(TOPIC, PARTITIONS)
    partitions = [TopicPartition(TOPIC, n) for n in range(PARTITIONS)]
    history = OffsetHistory(ordered=False)
    load = Load(jvm_kafka.bootstrap, partitions, 100)
    ours = MemberProcess(
        TOPIC,
        {
            "group.id": GROUP,
            "consumer.id": "ours",
            "zookeeper.connect": jvm_kafka.zookeeper,
            "zookeeper.session.timeout.ms": "20000",
            "rebalance.backoff.ms": "500",
            "auto.offset.reset": "smallest",
            "auto.commit.interval.ms": "200",
        },
        history,
    )
    jvm = JvmMember(jvm_kafka, tmp_path / "1", history, Storage.ZOOKEEPER)
    joins = 1
    migration = OffsetMigration(group=GROUP, connections=connections, answer_patience_s=30)

    def share_all() -> bool:
        """Both own two partitions each, and have committed all four."""
        facts = migration.facts()
        owners = [facts.owner(p) for p in facts.partitions]
        names = sorted(m.consumer_id for m in owners if m is not None)
        return names == [f"{GROUP}_jvm"] * 2 + [f"{GROUP}_ours"] * 2

    def restarted(storage: Storage) -> JvmMember:
        nonlocal joins
        jvm.stop()
        joins += 1
        member = JvmMember(jvm_kafka, tmp_path / str(joins), history, storage)
        until(share_all, "both members")
        return member

    try:
        until(share_all, "both members")
        with watched_stores(connections, GROUP, partitions, history):
            migration.start()
            [to_do] = migration.status().to_do
            assert f"{GROUP}_jvm" in to_do
            assert "offsets.storage=kafka and dual.commit.enabled=true" in to_do
            problems = migration.verify(WATCHING).problems
            assert any("owned by" in problem and f"{GROUP}_jvm" in problem for problem in problems)
            assert not any(f"{GROUP}_ours" in problem for problem in problems)
            with mirrored(migration):
                assert migration.verify(WATCHING).problems == ()
            jvm = restarted(Storage.DUAL)
            assert migration.verify(WATCHING).problems == ()
            found = migration.finish(WATCHING)
            assert any("still moves" in problem for problem in found.problems)
            assert "dual.commit.enabled=false" in found.to_do[0]
            jvm = restarted(Storage.KAFKA)
            assert migration.finish(WATCHING).problems == ()
            impatient = OffsetMigration(group=GROUP, connections=connections, answer_patience_s=2)
            with pytest.raises(MigrationError, match=f"{GROUP}_jvm.*dual.commit.enabled=true"):
                impatient.rollback()
            jvm = restarted(Storage.DUAL)
            migration.rollback()
            jvm = restarted(Storage.ZOOKEEPER)
            entry = migration.journal()
            assert entry is not None
            assert entry.state is State.ROLLED_BACK
            ends = load.stop()

            def is_read() -> bool:
                return all(
                    p.zookeeper == ends[p.topic_partition] for p in migration.facts().partitions
                )

            until(is_read, "the end of the logs")
        jvm.stop()
        ours.stop()
    finally:
        load.close()
        jvm.process.kill()
        ours.kill()
    assert history.problems(ends) == []
    assert history.repetitions <= joins
