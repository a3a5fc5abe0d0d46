"""LogConfig: the configuration of one log: the broker's defaults with the topic's overrides.

Source: kafka.log.LogConfig 0.8.2.2 and 0.10.2.2; keys, types, ranges and the first level of each
key are in kafka08.topic_config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

from kafka08 import kernel
from kafka08.config import LONG_MAX
from kafka08.errors import InvalidMessage, UnknownError
from kafka08.format import RecordFormat, format_of, magic_of
from kafka08.kernel.types import RECORDS_MAGIC, Buffer, Rules
from kafka08.levels import Level
from kafka08.protocol import compression, message_set, record_batches, validation
from kafka08.protocol_version import LATEST, parse_protocol_version
from kafka08.topic_config import KEYS_AT, TIMESTAMP_TYPES, parse_stored_config

HOUR_MS: Final = 3_600_000
LOG_APPEND_TIME: Final = TIMESTAMP_TYPES[1]
BROKER_CODECS: Final = {"producer": None, "uncompressed": compression.NONE}
"""Values of compression.type besides the names of codecs; None: the producer's codec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log; the field `segment_bytes` is the topic key `segment.bytes`. A topic's
    values may lie outside of the broker's ranges.

    level                  decides which keys exist and what they mean
    segment_bytes          a segment that would grow above this is rolled first; also the largest
                           message set that is accepted of a producer
    segment_ms             a non-empty segment is rolled by the first append after this age
    segment_jitter_ms      up to this much is subtracted from segment_ms, drawn per segment
    segment_index_bytes    size an active index is pre-allocated to; a full index rolls
    index_interval_bytes   an index entry is added when more than this was appended since the last
    flush_messages         fsync when this many messages are not flushed (LONG_MAX: never)
    flush_ms               fsync when the last flush is this long ago (LONG_MAX: never)
    retention_ms           segments that are older are deleted; see retention_limit_ms
    retention_bytes        size a log is cut back to, from its oldest segment (negative: unlimited)
    max_message_bytes      largest entry that is accepted of a producer, its 12-byte header
                           included; what is stored, here or at a leader, has no limit
    cleanup_policy         "delete", "compact" or, from 0.10.2 on, both. 0.8: any other value means
                           "compact"
    delete_retention_ms, min_cleanable_dirty_ratio, min_compaction_lag_ms      read by the cleaner
    file_delete_delay_ms   how long files of deleted segments stay as *.deleted
    min_insync_replicas    used by the partition; None: not set by the topic
    unclean_leader_election_enable     the controller reads it from ZooKeeper when needed
    message_format_version, message_timestamp_type, message_timestamp_difference_max_ms,
    compression_type       how a leader stores a produced set, from 0.9.0 on
    preallocate, leader_replication_throttled_replicas, follower_replication_throttled_replicas
                           without effect

    Derived:

    rules          the checks of produced messages; None below 0.10.2
    target_codec   from compression_type; None: the producer's
    gives_time     whether the broker sets the timestamps (LogAppendTime)
    """

    level: Level = Level.V0_8_2
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
    min_compaction_lag_ms: int = 0
    file_delete_delay_ms: int = 60_000
    unclean_leader_election_enable: bool = True
    min_insync_replicas: int | None = None
    message_format_version: str = str(LATEST[Level.V0_10_2])
    message_timestamp_type: str = TIMESTAMP_TYPES[0]
    message_timestamp_difference_max_ms: int = LONG_MAX
    compression_type: str = "producer"
    preallocate: bool = False
    leader_replication_throttled_replicas: str = ""
    follower_replication_throttled_replicas: str = ""
    rules: Rules | None = field(init=False, repr=False, compare=False)
    append_rules: Rules | None = field(init=False, repr=False, compare=False)
    target_codec: int | None = field(init=False, repr=False, compare=False)
    gives_time: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", self._rules())
        object.__setattr__(self, "append_rules", self.rules or self._key_rules())
        object.__setattr__(self, "target_codec", self._target_codec())
        gives_time = self.rules is not None and self.rules.log_append_time
        object.__setattr__(self, "gives_time", gives_time)

    def _rules(self) -> Rules | None:
        if self.level < Level.V0_10_2:
            return None
        version = parse_protocol_version(
            "message.format.version", self.message_format_version, self.level
        )
        return Rules(
            magic=version.magic,
            log_append_time=self.message_timestamp_type == LOG_APPEND_TIME,
            max_difference_ms=self.message_timestamp_difference_max_ms,
            keys_required=self.compact,
        )

    def _key_rules(self) -> Rules | None:
        """0.9: messages of a compacted topic have keys."""
        if self.level is not Level.V0_9_0 or not self.compact:
            return None
        return Rules(magic=0, keys_required=True)

    def _target_codec(self) -> int | None:
        if self.level < Level.V0_9_0:
            return None
        name = self.compression_type
        return BROKER_CODECS[name] if name in BROKER_CODECS else compression.by_name(name)

    @property
    def has_timestamps(self) -> bool:
        """Whether messages have timestamps, and segments time indexes."""
        return self.rules is not None

    @property
    def magic(self) -> int:
        """The message format in which a leader stores."""
        return 0 if self.rules is None else self.rules.magic

    @property
    def stores_records(self) -> bool:
        """Whether entries are batches of records, which the kernel does not append by itself."""
        return isinstance(format_of(self.magic), RecordFormat)

    @property
    def keeps_record_state(self) -> bool:
        """Whether a log keeps its producers and leader epochs."""
        return self.level >= Level.V0_11_0

    @property
    def format_setting(self) -> str:
        """The broker's key, with its value, that decides the message format."""
        if self.rules is None:
            return f"api.level {self.level}"
        return f"log.message.format.version {self.message_format_version}"

    @property
    def retention_limit_ms(self) -> int:
        """The age above which a segment is deleted; from 0.9 on LONG_MAX for a negative
        retention.ms."""
        if self.retention_ms < 0 and self.level >= Level.V0_9_0:
            return LONG_MAX
        return self.retention_ms

    @property
    def deletes(self) -> bool:
        """Whether retention applies."""
        if self.level < Level.V0_10_2:
            return not self.compact
        return "delete" in self.cleanup_policy.split(",")

    @property
    def compact(self) -> bool:
        """Whether the cleaner applies. 0.8: every policy but `delete` is compaction."""
        if self.level < Level.V0_10_2:
            return self.cleanup_policy != "delete"
        return "compact" in self.cleanup_policy.split(",")

    def number(
        self, data: Buffer, base_offset: int, now_ms: int, leader_epoch: int = 0
    ) -> kernel.SetSummary | None:
        """Number a set in place from `base_offset`, if `prepare` would do nothing else: an
        uncompressed, valid set of the topic's magic, or one such record batch. Its last entry may
        be cut off: then the summary has fewer bytes. Otherwise None, and only offsets were written:
        call `prepare`."""
        rules = self.append_rules
        if len(data) > self.segment_bytes or self.target_codec:
            return None
        try:
            if rules is None:
                summary = kernel.validate_and_assign(data, base_offset, self.max_message_bytes)
            elif magic_of(data) != rules.magic:
                return None
            elif self.stores_records:
                limit = self.max_message_bytes
                return kernel.number_batch(data, base_offset, limit, rules, now_ms, leader_epoch)
            else:
                summary = kernel.validate_and_stamp(
                    data, base_offset, self.max_message_bytes, rules, now_ms
                )
                if summary.magics != 1 << rules.magic:
                    return None
        except ValueError:
            return None  # `prepare` finds the same error and reports it
        return None if summary.codec or not summary.count else summary

    def repacks(self, data: Buffer) -> bool:
        """Whether `prepare` unpacks or compresses a set, by its first entry: about 50 times the
        work."""
        return message_set.begins_compressed(data) or bool(self.target_codec)

    def prepare(
        self,
        data: Buffer,
        base_offset: int,
        now_ms: int,
        max_unpacked_bytes: int = message_set.MAX_UNPACKED_BYTES,
        leader_epoch: int = 0,
    ) -> message_set.PreparedSet:
        """A produced set as the leader of an epoch appends it, numbered from `base_offset`; `data`
        must be writable. Errors as `message_set.prepare`, from 0.10.2 on `validation.prepare`, and
        from 0.11 on those of `record_batches`. May run in a native thread."""
        if self.rules is None:
            return message_set.prepare(
                data,
                base_offset,
                self.max_message_bytes,
                self.segment_bytes,
                max_unpacked_bytes,
                target_codec=self.target_codec,
                rules=self.append_rules,
            )
        arguments = (
            self.rules,
            self.max_message_bytes,
            self.segment_bytes,
            self.target_codec,
            max_unpacked_bytes,
        )
        if self.stores_records:
            return record_batches.prepare(data, base_offset, now_ms, *arguments, leader_epoch)
        if self.level >= Level.V0_11_0 and magic_of(data) == RECORDS_MAGIC:
            limit = self.max_message_bytes
            data = record_batches.lowered(data, now_ms, self.rules, limit, max_unpacked_bytes)
        return validation.prepare(data, base_offset, now_ms, *arguments)

    def check_fetched(self, data: Buffer, log_end_offset: int, name: str) -> kernel.SetSummary:
        """The summary of a set that a follower fetched for its `log_end_offset`, without an entry
        that is cut. InvalidMessage (CRC, size, or offsets that do not ascend from there on) with
        the log's `name`. No limit applies: what the leader has stored was accepted once."""
        try:
            summary = kernel.validate(data, message_set.NO_LIMIT)
        except kernel.CorruptMessage as error:
            raise InvalidMessage(f"{name}: {error}") from error
        except kernel.UnknownCodec as error:
            raise UnknownError(f"{name}: {error}") from error
        if not summary.count:
            return summary
        if not summary.monotonic or summary.first_offset < log_end_offset:
            raise InvalidMessage(
                f"{name}: out of order offsets {summary.first_offset} to {summary.last_offset} at "
                f"log end offset {log_end_offset}"
            )
        return summary

    def from_stored(self, topic: str, overrides: Mapping[str, str]) -> Self:
        """This configuration with a topic's overrides from ZooKeeper; invalid ones are ignored (see
        parse_stored_config)."""
        values: dict[str, Any] = {
            name.replace(".", "_"): value
            for name, value in parse_stored_config(topic, overrides, self.level).items()
        }
        # Below 0 an entry would point to a segment's first message, which needs no entry.
        interval = max(0, values.get("index_interval_bytes", self.index_interval_bytes))
        return replace(self, **values | {"index_interval_bytes": interval})

    def __str__(self) -> str:
        """The text for the broker's log: `segment.bytes -> 1073741824, …`."""
        names = (one.name.replace("_", ".") for one in fields(self))
        return ", ".join(
            f"{name} -> {getattr(self, name.replace('.', '_'))}"
            for name in names
            if name in KEYS_AT[self.level]
        )
