"""`kafka08 offsets export | import` beside the JVM's ExportZkOffsets and ImportZkOffsets."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from kafka08.cli.root import root
from kafka08.migration import OffsetMigration
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from tests.interop.jvm import JvmKafka

GROUP = TOPIC = "offset-tools"


def kafka08(kafka: JvmKafka, *words: str) -> Result:
    where = ["--zookeeper", kafka.zookeeper]
    return CliRunner().invoke(root, [*words, *where], catch_exceptions=False)


def stores(kafka: JvmKafka) -> dict[int, tuple[int | None, int | None]]:
    with OffsetMigration(kafka.zookeeper, GROUP) as tool:
        found = tool.facts().partitions
    return {p.topic_partition.partition: (p.zookeeper, p.kafka) for p in found}


def test_files_go_both_ways(jvm_kafka: JvmKafka, tmp_path: Path) -> None:
    """Our export equals the JVM's line by line, and each tool imports the other's file. Import
    changes nothing without --execute, and then both stores, so that no member continues from the
    larger offset."""
    jvm_kafka.create_topic(TOPIC, 3)
    jvm_kafka.tool(
        "kafka.tools.ConsoleProducer",
        *("--broker-list", jvm_kafka.bootstrap, "--topic", TOPIC, "--request-required-acks", "1"),
        *("--sync",),
        stdin="".join(f"{n}\n" for n in range(30)),
    )
    start = {0: 0, 1: 0}
    with ZkClient(jvm_kafka.zookeeper) as zk:
        offsets = {TopicPartition(TOPIC, n): o for n, o in start.items()}
        GroupStore(zk).commit_offsets(GROUP, offsets)
    theirs, ours = tmp_path / "theirs.txt", tmp_path / "ours.txt"
    where = ("--zkconnect", jvm_kafka.zookeeper)
    jvm_kafka.tool(
        "kafka.tools.ExportZkOffsets", *where, "--group", GROUP, "--output-file", str(theirs)
    )
    done = kafka08(jvm_kafka, "offsets", "export", GROUP, "--format", "jvm", "--output", str(ours))
    assert done.exit_code == 0
    assert sorted(ours.read_text().split()) == sorted(theirs.read_text().split())
    to_the_end = ("offsets", "reset", GROUP, "--to", "latest", "--store", "both", "--execute")
    assert kafka08(jvm_kafka, *to_the_end).exit_code == 0
    ends = stores(jvm_kafka)
    assert set(ends) == {*start, 2}, "a partition without a commit is reset, too"
    assert all(z == k and z is not None for z, k in ends.values())
    assert kafka08(jvm_kafka, "offsets", "import", str(theirs)).exit_code == 0
    assert stores(jvm_kafka) == ends
    assert kafka08(jvm_kafka, "offsets", "import", str(theirs), "--execute").exit_code == 0
    assert {n: stores(jvm_kafka)[n] for n in start} == {0: (0, 0), 1: (0, 0)}
    kafka08(jvm_kafka, *to_the_end)
    jvm_kafka.tool("kafka.tools.ImportZkOffsets", *where, "--input-file", str(ours))
    assert {n: stores(jvm_kafka)[n][0] for n in start} == start
