"""When offsets were committed last, which no request of 0.8.2.2 tells: read from the offsets topic.

Kafka forgets an offset `offsets.retention.minutes` after the time that its commit carries, unless
it is committed again. The newest record of a key counts, so the end of the topic's partition is
read, RECORDS of them at most: what was committed before that is not known here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from kafka08.client import ClusterClient
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.consumer.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.errors import KafkaError, ProtocolError
from kafka08.hashing import group_partition
from kafka08.protocol.offset_records import OffsetKey, OffsetValue, decode_key, decode_offset_value
from kafka08.runtime import ClientRuntime
from kafka08.structs import OFFSETS_TOPIC, TopicPartition

logger = logging.getLogger(__name__)

RECORDS: Final = 200_000
"""Read of a partition of the offsets topic at most: some seconds."""


class CommitTimes:
    """Reads each partition of the offsets topic once, when a group of it is first asked for.
    Thread-safe."""

    def __init__(
        self, cluster: ClusterClient, runtime: ClientRuntime, *, records: int = RECORDS
    ) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._records = records
        self._lock = runtime.lock()
        self._read: dict[int, dict[OffsetKey, OffsetValue]] = {}

    def of(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetValue]:
        """partition → its newest commit, of those that are known. Raises nothing: a topic that
        cannot be read is logged, and nothing is known."""
        if not partitions:
            return {}
        try:
            count = len(self._cluster.partitions(OFFSETS_TOPIC))
            number = group_partition(group, count)
            with self._lock:
                if number not in self._read:
                    self._read[number] = self._values(TopicPartition(OFFSETS_TOPIC, number))
                values = self._read[number]
        except KafkaError as error:
            logger.warning("when offsets of group %s were committed is not known: %s", group, error)
            return {}
        keys = {tp: OffsetKey(group, *tp) for tp in partitions}
        return {tp: values[key] for tp, key in keys.items() if key in values}

    def _values(self, tp: TopicPartition) -> dict[OffsetKey, OffsetValue]:
        start, end = log_starts(self._cluster, [tp])[tp], log_ends(self._cluster, [tp])[tp]
        values: dict[OffsetKey, OffsetValue] = {}
        begin = max(start, end - self._records)
        reader = PartitionReader(self._cluster, tp, begin, clock=self._runtime)
        while (before := reader.position) < end:
            for batch in reader.poll(BatchLimits()):
                for key, value in zip(batch.keys(), batch.values(), strict=True):
                    try:
                        _note(values, key, value)
                    except ProtocolError as error:
                        logger.debug("%s, from offset %d: %s", tp, batch.first_offset, error)
            if reader.position == before:
                break
        return values


def _note(values: dict[OffsetKey, OffsetValue], key: bytes | None, value: bytes | None) -> None:
    """One record; a group of 0.9 is passed by. ProtocolError for what is no record."""
    of = decode_key(key or b"")
    if not isinstance(of, OffsetKey):
        return
    if value is None:
        values.pop(of, None)
    else:
        values[of] = decode_offset_value(value)
