"""What one log is configured with: the broker's defaults under the topic's overrides.

Source: kafka.log.LogConfig 0.8.2.2; keys, types and ranges are in kafka08.topic_config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

from kafka08.config import LONG_MAX
from kafka08.topic_config import parse_stored_config

HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log; the field `segment_bytes` is the topic key `segment.bytes`. A topic's
    may have any value of their type.

    segment_bytes          a segment that would grow above this is rolled first; also the largest
                           message set that is accepted
    segment_ms             a non-empty segment is rolled by the first append after this age
    segment_jitter_ms      up to this much is subtracted from segment_ms, drawn per segment
    segment_index_bytes    size an active index is pre-allocated to; a full index rolls
    index_interval_bytes   an index entry is added when more than this was appended since the last
    flush_messages         fsync when this many messages are not flushed (LONG_MAX: never)
    flush_ms               fsync when the last flush is this long ago (LONG_MAX: never)
    retention_ms           segments whose last write is older are deleted. 0.8: -1 is not unlimited,
                           everything is older than -1 ms
    retention_bytes        size a log is cut back to, from its oldest segment (negative: unlimited)
    max_message_bytes      largest entry, its 12-byte header included
    cleanup_policy         "delete"; any other word is "compact": no retention
    delete_retention_ms, min_cleanable_dirty_ratio      read by the cleaner
    file_delete_delay_ms   how long files of deleted segments stay as *.deleted
    min_insync_replicas    read by the partition; None: the topic does not say
    unclean_leader_election_enable     read out of ZooKeeper by those who need it, when they do
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 168 * HOUR_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    retention_ms: int = 168 * HOUR_MS
    retention_bytes: int = -1
    max_message_bytes: int = 1_000_012
    cleanup_policy: str = "delete"
    delete_retention_ms: int = 24 * HOUR_MS
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = 60_000
    unclean_leader_election_enable: bool = True
    min_insync_replicas: int | None = None

    @property
    def compact(self) -> bool:
        """0.8: every policy but `delete` is compaction."""
        return self.cleanup_policy != "delete"

    def from_stored(self, topic: str, overrides: Mapping[str, str]) -> Self:
        """This configuration under a topic's overrides as ZooKeeper holds them; what cannot be read
        stays as it is here (see parse_stored_config)."""
        values: dict[str, Any] = {
            name.replace(".", "_"): value
            for name, value in parse_stored_config(topic, overrides).items()
        }
        return replace(self, **values)

    def __str__(self) -> str:
        """As the broker logs it: `segment.bytes -> 1073741824, …`."""
        return ", ".join(
            f"{field.name.replace('_', '.')} -> {getattr(self, field.name)}"
            for field in fields(self)
        )
