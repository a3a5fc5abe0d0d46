"""kafka08.arrow.scan on a cluster of our own brokers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from kafka08.arrow import OffsetRange, Scan, scan
from kafka08.arrow.committed import commit_offsets
from kafka08.arrow.connections import cluster_at, resolved
from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.resolve import NothingCommitted
from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.arrow.topic_scan import COLUMNS, NotRead
from kafka08.client.bootstrap import parse_bootstrap
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import ConfigError, NoBrokersAvailable, UnknownTopicOrPartition
from kafka08.kernel.types import CREATE_TIME
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from kafka08.structs import TopicPartition

COUNT = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    config = {"num.partitions": "2", "log.retention.ms": "-1"}  # some messages are of 1970
    with EmbeddedCluster(brokers=1, config=config) as cluster:
        yield cluster


def write(cluster: EmbeddedCluster, topic: str, start: int = 0, codec: str = "none") -> None:
    """COUNT messages in each of two partitions, keys and values numbered from `start`; every
    third has no key. They have no timestamps."""
    keys = {
        "bootstrap.servers": cluster.bootstrap,
        "compression.type": codec,
        "api.version.request": "false",
    }
    numbers = range(start, start + COUNT)
    with KafkaProducer(KafkaProducerConfig(keys)) as producer:
        for partition in (0, 1):
            producer.send_many(
                topic,
                [b"v%d" % n for n in numbers],
                [None if n % 3 == 0 else b"k%d" % n for n in numbers],
                partition=partition,
            )


def rows(found: Scan) -> list[tuple[object, ...]]:
    """All rows as tuples, in the order read."""
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def wanted(topic: str, count: int = COUNT) -> list[tuple[object, ...]]:
    return [
        (topic, partition, n, None if n % 3 == 0 else b"k%d" % n, b"v%d" % n)
        for partition in (0, 1)
        for n in range(count)
    ]


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_every_message_is_a_row(cluster: EmbeddedCluster, codec: str) -> None:
    """Each message is a row with its topic, partition, offset, key and value, in order; null keys
    are null."""
    write(cluster, f"rows-{codec}", codec=codec)
    with scan(cluster.bootstrap, f"rows-{codec}") as found:
        assert rows(found) == wanted(f"rows-{codec}")
        assert len(found) == 2 * COUNT


def test_libraries_read_it_by_the_capsule_interface(cluster: EmbeddedCluster) -> None:
    """pyarrow.table takes a scan; a second read gives the same messages, although more were written
    in between."""
    write(cluster, "capsule")
    with scan(cluster.bootstrap, "capsule", columns=["offset", "value"]) as found:
        first = pa.table(found)
        write(cluster, "capsule", start=COUNT)
        second = pa.table(found)
    assert first.schema.names == ["offset", "value"]
    assert first.num_rows == 2 * COUNT
    assert first.equals(second)


def at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def write_times(cluster: EmbeddedCluster, topic: str, times: Sequence[int]) -> None:
    """Messages with these timestamps into each of the topic's two partitions, compressed."""
    config = KafkaProducerConfig(bootstrap_servers=cluster.bootstrap, compression_type="snappy")
    with KafkaProducer(config) as producer:
        for partition in (0, 1):
            values = [b"%d" % time_ms for time_ms in times]
            producer.send_many(topic, values, partition=partition, timestamps=times)


def test_timestamps_and_reads_by_time(cluster: EmbeddedCluster) -> None:
    """Each message has its own; a start is the first message of that time or later, an end is in
    front of it, and behind all messages both are the log's end."""
    write(cluster, "times")  # has none: nothing of it lies behind a start by time
    write_times(cluster, "times", [5_000, 6_000, 7_000, 9_000])
    columns = ["partition", "value", "timestamp", "timestampType"]

    def found(**bounds: datetime) -> list[tuple[object, ...]]:
        with scan(cluster.bootstrap, "times", columns=columns, **bounds) as scanned:  # type: ignore[arg-type]
            return rows(scanned)

    def wanted_times(*times: int) -> list[tuple[object, ...]]:
        return [(p, b"%d" % ms, at(ms), CREATE_TIME) for p in (0, 1) for ms in times]

    assert found(start=at(6_000)) == wanted_times(6_000, 7_000, 9_000)
    assert found(start=at(6_001), end=at(9_000)) == wanted_times(7_000)
    assert found(start=at(7_001), end=at(99_000)) == wanted_times(9_000)
    assert found(start=at(99_000)) == []
    assert len(found(end=at(5_000))) == 2 * COUNT
    assert found()[0][2:] == (None, CREATE_TIME)
    with pytest.raises(ConfigError, match="has no time zone"):
        found(start=datetime(2020, 1, 1))


