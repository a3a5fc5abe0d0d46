"""Compacted topics: what a read gives is what 0.8.2.2's own SimpleConsumer gives, holes and all."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from kafka08.spark import OffsetRange, ranges_to_json
from kafka08.structs import LATEST_OFFSET, TopicPartition
from tests.interop.jvm import require_jvm, run_tool
from tests.spark.filling import Row, Topics, collected
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = 40
COUNT = 900
SET_SIZE = 7
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "6000",
    "min.cleanable.dirty.ratio": "0.0",
}


def compacted(brokers: Topics) -> TopicPartition:
    """A topic with sets of every codec, tombstones among them, that the broker has cleaned up to
    its last segment; nothing will change any more."""
    tp = TopicPartition(brokers.new_topic(1, CONFIG), 0)
    rng = random.Random(8)
    for start in range(0, COUNT, SET_SIZE):
        messages = [
            (
                b"key-%d" % rng.randrange(KEYS),
                None if offset % 11 == 5 else b"value-%d" % offset * rng.randrange(1, 9),
            )
            for offset in range(start, min(start + SET_SIZE, COUNT))
        ]
        brokers.produce(tp, messages, rng.randrange(4))
    with brokers.simple_consumer() as consumer:

        def is_clean() -> bool:
            end = max(
                base for base in consumer.offsets_before(tp, LATEST_OFFSET, 1000) if base < COUNT
            )
            keys = [message.key for message in consumer.read_range(tp, 0, end)]
            return len(set(keys)) == len(keys)

        until(is_clean, f"the cleaning of {tp}")
    return tp


def seen_by_simple_consumer(brokers: Topics, tp: TopicPartition) -> list[Row]:
    """All of the partition by kafka.tools.SimpleConsumerShell."""
    done = run_tool(
        "kafka.tools.SimpleConsumerShell",
        *("--broker-list", brokers.bootstrap, "--topic", tp.topic, "--partition", "0"),
        *("--no-wait-at-logend", "--max-wait-ms", "100"),
        *("--print-offsets", "--property", "print.key=true"),
    )
    assert done.rc == 0, done.stderr
    found = re.findall(r"^next offset = (\d+)\n(.*)\t(.*)$", done.stdout, re.MULTILINE)
    return [
        (0, int(following) - 1, key.encode(), None if value == "null" else value.encode())
        for following, key, value in found
    ]


def test_rows_are_what_the_jvms_simple_consumer_reads(spark: SparkSession, brokers: Topics) -> None:
    """For random ranges, whose bounds fall into holes and into compressed sets, (partition,
    offset, key, value) equal those of the JVM's consumer, on either broker."""
    require_jvm()
    tp = compacted(brokers)
    everything = seen_by_simple_consumer(brokers, tp)
    holes = COUNT - len(everything)
    assert COUNT // 2 < holes < COUNT - KEYS
    cuts = sorted(random.Random(7).sample(range(COUNT + 1), 24))
    ranges = [
        OffsetRange(*tp, start, until) for start, until in zip(cuts[::2], cuts[1::2], strict=True)
    ]
    expected = [
        row for row in everything if any(r.from_offset <= row[1] < r.until_offset for r in ranges)
    ]
    assert collected(brokers.read(spark, offsetRanges=ranges_to_json(ranges))) == expected
    assert collected(brokers.read(spark, subscribe=tp.topic)) == everything
