"""ConsumerConnector on a real 0.8.2.2 broker, alone, killed, and in one group with the JVM's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.requests import produce_request, produce_results
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaStream
from kafka08.consumer.zookeeper.assignors import range_assign
from kafka08.errors import ConsumerTimeout, check
from kafka08.groups import GroupReader, explain
from kafka08.migration import OffsetMigration
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.store import ClusterStore
from tests.interop.jvm import JvmKafka, JvmProcess
from tests.waiting import until

PARTITIONS = 4
SESSION_MS = "2000"


@pytest.fixture
def topic(jvm_kafka: JvmKafka, request: pytest.FixtureRequest) -> str:
    """A topic of four partitions for this test alone."""
    name = str(request.node.name).removeprefix("test_").replace("[", "-").rstrip("]")
    jvm_kafka.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def store(jvm_kafka: JvmKafka) -> Iterator[ClusterStore]:
    with ZkClient(jvm_kafka.zookeeper) as zk:
        yield ClusterStore(zk)


def produce(kafka: JvmKafka, topic: str, count: int, codec: int = 0) -> None:
    """`count` messages to each partition, in sets of at most 100; values are their numbers."""
    cluster = ClusterClient(parse_bootstrap(kafka.bootstrap))
    for number in range(PARTITIONS):
        tp = TopicPartition(topic, number)
        for first in range(0, count, 100):
            values = [(None, b"%d" % i) for i in range(first, min(first + 100, count))]
            request = produce_request(
                {tp: message_set.encode(values, codec)}, required_acks=1, timeout_ms=5000
            )
            response = cluster.send(cluster.leader(tp), request)
            check(produce_results(response)[tp].error_code)  # type: ignore[arg-type]
    cluster.close()


def config(kafka: JvmKafka, group: str, **keys: Any) -> ConsumerConfig:
    defaults: dict[str, Any] = {
        "group_id": group,
        "zookeeper_connect": kafka.zookeeper,
        "zookeeper_session_timeout_ms": SESSION_MS,
        "rebalance_backoff_ms": 1000,
        "auto_offset_reset": "smallest",
        "consumer_timeout_ms": 1500,
    }
    return ConsumerConfig(**(defaults | keys))


def take(stream: KafkaStream[bytes, bytes], count: int) -> list[tuple[int, int]]:
    """(partition, offset) of the next `count` messages."""
    seen: list[tuple[int, int]] = []

    def read_on() -> bool:
        with suppress(ConsumerTimeout):
            for message in islice(stream, count - len(seen)):
                seen.append((message.partition, message.offset))
        return len(seen) == count

    until(read_on, f"{count} messages")
    return seen


def drain(
    stream: KafkaStream[bytes, bytes], count: int, *, numbered: bool = True
) -> list[tuple[int, int]]:
    """(partition, offset) of `count` messages at least, and of every one until the stream is silent
    then: before, a busy machine may be silent for longer. `numbered`: values are offsets."""
    seen: list[tuple[int, int]] = []

    def read_on() -> bool:
        with suppress(ConsumerTimeout):
            for message in stream:
                assert message.value == b"%d" % message.offset or not numbered
                seen.append((message.partition, message.offset))
        return len(seen) >= count

    until(read_on, f"{count} messages", explain=lambda: f"{len(seen)} came")
    return seen


def everything(count: int, first: int = 0) -> list[tuple[int, int]]:
    return [(p, offset) for p in range(PARTITIONS) for offset in range(first, count)]


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_reads_everything_once(jvm_kafka: JvmKafka, topic: str, codec: int) -> None:
    """A member reads every message of every partition once and in order, compressed or not; a
    second member later begins where the first one stopped."""
    produce(jvm_kafka, topic, 250, codec)
    with ConsumerConnector(config(jvm_kafka, topic)) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        seen = drain(stream, 250 * PARTITIONS)
        assert sorted(seen, key=lambda at: at[0]) == everything(250)
    produce(jvm_kafka, topic, 1, codec)
    with ConsumerConnector(config(jvm_kafka, topic)) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        seen = drain(stream, PARTITIONS, numbered=False)
        assert sorted(seen) == [(p, 250) for p in range(PARTITIONS)]


def test_an_oversize_message_is_read(jvm_kafka: JvmKafka, topic: str) -> None:
    """A message above fetch.message.max.bytes is fetched again with its size, where 0.8.2.2 raises;
    the messages behind it follow."""
    cluster = ClusterClient(parse_bootstrap(jvm_kafka.bootstrap))
    tp = TopicPartition(topic, 0)
    for value in (b"small", b"x" * 50_000, b"small"):
        data = message_set.encode([(None, value)])
        cluster.send(
            cluster.leader(tp), produce_request({tp: data}, required_acks=1, timeout_ms=5000)
        )
    cluster.close()
    oversize = config(jvm_kafka, topic, fetch_message_max_bytes=1000, consumer_timeout_ms=60_000)
    with ConsumerConnector(oversize) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert [5, 50_000, 5] == [len(next(stream).value or b"") for _ in range(3)]


@pytest.mark.parametrize("storage", ["zookeeper", "kafka", "dual"])
def test_commits_go_to_the_configured_stores(
    jvm_kafka: JvmKafka, topic: str, store: ClusterStore, storage: str
) -> None:
    """An explicit commit includes the current message. Only the configured stores have it, and the
    next member starts from it."""
    produce(jvm_kafka, topic, 100)
    keys = {
        "auto_commit_enable": False,
        "offsets_storage": "zookeeper" if storage == "zookeeper" else "kafka",
        "dual_commit_enabled": storage == "dual",
    }
    seen = []
    with ConsumerConnector(config(jvm_kafka, topic, **keys)) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        seen = take(stream, 150)
        connector.commit_offsets()
    tps = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    with OffsetMigration(jvm_kafka.zookeeper, topic, jvm_kafka.bootstrap) as tool:
        found = {f.topic_partition.partition: f for f in tool.facts().partitions}
    expected = {p: max((o + 1 for q, o in seen if q == p), default=None) for p in range(PARTITIONS)}
    moved = {p: offset for p, offset in expected.items() if offset is not None}
    in_kafka = {p: f.kafka for p, f in found.items() if f.kafka}
    in_zookeeper = {
        tp.partition: o for tp, o in GroupStore(store.zk).offsets(topic, tps).items() if o
    }
    assert (in_kafka or moved) == moved
    assert (bool(in_kafka), bool(in_zookeeper)) == (storage != "zookeeper", storage != "kafka")
    assert (in_zookeeper or moved) == moved
    with ConsumerConnector(config(jvm_kafka, topic, **keys)) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        rest = drain(stream, 100 * PARTITIONS - len(seen))
    assert sorted(seen + rest) == everything(100)


def test_two_members_share_and_one_takes_over(
    jvm_kafka: JvmKafka, topic: str, store: ClusterStore
) -> None:
    """Two members together read everything once. After one leaves, the other continues where it
    stopped and repeats at most the leaver's current message."""
    produce(jvm_kafka, topic, 200)
    a = ConsumerConnector(config(jvm_kafka, topic, consumer_id="a"))
    b = ConsumerConnector(config(jvm_kafka, topic, consumer_id="b"))
    with a, b:
        stream_a = a.create_message_streams({topic: 1})[topic][0]
        stream_b = b.create_message_streams({topic: 1})[topic][0]
        until(lambda: len(a.assignment) == len(b.assignment) == 2, "two partitions each")
        seen = drain(stream_a, 400) + drain(stream_b, 400)
        assert sorted(seen) == everything(200)
        produce(jvm_kafka, topic, 50)
        part = take(stream_b, 30)
        b.shutdown()
        until(lambda: len(a.assignment) == PARTITIONS, "all partitions")
        after = drain(stream_a, 50 * PARTITIONS - len(part), numbered=False)
    assert set(part + after) == {(p, o) for p, o in everything(250) if o >= 200}
    assert len(part + after) <= PARTITIONS * 50 + 1


