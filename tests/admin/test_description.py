"""describe_lines against what the real kafka-topics printed."""

from __future__ import annotations

import json
from pathlib import Path

from kafka08.admin import PartitionDescription, TopicDescription, describe_lines

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
