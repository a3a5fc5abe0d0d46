"""The records of `__consumer_offsets`: their keys and values.

    key      version:i16  0, 1   group:string topic:string partition:i32      an offset
                          2      group:string                                 a group of 0.9+
    value    version:i16  0, 2   offset:i64 metadata:string commit:i64        of an offset
                          1      offset:i64 metadata:string commit:i64 expire:i64
                          3      offset:i64 leader_epoch:i32 metadata:string commit:i64
                          4      as 3, flexible
             of key 2: a group, see kafka08.protocol.group_records

A null value deletes the offset or group of its key. 0.8.2.2 writes version 0 of keys and values,
0.9 to 2.0 write version 1, later brokers 2 and 3. Every level reads all of them, so that a cluster
that was taken back to an older release keeps its offsets. Null metadata is written as "": with a
length of -1, 0.8.2.2 fails to load the whole partition. Source: kafka.server.OffsetManager 0.8.2.2,
kafka.coordinator.GroupMetadataManager 0.9.0.1 and 0.10.2.2, OffsetCommitValue 4.4.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Annotated, Final, NamedTuple, TypeAlias

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode_body, encode_body
from kafka08.protocol.types import Buffer, Form, Int32, Int64, NullableString, Since, String
from kafka08.structs import NO_LEADER_EPOCH, OffsetAndMetadata, TopicPartition

VERSION: Final = Struct(">h")
WRITTEN_VERSION: Final = 0
KEPT_VERSION: Final = 2
"""From this version on an offset is kept while its group has members."""
FLEXIBLE_VERSION: Final = 4
OFFSET_KEY_VERSIONS: Final = frozenset({0, 1})
GROUP_KEY_VERSION: Final = 2
NO_EXPIRY: Final = -1
"""`expire_ms` of a record without one: it expires by its commit time."""


class OffsetKey(NamedTuple):
    """The group and partition of an offset."""

    group: str
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"[{self.group},{self.topic},{self.partition}]"


class GroupKey(NamedTuple):
    """A group of the coordinator of 0.9 and later."""

    group: str


@dataclass(frozen=True, slots=True)
class OffsetValue:
    """A stored offset.

    expire_ms   wall-clock time, or NO_EXPIRY
    is_kept     it is of brokers from 2.1 on, which keep it while its group has members
    """

    committed: OffsetAndMetadata
    expire_ms: int = NO_EXPIRY
    is_kept: bool = False


RecordKey: TypeAlias = OffsetKey | GroupKey


@dataclass(slots=True)
class _OffsetKeyBody:
    group: String
    topic: String
    partition: Int32


@dataclass(slots=True)
class _GroupKeyBody:
    group: String


@dataclass(slots=True)
class _OffsetValue:
    offset: Int64
    metadata: NullableString
    commit_ms: Int64
    expire_ms: Annotated[Int64, Since(1, until=2)] = NO_EXPIRY
    leader_epoch: Annotated[Int32, Since(3, before="metadata")] = NO_LEADER_EPOCH


def encode_key(key: RecordKey, version: int = WRITTEN_VERSION) -> bytes:
    """`version` is that of an OffsetKey, 0 or 1; a GroupKey has one version."""
    if isinstance(key, GroupKey):
        return VERSION.pack(GROUP_KEY_VERSION) + encode_body(_GroupKeyBody(*key))
    assert version in OFFSET_KEY_VERSIONS, version
    return VERSION.pack(version) + encode_body(key, Form(_OffsetKeyBody))


def encode_value(committed: OffsetAndMetadata, *, expire_ms: int = NO_EXPIRY) -> bytes:
    """Version 0; version 1 if the offset expires at a time of its own."""
    version = 0 if expire_ms == NO_EXPIRY else 1
    value = _OffsetValue(
        committed.offset, committed.metadata or "", committed.timestamp_ms, expire_ms
    )
    return VERSION.pack(version) + encode_body(value, Form(_OffsetValue, version))


def decode_key(data: Buffer) -> RecordKey:
    """The key of a record. ProtocolError for an unknown version or malformed bytes."""
    version = _version(data, "key")
    if version in OFFSET_KEY_VERSIONS:
        offset, _ = decode_body(_OffsetKeyBody, data, VERSION.size)
        return OffsetKey(offset.group, offset.topic, offset.partition)
    if version == GROUP_KEY_VERSION:
        group, _ = decode_body(_GroupKeyBody, data, VERSION.size)
        return GroupKey(group.group)
    raise ProtocolError(f"offsets topic: unknown key version {version}")


def decode_offset_value(data: Buffer) -> OffsetValue:
    """The value of an OffsetKey. ProtocolError as above."""
    version = _version(data, "offset value")
    if not 0 <= version <= FLEXIBLE_VERSION:
        raise ProtocolError(f"offsets topic: unknown offset value version {version}")
    value, _ = decode_body(
        _OffsetValue,
        data,
        VERSION.size,
        version=version,
        is_flexible=version == FLEXIBLE_VERSION,
    )
    committed = OffsetAndMetadata(value.offset, value.metadata, value.commit_ms, value.leader_epoch)
    return OffsetValue(committed, value.expire_ms, is_kept=version >= KEPT_VERSION)


def _version(data: Buffer, what: str) -> int:
    if len(data) < VERSION.size:
        raise ProtocolError(f"offsets topic: a {what} of {len(data)} bytes")
    version: int = VERSION.unpack_from(data)[0]
    return version