def jvm_consumer(kafka: JvmKafka, group: str, topic: str, directory: Path) -> JvmProcess:
    """A ConsoleConsumer in `group` (it registers a white_list), with the session of our members."""
    properties = directory / "consumer.properties"
    properties.write_text(
        f"group.id={group}\nzookeeper.connect={kafka.zookeeper}\nconsumer.id=jvm\n"
        f"zookeeper.session.timeout.ms={SESSION_MS}\nrebalance.backoff.ms=500\n"
        "auto.offset.reset=smallest\nauto.commit.interval.ms=200\n"
    )
    where = ["--zookeeper", kafka.zookeeper, "--topic", topic]
    return JvmProcess(
        "JVM consumer",
        directory / "consumer.out",
        "kafka.tools.ConsoleConsumer",
        *where,
        "--consumer.config",
        str(properties),
        ready=lambda: True,
    )


def test_guarantee_5_one_group_with_the_jvm(
    jvm_kafka: JvmKafka, topic: str, store: ClusterStore, tmp_path: Path
) -> None:
    """Members of both kinds join, leave and are killed: each time every partition has one owner,
    the one that the assignor chose, and each kind reads its partitions. `group explain` finds no
    problem in such a group."""
    produce(jvm_kafka, topic, 100)
    last = TopicPartition(topic, 3)

    def owned_as(*names: str) -> bool:
        threads = [f"{topic}_{name}-0" for name in names]
        expected = range_assign({topic: range(PARTITIONS)}, {topic: threads})
        return GroupStore(store.zk).owners(topic, topic) == {
            tp.partition: t for tp, t in expected.items()
        }

    a = ConsumerConnector(config(jvm_kafka, topic, consumer_id="a", auto_commit_interval_ms=200))
    with a:
        [stream] = a.create_message_streams({topic: 1})[topic]
        assert owned_as("a")
        with jvm_consumer(jvm_kafka, topic, topic, tmp_path) as jvm:
            until(
                lambda: owned_as("a", "jvm"), "the JVM member's half", explain=jvm.describe_failure
            )
            z = ConsumerConnector(config(jvm_kafka, topic, consumer_id="z"))
            with z:
                z.create_message_streams({topic: 1})
                until(
                    lambda: owned_as("a", "jvm", "z"), "three owners", explain=jvm.describe_failure
                )
            until(lambda: owned_as("a", "jvm"), "two owners again", explain=jvm.describe_failure)
            with GroupReader(jvm_kafka.zookeeper) as reader:
                facts = reader.facts(topic)
                assert [m.pattern for m in facts.members] == ["static", "white_list"]
                assert [str(f) for f in explain(facts) if f.problem] == []
            before = drain(stream, 200)
            assert {p for p, _ in before} <= {0, 1}
            until(
                lambda: GroupStore(store.zk).offsets(topic, [last]) == {last: 100},
                "the JVM member's commit",
                explain=jvm.describe_failure,
            )
            jvm.kill()
        until(lambda: owned_as("a"), "everything after the kill")
        produce(jvm_kafka, topic, 10)
        after = drain(stream, 10 * PARTITIONS, numbered=False)
    assert set(before) | set(after) >= {(p, o) for p, o in everything(100) if p in {0, 1}}
    assert {(p, o) for p, o in after if o >= 100} == set(everything(110, 100))