def test_all_columns_have_their_types(cluster: EmbeddedCluster) -> None:
    """The schema is that of COLUMNS; a producer of 0.8 gives no timestamps."""
    write(cluster, "types")
    with scan(cluster.bootstrap, "types", columns=list(COLUMNS)) as found:
        table = pa.table(found)
    assert table.schema == pa.schema(list(COLUMNS.items()))
    assert table["timestamp"].null_count == table.num_rows == 2 * COUNT


@pytest.mark.parametrize("storage", ["kafka", "zookeeper"])
def test_a_group_continues_behind_its_commit(cluster: EmbeddedCluster, storage: str) -> None:
    """After a commit the group's next scan has only newer messages; without one it has the same."""
    topic = f"groups-{storage}"
    write(cluster, topic)

    def next_scan() -> Scan:
        return scan(cluster.bootstrap, topic, group="g", storage=storage)  # type: ignore[arg-type]

    with next_scan() as found:
        assert len(rows(found)) == 2 * COUNT
    with next_scan() as found:
        pa.table(found)
        found.commit()
    write(cluster, topic, start=COUNT)
    with next_scan() as found:
        assert [row[2] for row in rows(found)] == [*range(COUNT, 2 * COUNT)] * 2
        found.commit()
    with next_scan() as found:
        assert (len(found), rows(found)) == (0, [])
        found.commit()


@pytest.mark.parametrize("storage", ["kafka", "zookeeper"])
def test_every_tool_shows_the_lag_of_a_group_without_members(
    cluster: EmbeddedCluster, storage: str
) -> None:
    """A scan and a stream of Spark only commit: no member joins their group. `group describe`,
    `offsets lag` and `metrics` have its lag nevertheless."""
    topic, group = f"lag-{storage}", f"lag-of-{storage}"
    write(cluster, topic)
    with scan(cluster.bootstrap, topic, group=group, storage=storage) as found:  # type: ignore[arg-type]
        pa.table(found)
        found.commit()
    write(cluster, topic, start=COUNT)

    def asked(*words: str) -> tuple[int, str]:
        """(exit code, stdout) of a command."""
        address = "--zookeeper", cluster.zookeeper.connect_string
        command = [sys.executable, "-m", "kafka08.cli", *words, *address]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, described = asked("group", "describe", group, "--json")
    assert code == 0
    facts = json.loads(described)
    assert facts["members"] == []
    assert [(p[storage], p["lag"]) for p in facts["partitions"]] == [(COUNT, COUNT)] * 2
    assert asked("offsets", "lag", group, "--fail-above", str(2 * COUNT))[0] == 0
    assert asked("offsets", "lag", group, "--fail-above", str(2 * COUNT - 1))[0] == 1
    code, metrics = asked("metrics")
    assert code == 0
    labels = f'consumergroup="{group}",partition="1",topic="{topic}"'
    assert f"kafka_consumergroup_lag{{{labels}}} {COUNT}.0" in metrics.splitlines()


def test_a_scan_that_was_not_read_is_not_committed(cluster: EmbeddedCluster) -> None:
    """commit is refused before the read, after half of it, and without a group."""
    write(cluster, "unread")
    with scan(cluster.bootstrap, "unread", group="g2") as found:
        with pytest.raises(NotRead, match="read it, then commit"):
            found.commit()
        next(iter(found))
        with pytest.raises(NotRead):
            found.commit()
    with scan(cluster.bootstrap, "unread") as found, pytest.raises(ConfigError, match="group="):
        found.commit()


def test_exact_ranges(cluster: EmbeddedCluster) -> None:
    """Ranges give exactly their offsets; empty ones are skipped."""
    write(cluster, "exact")
    ranges = [OffsetRange("exact", 0, 5, 8), ("exact", 1, 7, 7), ("exact", 1, 299, 300)]
    with scan(cluster.bootstrap, ranges=ranges, columns=["partition", "offset"]) as found:
        assert rows(found) == [(0, 5), (0, 6), (0, 7), (1, 299)]


