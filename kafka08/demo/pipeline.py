"""The stages of the demo, in order. Each returns what it read and whether it was exactly right.

spark_stages.py has those in Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from kafka08.admin import AdminClient
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.requests import StorageName
from kafka08.consumer import SimpleConsumer
from kafka08.demo import corpus
from kafka08.demo.ledger import Content, Ledger
from kafka08.demo.readers import Group, Tally
from kafka08.demo.stage import Progress, StageResult, differences
from kafka08.embedded import EmbeddedCluster
from kafka08.migration import OffsetMigration, Watching
from kafka08.producer import ByteArrayPartitioner, KeyedMessage, Producer, ProducerConfig
from kafka08.structs import LATEST_OFFSET, TopicPartition

TOPIC: Final = "standard-library"
GROUP: Final = "demo-readers"
PARTITIONS: Final = 6
REPLICAS: Final = 3
"""Replication factor: the number of brokers, up to this."""
PRODUCE_BATCH: Final = 2000
COMMIT_INTERVAL_MS: Final = 500
WATCHING: Final = Watching(seconds=4.0, interval_ms=2000, period_s=0.2)
"""How often both stores are read while the group runs."""
ALL_PARTITIONS: Final = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]


def run_demo(
    source: Path, *, brokers: int, output: Path | None, progress: Progress
) -> Iterator[StageResult]:
    """Run every stage and yield its result; stop after the first failure.

    output   directory for the results of the Spark stages; None skips these stages

    Raises KafkaError if a stage cannot run. The cluster is removed afterwards in any case.
    """
    started = time.monotonic()
    some = "1 broker" if brokers == 1 else f"{brokers} brokers"
    progress.stage(f"starting ZooKeeper and {some}", None)
    with EmbeddedCluster(brokers=brokers) as cluster, ExitStack() as stack:
        job = Job(cluster, source, progress)
        yield StageResult(f"start {some}", Content(), time.monotonic() - started, "cluster is up")
        stages = [job.produce, job.consume_half, job.migrate, job.consume_rest, job.roll_back]
        if output is not None:
            from kafka08.demo.spark_stages import SparkStages

            spark = stack.enter_context(
                SparkStages(cluster, TOPIC, job.ledger, source, output, progress)
            )
            stages += [spark.read_ranges, spark.count_identifiers]
        for stage in stages:
            result = stage()
            yield result
            if result.fault:
                return


class Job:
    """The state that the stages share: the cluster, the produced and the read messages."""

    def __init__(self, cluster: EmbeddedCluster, source: Path, progress: Progress) -> None:
        self.cluster = cluster
        self.source = source
        self.progress = progress
        self.ledger = Ledger(PARTITIONS)
        self.tally = Tally(ceiling=0)

    def produce(self) -> StageResult:
        """Produce every line, keyed by its file; then compare the log ends with the ledger."""
        with AdminClient(zookeeper=self.cluster.zookeeper.connect_string) as admin:
            admin.create_topic(TOPIC, PARTITIONS, min(REPLICAS, len(self.cluster.brokers)))
            admin.await_leaders(TOPIC)
        config = ProducerConfig(
            {
                "metadata.broker.list": self.cluster.bootstrap,
                "request.required.acks": "-1",  # every in-sync replica has it
                "partitioner.class": "kafka.producer.ByteArrayPartitioner",
            }
        )
        partitioner = ByteArrayPartitioner()
        tick = self.progress.stage("produce", None)
        started = time.monotonic()
        lines = corpus.lines(self.source)
        sent = 0
        with Producer(config) as producer:
            while batch := list(islice(lines, PRODUCE_BATCH)):
                producer.send([KeyedMessage(TOPIC, value, key=key) for key, value in batch])
                for key, value in batch:
                    self.ledger.add(partitioner(key, PARTITIONS), key, value)
                sent += len(batch)
                tick(sent)
        seconds = time.monotonic() - started
        fault = differences("log end", self.log_ends(), self.ledger.log_ends())
        return StageResult("produce", self.ledger.whole(), seconds, "log ends match", fault)

    def consume_half(self) -> StageResult:
        """Two members: one leaves at a quarter and is replaced later; all leave half way. With a
        second broker to take over, one is killed at an eighth, and restarted afterwards."""
        total = self.ledger.whole().count
        victim = self.cluster.brokers[-1].id
        result = self._consume(
            "consume half, offsets in ZooKeeper",
            "zookeeper",
            [
                (0, "join", "reader-a"),
                (0, "join", "reader-b"),
                *([(total // 8, "kill", str(victim))] if victim else []),
                (total // 4, "leave", "reader-b"),
                (total * 3 // 8, "join", "reader-c"),
            ],
            total // 2,
        )
        if not victim:
            return result
        self.cluster.heal()
        self.progress.happened(f"broker {victim} was started again")
        return replace(result, verdict=f"{result.verdict}; broker {victim} was killed")

    def consume_rest(self) -> StageResult:
        """The group continues from the offsets topic, without reading ZooKeeper's offsets."""
        return self._consume(
            "consume the rest, offsets in Kafka",
            "kafka",
            [(0, "join", "reader-a"), (0, "join", "reader-c")],
            self.ledger.whole().count,
        )

    def _consume(
        self,
        title: str,
        storage: StorageName,
        changes: list[tuple[int, str, str]],
        until: int,
        migrate: Callable[[], None] | None = None,
    ) -> StageResult:
        """Run members with `storage` configured. With `migrate`, which performs the migration, the
        commits are in Kafka at the end."""
        tick = self.progress.stage(title, until)
        before = self.tally.content
        started = time.monotonic()
        properties = {
            "zookeeper.connect": self.cluster.zookeeper.connect_string,
            "group.id": GROUP,
            "auto.offset.reset": "smallest",
            "offsets.storage": storage,
            "dual.commit.enabled": "false",
            "auto.commit.interval.ms": str(COMMIT_INTERVAL_MS),
        }
        group = Group(TOPIC, properties, self.tally)
        try:
            for count, change, member in changes:
                group.read_up_to(max(count, before.count), lambda seen: tick(seen.count))
                if change == "migrate" and migrate is not None:
                    migrate()
                else:
                    self._change(group, change, member)
            group.read_up_to(until, lambda seen: tick(seen.count))
        finally:
            group.leave_all()
        seconds = time.monotonic() - started
        now = self.tally.content
        moved = now - before
        return StageResult(
            title,
            moved,
            seconds,
            f"content and commits match, {self.tally.duplicates} read twice",
            self._group_fault("kafka" if migrate is not None else storage),
        )

    def _change(self, group: Group, change: str, name: str) -> None:
        if change == "join":
            group.join(name)
            self.progress.happened(f"{name} joined the group")
        elif change == "leave":
            group.leave(name)
            self.progress.happened(f"{name} left; the others read its partitions")
        else:
            self.cluster.kill(int(name))
            self.progress.happened(f"broker {name} was killed; others lead its partitions")

    def _group_fault(self, storage: StorageName) -> str:
        """How the read and committed messages differ from the expected; empty if not at all."""
        position = self.tally.next_offsets()
        expected = self.ledger.below(position)
        if self.tally.content != expected:
            return f"read {self.tally.content}, produced {expected}"
        return differences(f"offset in {storage}", self.committed(storage), position)

    def migrate(self) -> StageResult:
        """The group's offsets move to Kafka while two members read, configured for ZooKeeper: they
        switch without a restart, first to both stores, then to Kafka alone."""
        total = self.ledger.whole().count
        problems: list[str] = []

        def move() -> None:
            self.tally.ceiling = total * 3 // 4  # they read meanwhile
            with self._migration() as migration:
                migration.start()
                self.progress.happened("the members commit to ZooKeeper and to Kafka")
                problems.extend(migration.verify(WATCHING).problems)
                if not problems:
                    problems.extend(migration.finish(WATCHING).problems)
                    self.progress.happened("the members commit to Kafka alone")

        result = self._consume(
            "migrate to Kafka while the group reads",
            "zookeeper",
            [
                (0, "join", "reader-a"),
                (0, "join", "reader-c"),
                (total * 9 // 16, "migrate", ""),
            ],
            total * 3 // 4,
            migrate=move,
        )
        verdict = f"members switched, {result.verdict}"
        return replace(result, verdict=verdict, fault="; ".join(problems) or result.fault)

    def roll_back(self) -> StageResult:
        """Back to ZooKeeper, at the newest safe offset: the group's present one."""
        self.progress.stage("roll back to ZooKeeper", None)
        started = time.monotonic()
        with self._migration() as migration:
            migration.rollback()
        fault = differences(
            "offset in zookeeper", self.committed("zookeeper"), self.tally.next_offsets()
        )
        return StageResult(
            "roll back", Content(), time.monotonic() - started, "ZooKeeper is up to date", fault
        )

    def _migration(self) -> OffsetMigration:
        return OffsetMigration(
            zookeeper=self.cluster.zookeeper.connect_string,
            bootstrap=self.cluster.bootstrap,
            group=GROUP,
        )

    def log_ends(self) -> dict[int, int]:
        """partition → log end offset, from the partition's leader."""
        with closing(ClusterClient(parse_bootstrap(self.cluster.bootstrap))) as client:
            leaders = {tp.partition: (tp, client.leader(tp)) for tp in ALL_PARTITIONS}
        ends = {}
        for partition, (tp, broker) in leaders.items():
            with SimpleConsumer(broker.host, broker.port) as consumer:
                ends[partition] = consumer.earliest_or_latest(tp, LATEST_OFFSET)
        return ends

    def committed(self, storage: StorageName) -> dict[int, int]:
        """partition → the group's committed offset in one store, of those that have one."""
        host, port = parse_bootstrap(self.cluster.bootstrap)[0]
        with SimpleConsumer(host, port) as consumer:
            offsets = consumer.fetch_offsets(GROUP, ALL_PARTITIONS, storage)
        return {tp.partition: found.offset for tp, found in offsets.items() if found.offset >= 0}