def test_a_jvm_member_starts_where_ours_stopped(
    jvm_kafka: JvmKafka, topic: str, tmp_path: Path
) -> None:
    """A JVM member reads exactly the messages behind our commits in ZooKeeper."""
    produce(jvm_kafka, topic, 100)
    with ConsumerConnector(config(jvm_kafka, topic)) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert sorted(drain(stream, 100 * PARTITIONS)) == everything(100)
    produce(jvm_kafka, topic, 7)
    with jvm_consumer(jvm_kafka, topic, topic, tmp_path) as jvm:
        until(
            lambda: jvm.output().count("\n6\n") >= PARTITIONS,
            "the new messages",
            explain=jvm.describe_failure,
        )
        lines = [line for line in jvm.output().splitlines() if line.isdigit()]
    assert sorted(lines) == sorted(str(i) for i in range(7) for _ in range(PARTITIONS))


class KilledMember:
    """A member process that writes what it is handed to `output`, until it is killed."""

    def __init__(self, output: Path, topic: str, keys: list[str], delay_ms: int = 0) -> None:
        self.output = output
        with output.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.interop.member_process", topic, str(delay_ms), *keys],
                stdout=out,
                start_new_session=True,
                cwd=Path(__file__).parent.parent.parent,
            )

    def seen(self) -> list[tuple[int, int]]:
        """(partition, offset) of the whole lines; the last one may have been cut by the kill."""
        lines = self.output.read_text().split("\n")[:-1]
        return [(int(p), int(o)) for p, o in (line.split() for line in lines if line != "ready")]

    def wait_for(self, count: int) -> None:
        until(lambda: len(self.seen()) >= count, f"{count} messages")

    def freeze(self) -> None:
        """SIGSTOP; it writes nothing any more when this returns."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def keys_of_process(kafka: JvmKafka, group: str) -> list[str]:
    return [
        f"group.id={group}",
        f"zookeeper.connect={kafka.zookeeper}",
        f"zookeeper.session.timeout.ms={SESSION_MS}",
        "auto.offset.reset=smallest",
        "auto.commit.interval.ms=20",
        "rebalance.backoff.ms=1000",
    ]


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_guarantee_1_a_stopped_process_neither_delivers_nor_commits(
    jvm_kafka: JvmKafka, topic: str, tmp_path: Path, storage: str
) -> None:
    """A member is stopped (SIGSTOP) in a set until its session ends, and another one reads to the
    end. When the process continues, it delivers at most one more message of the old set, and no
    offset goes back."""
    produce(jvm_kafka, topic, 300)
    keys = [*keys_of_process(jvm_kafka, topic), f"offsets.storage={storage}"]
    frozen = KilledMember(tmp_path / "frozen.out", topic, keys, delay_ms=20)
    try:
        frozen.wait_for(20)
        frozen.freeze()
        before = frozen.seen()
        other = config(jvm_kafka, topic, offsets_storage=storage, consumer_timeout_ms=6000)
        with ConsumerConnector(other) as connector:
            [stream] = connector.create_message_streams({topic: 1})[topic]
            seen = drain(stream, len(set(everything(300)) - set(before)))
            connector.commit_offsets()
            assert set(before + seen) == set(everything(300))
            frozen.thaw()
            until(lambda: len(connector.assignment) == 2, "the frozen member's return")
            # What it still delivers of the old set comes before the first new message.
            produce(jvm_kafka, topic, 1)
            until(lambda: any(offset == 300 for _, offset in frozen.seen()), "a new message")
        old = [offset for _, offset in frozen.seen()[len(before) :] if offset < 300]
        assert len(old) <= 1
    finally:
        frozen.kill()
    with OffsetMigration(jvm_kafka.zookeeper, topic) as tool:
        assert {f.newest for f in tool.facts().partitions} <= {300, 301}


def test_guarantee_4_kill_9_loses_nothing(jvm_kafka: JvmKafka, topic: str, tmp_path: Path) -> None:
    """A member is killed repeatedly while it reads, and its replacement continues: every message is
    delivered, and no member skips one that was not delivered before."""
    produce(jvm_kafka, topic, 2000)
    keys = keys_of_process(jvm_kafka, topic)
    next_offsets = dict.fromkeys(range(PARTITIONS), 0)
    lives = 0
    while any(next_offset < 2000 for next_offset in next_offsets.values()):
        lives += 1
        assert lives < 10, f"no progress: {next_offsets}"
        member = KilledMember(tmp_path / f"member-{lives}.out", topic, keys)
        member.wait_for(100 if lives < 4 else 1)
        time.sleep(0.03 if lives < 4 else 2)
        member.kill()
        for number, offset in member.seen():
            assert offset <= next_offsets[number], "a message was skipped"
            next_offsets[number] = max(next_offsets[number], offset + 1)
    assert next_offsets == dict.fromkeys(range(PARTITIONS), 2000)


def test_guarantee_4_kill_9_repeats_no_more_than_a_commit_interval(
    jvm_kafka: JvmKafka, topic: str, tmp_path: Path
) -> None:
    """A member that processes a message in 5 ms and commits every 200 ms is killed at three
    instants: its successor repeats the messages since the last commit, at most those of an interval
    and of one commit in flight, to which a busy machine gives a second."""
    produce(jvm_kafka, topic, 400)
    delay_ms, interval_ms, busy_ms = 5, 200, 1000
    keys = [*keys_of_process(jvm_kafka, topic), f"auto.commit.interval.ms={interval_ms}"]
    next_offsets = dict.fromkeys(range(PARTITIONS), 0)
    repeated = []
    for life in range(4):
        member = KilledMember(tmp_path / f"member-{life}.out", topic, keys, delay_ms)
        member.wait_for(60 if life == 0 else 260 + 37 * life)
        member.kill()
        seen = member.seen()
        repeated.append(sum(offset < next_offsets[number] for number, offset in seen))
        for number, offset in seen:
            assert offset <= next_offsets[number], "a message was skipped"
            next_offsets[number] = max(next_offsets[number], offset + 1)
    assert repeated[0] == 0
    assert max(repeated) <= (interval_ms + busy_ms) / delay_ms, repeated
    assert sum(repeated) > 0, "the bound was not put to the test"


def test_a_group_migrates_and_continues(
    jvm_kafka: JvmKafka, topic: str, store: ClusterStore
) -> None:
    """A group migrates from ZooKeeper to Kafka, continues with Kafka alone and migrates back,
    without losing or repeating a message."""
    produce(jvm_kafka, topic, 90)

    def read(count: int, **keys: object) -> list[tuple[int, int]]:
        """Messages; a negative count: these, which are the rest."""
        with ConsumerConnector(config(jvm_kafka, topic, **keys)) as connector:
            [stream] = connector.create_message_streams({topic: 1})[topic]
            if count < 0:
                return drain(stream, -count)
            seen = take(stream, count)
            connector.commit_offsets()
            return seen

    kafka_only = {"offsets_storage": "kafka", "dual_commit_enabled": False}
    seen = read(120)
    with OffsetMigration(jvm_kafka.zookeeper, topic) as migration:
        assert migration.plan().is_allowed
        assert migration.start().copies
        assert migration.verify().problems == ()
        assert migration.finish().problems == ()
    seen += read(120, **kafka_only)
    with OffsetMigration(jvm_kafka.zookeeper, topic) as migration:
        rolled = migration.rollback()
        assert rolled.to_zookeeper
    assert not store.zk.children_or_empty(paths.consumer_ids(topic))
    seen += read(-(90 * PARTITIONS - len(seen)))
    assert sorted(seen) == everything(90)