def test_starts_and_ends_by_offset(cluster: EmbeddedCluster) -> None:
    """A mapping names an offset for each partition; -2 and -1 are the ends of its log."""
    write(cluster, "mapped")
    zero, one = TopicPartition("mapped", 0), TopicPartition("mapped", 1)
    with scan(
        cluster.bootstrap, "mapped", start={zero: 290, one: -2}, end={zero: -1, one: 3}
    ) as found:
        assert found.ranges == (
            OffsetRange("mapped", 0, 290, 300),
            OffsetRange("mapped", 1, 0, 3),
        )


def test_lost_offsets_are_an_error_unless_accepted(cluster: EmbeddedCluster) -> None:
    """A range beyond the log's end raises DataLost; fail_on_data_loss=False reads what exists."""
    write(cluster, "lost")
    ranges = [("lost", 0, 298, 310)]
    with pytest.raises(DataLost, match=r"\[lost,0\] \[298, 310\)"):
        scan(cluster.bootstrap, ranges=ranges)
    lenient = ReadSettings(fail_on_data_loss=False)
    with scan(cluster.bootstrap, ranges=ranges, settings=lenient) as found:
        assert [row[2] for row in rows(found)] == [298, 299]


def test_an_accepted_loss_skips_no_later_message(cluster: EmbeddedCluster) -> None:
    """A group may be ahead of a log, as after its topic was recreated. With fail_on_data_loss=False
    it continues at the log's end. (It used to stay where it was, so that a later scan passed over
    the messages that were written in between, without a line in the log.)"""
    write(cluster, "ahead")
    accepting = ReadSettings(fail_on_data_loss=False)
    address = resolved(ClusterAddress(tuple(parse_bootstrap(cluster.bootstrap))), accepting)
    ahead = {TopicPartition("ahead", partition): COUNT + 10 for partition in (0, 1)}
    commit_offsets(cluster_at(address, accepting), "g3", ahead, "zookeeper")
    with pytest.raises(DataLost, match=r"\[ahead,0\] \[300, 310\): only \[0, 300\) is there"):
        scan(cluster.bootstrap, "ahead", group="g3")
    with scan(cluster.bootstrap, "ahead", group="g3", settings=accepting) as found:
        assert rows(found) == []
        found.commit()
    write(cluster, "ahead", start=COUNT)
    with scan(cluster.bootstrap, "ahead", group="g3") as found:
        assert [row[2] for row in rows(found)] == [*range(COUNT, 2 * COUNT)] * 2


def test_impossible_arguments_are_named(cluster: EmbeddedCluster) -> None:
    """Each error names the argument, and no connection stays open."""
    write(cluster, "bad")
    bootstrap = cluster.bootstrap
    with pytest.raises(ConfigError, match="columns: offsets given; valid are topic, partition"):
        scan(bootstrap, "bad", columns=["offsets"])
    with pytest.raises(ConfigError, match="either topics or ranges"):
        scan(bootstrap)
    with pytest.raises(ConfigError, match="either bootstrap"):
        scan(topics="bad")
    with pytest.raises(ConfigError, match="start=committed needs a group"):
        scan(bootstrap, "bad", start="committed")
    with pytest.raises(ConfigError, match="start: 'now' is not earliest, latest, committed"):
        scan(bootstrap, "bad", start="now")
    with pytest.raises(ConfigError, match="start must name exactly"):
        scan(bootstrap, "bad", start={TopicPartition("bad", 0): 0})
    with pytest.raises(ConfigError, match="is not \\(topic, partition, from, until\\)"):
        scan(bootstrap, ranges=[("bad", 0, 9, 3)])
    with pytest.raises(NothingCommitted, match="if_uncommitted='earliest'"):
        scan(bootstrap, "bad", group="none", if_uncommitted="error")
    with pytest.raises(UnknownTopicOrPartition, match="nosuch"):
        scan(bootstrap, "nosuch", settings=ReadSettings(retries=0))
    with pytest.raises(NoBrokersAvailable):
        scan("localhost:1", "bad", settings=ReadSettings(retries=0))


def test_zookeeper_names_the_brokers(cluster: EmbeddedCluster) -> None:
    """A connect string finds the brokers instead of a bootstrap list."""
    write(cluster, "by-zk")
    with scan(zookeeper=cluster.zookeeper.connect_string, topics="by-zk") as found:
        assert len(rows(found)) == 2 * COUNT
