"""Finds when offsets were committed to Kafka and when they expire. No request returns that, so it
is read from the offsets topic.

Brokers delete an offset some minutes after it has expired, unless it was committed again meanwhile:

    record of 0.8         offsets.retention.minutes after the commit, whose time the client may set
    record of 0.9 to 2.0  at the time in the record: that many minutes, or the client's retention,
                          after the commit
    record of 2.1 on      that many minutes after the last member has left; of a consumer that is no
                          member, after the commit

Those before 2.1 do so whether or not the group has members. The newest record of a key counts, so
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
from kafka08.protocol.group_records import decode_group
from kafka08.protocol.offset_records import (
    GROUP_KEY_VERSION,
    NO_EXPIRY,
    OFFSET_KEY_VERSIONS,
    VERSION,
    GroupKey,
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
HOUR_MS: Final = 3_600_000
RECENT_RECORDS: Final = 20_000
"""Takes well below a second to read."""
RETENTION_MS: Final = 24 * 3_600_000
"""offsets.retention.minutes of 0.8.2 to 1.1, unless configured."""
KEPT_RETENTION_MS: Final = 7 * RETENTION_MS
"""The same from 2.0 on."""
FIRST_TIMES: Final = 10
"""Commits whose times tell when the records that were read begin. One may carry any time."""
OFFSET_KEYS: Final = frozenset(map(VERSION.pack, OFFSET_KEY_VERSIONS))
GROUP_KEY: Final = VERSION.pack(GROUP_KEY_VERSION)
NO_TIME: Final = -1


class KafkaCommit(NamedTuple):
    """A commit to Kafka, with times in ms.

    expires_ms   as its record says; NO_EXPIRY: offsets.retention.minutes after the commit
    is_older     it was made before `committed_ms`, at an unknown time
    is_kept      it is of brokers from 2.1 on, which keep it while the group has members
    left_ms      when the last of them left; None: not known, or it never had any
    """

    committed_ms: int
    expires_ms: int = NO_EXPIRY
    is_older: bool = False
    is_kept: bool = False
    left_ms: int | None = None

    def expires(self, *, has_members: bool, retention_ms: int | None = None) -> int | None:
        """The time of expiry, the latest possible one if the commit `is_older`; None: not while the
        group has members. `retention_ms`: as configured at the brokers; None: their default."""
        if self.expires_ms != NO_EXPIRY:
            return self.expires_ms
        if self.is_kept and has_members:
            return None
        begin_ms = self.committed_ms if self.left_ms is None else self.left_ms
        return begin_ms + self.retention_ms(retention_ms)

    def retention_ms(self, configured: int | None) -> int:
        """The retention of its brokers."""
        if configured is not None:
            return configured
        return KEPT_RETENTION_MS if self.is_kept else RETENTION_MS

    def expiry_text(self, expires_ms: int, now_ms: float) -> str:
        """When that is, for people."""
        left_ms = expires_ms - now_ms
        if left_ms <= 0:
            return "at any moment"
        return f"in {left_ms / HOUR_MS:.1f} h{' at the latest' * self.is_older}"


@dataclass(slots=True)
class Records:
    """The newest records of a partition of the offsets topic.

    values      key without its version, which changes when brokers are upgraded → value
    groups      key of a group → value
    older       what is not here was committed before; None: all records were read
    """

    values: dict[bytes, bytes | None] = field(default_factory=dict)
    groups: dict[bytes, bytes | None] = field(default_factory=dict)
    older: KafkaCommit | None = None

    def value(self, key: OffsetKey) -> OffsetValue | None:
        """None if it is not here, was deleted, or cannot be understood."""
        value = self.values.get(encode_key(key)[VERSION.size :])
        try:
            return None if value is None else decode_offset_value(value)
        except ProtocolError as error:
            logger.debug("offset of %s: %s", key, error)
            return None

    def left_ms(self, group: str) -> int | None:
        """When its last member left; None if that is not here, or cannot be understood."""
        value = self.groups.get(encode_key(GroupKey(group)))
        try:
            stored = None if value is None else decode_group(value)
        except ProtocolError as error:
            logger.debug("group %s: %s", group, error)
            return None
        if stored is None or stored.members or stored.state_since_ms == NO_TIME:
            return None
        return stored.state_since_ms


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
        records = self._records_of(group, partitions)
        left_ms = records.left_ms(group)
        found = {
            tp: KafkaCommit(
                value.committed.timestamp_ms,
                value.expire_ms,
                is_kept=value.is_kept,
                left_ms=left_ms,
            )
            for tp, value in self.of(group, partitions).items()
        }
        if records.older is not None:
            older = records.older._replace(left_ms=left_ms)
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
        first: list[OffsetValue] = []
        begin = max(start, end - self._records_max)
        for key, value in records_of(self._cluster, tp, begin, end, self._runtime):
            if key[: VERSION.size] == GROUP_KEY:
                records.groups[key] = value
            if key[: VERSION.size] not in OFFSET_KEYS:
                continue
            records.values[key[VERSION.size :]] = value
            if value is not None and len(first) < FIRST_TIMES:
                first += _decoded(value)
        if begin > start and first:
            before_ms = max(value.committed.timestamp_ms for value in first)
            is_kept = any(value.is_kept for value in first)
            records.older = KafkaCommit(before_ms, is_older=True, is_kept=is_kept)
        return records


def _decoded(value: bytes) -> list[OffsetValue]:
    """The offset of a record; [] if it cannot be understood."""
    try:
        return [decode_offset_value(value)]
    except ProtocolError:
        return []
