"""Requests and messages made by hand, field by field, so that every field can be wrong."""

from __future__ import annotations

from struct import pack
from zlib import crc32

from kafka08.protocol import compression

CORRELATION_ID = 77
NULL_ARRAY = pack(">i", -1)


def text(value: str | bytes | None) -> bytes:
    if value is None:
        return pack(">h", -1)
    data = value.encode() if isinstance(value, str) else value
    return pack(">h", len(data)) + data


def data(value: bytes | None) -> bytes:
    return pack(">i", -1) if value is None else pack(">i", len(value)) + value


def array(*items: bytes) -> bytes:
    return pack(">i", len(items)) + b"".join(items)


def topics(*named: tuple[str | None, list[bytes]]) -> bytes:
    return array(*(text(name) + array(*partitions) for name, partitions in named))


def request(
    key: int,
    version: int,
    body: bytes = b"",
    *,
    correlation_id: int = CORRELATION_ID,
    client: str | bytes | None = "c",
) -> bytes:
    """A whole frame."""
    payload = pack(">hhi", key, version, correlation_id) + text(client) + body
    return pack(">i", len(payload)) + payload


# Messages


def message(
    value: bytes | None = b"v",
    key: bytes | None = None,
    *,
    magic: int = 0,
    attributes: int = 0,
    timestamp: int = -1,
    body: bytes | None = None,
    wrong_crc: bool = False,
) -> bytes:
    """A message from its CRC on. `body` replaces key and value with their lengths."""
    found = pack(">bb", magic, attributes) + (pack(">q", timestamp) if magic == 1 else b"")
    found += data(key) + data(value) if body is None else body
    return pack(">I", crc32(found) ^ wrong_crc) + found


def entry(offset: int, content: bytes, size: int | None = None) -> bytes:
    return pack(">qi", offset, len(content) if size is None else size) + content


def wrapper(
    codec: int,
    inner: bytes,
    *,
    offset: int = 0,
    magic: int = 0,
    timestamp: int = -1,
    flags: int = 0,
) -> bytes:
    """A compressed message with its entry header."""
    value = bytes(compression.compress(codec, inner, magic))
    return entry(offset, message(value, magic=magic, attributes=codec | flags, timestamp=timestamp))


# Bodies


def produced(partition: int, message_set: bytes) -> bytes:
    return pack(">i", partition) + data(message_set)


def produce(
    version: int, *named: tuple[str | None, list[bytes]], acks: int = 1, timeout_ms: int = 1000
) -> bytes:
    return request(0, version, pack(">hi", acks, timeout_ms) + topics(*named))


def fetched(partition: int, offset: int = 0, max_bytes: int = 1 << 16) -> bytes:
    return pack(">iqi", partition, offset, max_bytes)


def fetch(
    version: int,
    *named: tuple[str | None, list[bytes]],
    replica: int = -1,
    wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 1 << 20,
) -> bytes:
    limit = pack(">i", max_bytes) if version >= 3 else b""
    return request(1, version, pack(">iii", replica, wait_ms, min_bytes) + limit + topics(*named))


def listed(version: int, partition: int, time_ms: int = -1, most: int = 1) -> bytes:
    return pack(">iq", partition, time_ms) + (b"" if version else pack(">i", most))


def list_offsets(version: int, *named: tuple[str | None, list[bytes]], replica: int = -1) -> bytes:
    return request(2, version, pack(">i", replica) + topics(*named))


def metadata(version: int, *names: str | None) -> bytes:
    return request(3, version, array(*map(text, names)))


def committed(
    version: int, partition: int, offset: int = 5, note: str | None = "m", time_ms: int = -1
) -> bytes:
    time = pack(">q", time_ms) if version == 1 else b""
    return pack(">iq", partition, offset) + time + text(note)


def commit(
    version: int,
    group: str | None,
    *named: tuple[str | None, list[bytes]],
    generation: int = -1,
    member: str | None = "",
    retention_ms: int = -1,
) -> bytes:
    of_member = pack(">i", generation) + text(member) if version else b""
    retention = pack(">q", retention_ms) if version >= 2 else b""
    return request(8, version, text(group) + of_member + retention + topics(*named))


def fetch_offsets(version: int, group: str | None, *named: tuple[str | None, list[int]]) -> bytes:
    wanted = [(name, [pack(">i", number) for number in numbers]) for name, numbers in named]
    return request(9, version, text(group) + topics(*wanted))


def coordinator(group: str | None) -> bytes:
    return request(10, 0, text(group))


def join(
    version: int,
    group: str | None,
    member: str | None = "",
    protocols: tuple[tuple[str | None, bytes | None], ...] = (("range", b"topics"),),
    *,
    kind: str | None = "consumer",
    session_ms: int = 10_000,
    rebalance_ms: int = 5_000,
    client: str | None = "c",
) -> bytes:
    rebalance = pack(">i", rebalance_ms) if version else b""
    offered = array(*(text(name) + data(subscription) for name, subscription in protocols))
    body = text(group) + pack(">i", session_ms) + rebalance + text(member) + text(kind) + offered
    return request(11, version, body, client=client)


def heartbeat(group: str | None, generation: int, member: str | None) -> bytes:
    return request(12, 0, text(group) + pack(">i", generation) + text(member))


def leave(group: str | None, member: str | None) -> bytes:
    return request(13, 0, text(group) + text(member))


def sync(
    group: str | None, generation: int, member: str | None, *assignments: tuple[str, bytes | None]
) -> bytes:
    given = array(*(text(name) + data(assignment) for name, assignment in assignments))
    return request(14, 0, text(group) + pack(">i", generation) + text(member) + given)


def describe_groups(*names: str | None) -> bytes:
    return request(15, 0, array(*map(text, names)))


LIST_GROUPS = request(16, 0)


def new_topic(
    name: str | None,
    partitions: int = 1,
    replicas: int = 1,
    assignment: tuple[tuple[int, tuple[int, ...]], ...] = (),
    configs: tuple[tuple[str | None, str | None], ...] = (),
) -> bytes:
    assigned = (
        pack(">i", number) + array(*(pack(">i", broker) for broker in brokers))
        for number, brokers in assignment
    )
    entries = (text(key) + text(value) for key, value in configs)
    return text(name) + pack(">ih", partitions, replicas) + array(*assigned) + array(*entries)


def create_topics(
    version: int, *wanted: bytes, timeout_ms: int = 10_000, validate_only: int = 0
) -> bytes:
    only = pack(">b", validate_only) if version else b""
    return request(19, version, array(*wanted) + pack(">i", timeout_ms) + only)


def delete_topics(*names: str | None, timeout_ms: int = 10_000) -> bytes:
    return request(20, 0, array(*map(text, names)) + pack(">i", timeout_ms))
