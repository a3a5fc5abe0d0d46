"""describe_lines against what the real kafka-topics printed."""

from __future__ import annotations

import json
from pathlib import Path

from kafka08.admin import PartitionDescription, TopicDescription, describe_lines, select

CAPTURED = Path(__file__).parent.parent / "data" / "tools-output-0.8.2.2.json"


def test_the_text_is_that_of_kafka_topics() -> None:
    """The captured description of topic tt, log4j's own lines aside."""
    stdout = json.loads(CAPTURED.read_text())["kafka-topics describe"]["stdout"]
    captured = [line for line in stdout.splitlines() if not line.startswith("[")]
    topic = TopicDescription(
        "tt",
        tuple(PartitionDescription(number, 1, (1,), (1,)) for number in range(3)),
        {"retention.ms": "100000000", "segment.bytes": "5000"},
    )
    assert list(describe_lines([topic])) == captured


def test_a_topic_without_partitions_has_no_replication_factor() -> None:
    """A topic znode without data is shown, not a crash."""
    topic = TopicDescription("t", (), {})
    assert list(describe_lines([topic])) == [
        "Topic:t\tPartitionCount:0\tReplicationFactor:0\tConfigs:"
    ]


def partition(number: int, leader: int | None, isr: tuple[int, ...]) -> PartitionDescription:
    return PartitionDescription(number, leader, (1, 2), isr)


WHOLE = TopicDescription("whole", (partition(0, 1, (1, 2)),), {})
WEAK = TopicDescription(
    "weak",
    (partition(0, 1, (1,)), partition(1, 9, (9, 2)), partition(2, 1, (2, 1))),
    {"retention.ms": "7"},
)


def test_a_filter_of_partitions_leaves_only_those() -> None:
    """Under-replicated, or led by a broker that is not live; a topic without any is left out."""

    def chosen(**filters: bool) -> list[tuple[str, list[int]]]:
        found = select([WHOLE, WEAK], live_brokers=[1, 2], **filters)
        return [(topic.name, [p.partition for p in topic.partitions]) for topic in found]

    assert [("weak", [0])] == chosen(under_replicated=True)
    assert [("weak", [1])] == chosen(unavailable=True)
    assert [("weak", [0, 1])] == chosen(under_replicated=True, unavailable=True)


def test_replicas_that_a_broker_leaves_out_are_out_of_sync() -> None:
    """Brokers before 0.10.1 leave out dead replicas, from the ISR too; the partition is
    under-replicated all the same. JSON has the same fields of both."""
    partial = PartitionDescription(0, 1, (1,), (1,), lists_all=False)
    topic = TopicDescription("t", (partial, PartitionDescription(1, 1, (1,), (1,))), {})
    [found] = select([topic], under_replicated=True)
    assert (partial,) == found.partitions
    fields = {"partition": 0, "leader": 1, "replicas": (1,), "isr": (1,)}
    assert [fields] == found.as_dict()["partitions"]


def test_topics_with_overrides_keep_their_partitions() -> None:
    """For their counts stand in the header line, which is all that is printed of them."""
    assert [WEAK] == select([WHOLE, WEAK], with_overrides=True)
    lines = list(describe_lines([WHOLE, WEAK], with_overrides=True))
    assert ["Topic:weak\tPartitionCount:3\tReplicationFactor:2\tConfigs:retention.ms=7"] == lines
