"""When offsets were committed last, which no request of 0.8.2.2 tells: read from the offsets topic.

Kafka forgets an offset `offsets.retention.minutes` after the time that its commit carries, unless
it is committed again. The newest record of a key counts, so the end of the topic's partition is
read, RECORDS of them at most: what was committed before that is not known here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.errors import KafkaError, ProtocolError
from kafka08.hashing import group_partition
from kafka08.migration.connections import Connections
from kafka08.migration.facts import GroupFacts
from kafka08.protocol.offset_records import OffsetKey, decode_key, decode_offset_value
from kafka08.structs import OFFSETS_TOPIC, TopicPartition

logger = logging.getLogger(__name__)

RECORDS: Final = 200_000
"""Read of a partition of the offsets topic at most: some seconds."""

Times = dict[TopicPartition, int]


class CommitTimes:
    """Reads each partition of the offsets topic once, when a group of it is first asked for.
    Thread-safe."""

    def __init__(self, connections: Connections, *, records: int = RECORDS) -> None:
        self._connections = connections
        self._records = records
        self._lock = connections.runtime.lock()
        self._read: dict[int, dict[OffsetKey, int]] = {}

    def of(self, group: str, partitions: Collection[TopicPartition]) -> Times:
        """partition → when its offset was committed, in ms, of those that are known. Raises
        nothing: a topic that cannot be read is logged, and nothing is known."""
        if not partitions:
            return {}
        try:
            count = len(self._connections.cluster.partitions(OFFSETS_TOPIC))
            number = group_partition(group, count)
            with self._lock:
                if number not in self._read:
                    self._read[number] = self._times(TopicPartition(OFFSETS_TOPIC, number))
                times = self._read[number]
        except KafkaError as error:
            logger.warning("when offsets of group %s were committed is not known: %s", group, error)
            return {}
        keys = {tp: OffsetKey(group, *tp) for tp in partitions}
        return {tp: times[key] for tp, key in keys.items() if key in times}

    def _times(self, tp: TopicPartition) -> dict[OffsetKey, int]:
        cluster = self._connections.cluster
        start, end = log_starts(cluster, [tp])[tp], log_ends(cluster, [tp])[tp]
        times: dict[OffsetKey, int] = {}
        with self._connections.reader(cluster.leader(tp)) as consumer:
            for message in consumer.read(tp, max(start, end - self._records), end):
                try:
                    _note(times, message.key, message.value)
                except ProtocolError as error:
                    logger.debug("%s, offset %d: %s", tp, message.offset, error)
        return times


def with_commit_times(facts: GroupFacts, times: CommitTimes) -> GroupFacts:
    """The same, with the times of what Kafka will forget by itself."""
    idle = [p.topic_partition for p in facts.partitions if p.is_idle]
    found = times.of(facts.group, idle)
    if not found:
        return facts
    return replace(
        facts,
        partitions=tuple(
            replace(p, committed_ms=found.get(p.topic_partition)) for p in facts.partitions
        ),
    )


def _note(times: dict[OffsetKey, int], key: bytes | None, value: bytes | None) -> None:
    """One record; a group of 0.9 is passed by. ProtocolError for what is no record."""
    of = decode_key(key or b"")
    if not isinstance(of, OffsetKey):
        return
    if value is None:
        times.pop(of, None)
    else:
        times[of] = decode_offset_value(value).committed.timestamp_ms
