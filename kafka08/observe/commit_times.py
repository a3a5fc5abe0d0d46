"""Finds when offsets were committed to Kafka and when they expire. No request returns that, so it
is read from the offsets topic.

Brokers delete an offset some minutes after it has expired, unless it was committed again meanwhile:

    record of 0.8         offsets.retention.minutes after the commit, whose time the client may set
    record of 0.9, 0.10   at the time in the record: that many minutes, or the client's retention,
                          after the commit

They do so whether or not the group has members (until 2.1). The newest record of a key counts, so
the end of the topic's partition is read, RECORDS of them at most: of an offset that was committed
before that it is known that it is older than all of these.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka08.client import ClusterClient
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.errors import KafkaError, ProtocolError
from kafka08.hashing import group_partition
from kafka08.observe.internal_topics import records_of
from kafka08.protocol.offset_records import (
    NO_EXPIRY,
    OFFSET_KEY_VERSIONS,
    VERSION,
    OffsetKey,
    OffsetValue,
    decode_offset_value,
    encode_key,
)
from kafka08.runtime import ClientRuntime
from kafka08.structs import OFFSETS_TOPIC, TopicPartition

logger = logging.getLogger(__name__)

RECORDS: Final = 200_000
"""Read of a partition of the offsets topic at most: some seconds."""
RECENT_RECORDS: Final = 20_000
"""Takes well below a second to read."""
RETENTION_MS: Final = 24 * 3_600_000
"""offsets.retention.minutes of 0.8.2 to 1.1, unless configured."""
FIRST_TIMES: Final = 10
"""Commits whose times tell when the records that were read begin. One may carry any time."""
OFFSET_KEYS: Final = frozenset(map(VERSION.pack, OFFSET_KEY_VERSIONS))


class KafkaCommit(NamedTuple):
    """A commit to Kafka, with times in ms.

    expires_ms   as its record says; NO_EXPIRY: offsets.retention.minutes after the commit
    is_older     it was made before `committed_ms`, at an unknown time
    """

    committed_ms: int
    expires_ms: int = NO_EXPIRY
    is_older: bool = False

    def expires_after(self, retention_ms: int) -> int:
        """The time of expiry, if the brokers' retention is `retention_ms`; the latest possible one
        if it `is_older`."""
        if self.expires_ms != NO_EXPIRY:
            return self.expires_ms
        return self.committed_ms + retention_ms


@dataclass(slots=True)
class Records:
    """The newest records of a partition of the offsets topic.

    values      key without its version, which changes when brokers are upgraded → value
    older_ms    what is not here was committed before; None: all records were read
    """

    values: dict[bytes, bytes | None] = field(default_factory=dict)
    older_ms: int | None = None

    def value(self, key: OffsetKey) -> OffsetValue | None:
        """None if it is not here, was deleted, or cannot be understood."""
        value = self.values.get(encode_key(key)[VERSION.size :])
        try:
            return None if value is None else decode_offset_value(value)
        except ProtocolError as error:
            logger.debug("offset of %s: %s", key, error)
            return None


class CommitTimes:
    """Reads each partition of the offsets topic once, when a group of it is first asked for.
    Thread-safe."""

    def __init__(
        self, cluster: ClusterClient, runtime: ClientRuntime, *, records: int = RECORDS
    ) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._records_max = records
        self._lock = runtime.lock()
        self._read: dict[int, Records] = {}

    def of(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetValue]:
        """partition → its newest commit, of those that are known. Raises nothing: a topic that
        cannot be read is logged, and nothing is known."""
        records = self._records_of(group, partitions)
        found = {tp: records.value(OffsetKey(group, *tp)) for tp in partitions}
        return {tp: value for tp, value in found.items() if value is not None}

    def commits(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, KafkaCommit]:
        """partition → its newest commit. `partitions` have an offset in Kafka, so one that is not
        among the records that were read is older. Raises nothing, as `of`."""
        found = {
            tp: KafkaCommit(value.committed.timestamp_ms, value.expire_ms)
            for tp, value in self.of(group, partitions).items()
        }
        older_ms = self._records_of(group, partitions).older_ms
        if older_ms is not None:
            older = KafkaCommit(older_ms, is_older=True)
            found |= {tp: older for tp in partitions if tp not in found}
        return found

    def _records_of(self, group: str, partitions: Collection[TopicPartition]) -> Records:
        if not partitions:
            return Records()
        try:
            count = len(self._cluster.partitions(OFFSETS_TOPIC))
            number = group_partition(group, count)
            with self._lock:
                if number not in self._read:
                    self._read[number] = self._records(TopicPartition(OFFSETS_TOPIC, number))
                return self._read[number]
        except KafkaError as error:
            logger.warning("when offsets of group %s were committed is not known: %s", group, error)
            return Records()

    def _records(self, tp: TopicPartition) -> Records:
        start, end = log_starts(self._cluster, [tp])[tp], log_ends(self._cluster, [tp])[tp]
        records = Records()
        first: list[int] = []
        begin = max(start, end - self._records_max)
        for key, value in records_of(self._cluster, tp, begin, end, self._runtime):
            if key[: VERSION.size] not in OFFSET_KEYS:  # a group of 0.9
                continue
            records.values[key[VERSION.size :]] = value
            if value is not None and len(first) < FIRST_TIMES:
                first += _times(value)
        if begin > start and first:
            records.older_ms = max(first)
        return records


def _times(value: bytes) -> list[int]:
    """The time of a commit; [] if it cannot be understood."""
    try:
        return [decode_offset_value(value).committed.timestamp_ms]
    except ProtocolError:
        return []
