"""Fetch (key 1): consumers and followers read message sets.

The broker responds at once if `max_wait_ms` <= 0, if any partition has an error, or if `min_bytes`
are available; otherwise it parks the request until they are, or until the wait is over. `max_bytes`
cuts each partition's set exactly there, so the last message is usually partial. Error codes:
1, 3, 6, 9, -1. Source: kafka.api.FetchRequest 0.8.2.2.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Generic, NamedTuple, Protocol, TypeVar

from kafka08.errors import ProtocolError, check
from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.frame import SIZE
from kafka08.protocol.types import (
    NULL_NAME,
    FetchedMessages,
    Int16,
    Int32,
    Int64,
    Name,
    Request,
    Response,
    Since,
    String,
    ZeroOrOne,
)
from kafka08.structs import NO_LEADER_EPOCH

INT32_MAX: Final = (1 << 31) - 1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
ISOLATIONS: Final = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
"""By the names of isolation.level."""
NO_LAST_STABLE_OFFSET: Final = -1
NO_LOG_START_OFFSET: Final = -1
"""A consumer's log start offset in a request; that of a response with an error."""
NO_HIGH_WATERMARK: Final = -1
"""High watermark of a partition with an error."""
MAGIC_1_VERSION: Final = 2
"""From this version on sets may have magic 1; for earlier ones they are converted to magic 0."""
MAGIC_2_VERSION: Final = 4
"""From this version on sets are sent as they are stored, also with magic 2."""
LOG_START_VERSION: Final = 5
"""From this version on log start offsets are in both."""
SESSION_VERSION: Final = 7
"""From this version on there are sessions, and an error of the whole response."""
EPOCH_VERSION: Final = 9
"""From this version on a request has the leader's epoch as its client knows it."""
RACK_VERSION: Final = 11
"""From this version on a leader may name a replica that is nearer. The last version that is not
flexible: every broker from 2.3 to 4.4 serves it."""
NO_SESSION: Final = 0
NO_SESSION_EPOCH: Final = -1
"""Of a request that begins no session: each names all of its partitions."""
NO_REPLICA: Final = -1
LIMITED_VERSION: Final = 3
"""From this version on the whole response has a size limit, and the order of the request."""


@dataclass(slots=True)
class FetchPartition:
    partition: Int32
    offset: Int64
    max_bytes: Int32
    log_start_offset: Annotated[Int64, Since(5, before="max_bytes")] = NO_LOG_START_OFFSET
    """Where the follower's log starts."""
    leader_epoch: Annotated[Int32, Since(9, before="offset")] = NO_LEADER_EPOCH
    """The newest epoch that the client knows, for the broker to check; -1: none."""


@dataclass(slots=True)
class FetchTopic:
    topic: Name
    partitions: list[FetchPartition]


@dataclass(slots=True)
class AbortedTransaction:
    """Batches of the producer from `first_offset` to its next marker are to be skipped."""

    producer_id: Int64
    first_offset: Int64


@dataclass(slots=True)
class FetchPartitionResponse:
    partition: Int32
    error_code: Int16
    high_watermark: Int64
    """First offset that a consumer must not see yet; -1 on error."""
    message_set: FetchedMessages
    last_stable_offset: Annotated[Int64, Since(4, before="message_set")] = NO_LAST_STABLE_OFFSET
    """First offset that a reader of committed messages must not see yet; -1 for others,
    and on error."""
    aborted: Annotated[list[AbortedTransaction] | None, Since(4, before="message_set")] = None
    """The aborted transactions that overlap the set; None for a reader of uncommitted
    messages, and on error."""
    log_start_offset: Annotated[Int64, Since(5, before="aborted")] = NO_LOG_START_OFFSET
    """-1 on error."""
    preferred_replica: Annotated[Int32, Since(11, before="message_set")] = NO_REPLICA
    """The nearer replica to read from; -1: this one."""


@dataclass(slots=True)
class FetchTopicResponse:
    topic: Name
    partitions: list[FetchPartitionResponse]


@dataclass(slots=True)
class FetchResponse(Response):
    topics: list[FetchTopicResponse]
    throttle_ms: Annotated[Int32, Since(1, before="topics")] = 0
    """How long a quota delayed the response."""
    error_code: Annotated[Int16, Since(7, before="topics")] = 0
    """An error of the whole request; the response then names no partitions."""
    session_id: Annotated[Int32, Since(7, before="topics")] = NO_SESSION


@dataclass(slots=True)
class ForgottenTopic:
    topic: String
    partitions: list[Int32]


@dataclass(slots=True)
class FetchRequest(Request):
    replica_id: Int32
    """Broker id of a follower, or ORDINARY_CONSUMER or DEBUGGING_CONSUMER (kafka08.structs)."""
    max_wait_ms: Int32
    min_bytes: Int32
    topics: list[FetchTopic]
    max_bytes: Annotated[Int32, Since(3, before="topics")] = INT32_MAX
    """Maximum bytes of all sets together; filled in the order of the partitions."""
    isolation_level: Annotated[ZeroOrOne, Since(4, before="topics")] = READ_UNCOMMITTED
    """READ_UNCOMMITTED or READ_COMMITTED."""
    session_id: Annotated[Int32, Since(7, before="topics")] = NO_SESSION
    session_epoch: Annotated[Int32, Since(7, before="topics")] = NO_SESSION_EPOCH
    forgotten: Annotated[list[ForgottenTopic], Since(7)] = field(default_factory=list)
    """Partitions that leave the session."""
    rack_id: Annotated[String, Since(11)] = ""
    """Where the client is."""


class SetSlice(Protocol):
    """A message set that is not in memory, but in a segment file, say."""

    @property
    def size(self) -> int:
        """The size of the bytes that are sent in its place."""


S = TypeVar("S", bound=SetSlice)


class PartitionData(NamedTuple, Generic[S]):
    """The response for one partition; None means an empty set. The rest as in
    FetchPartitionResponse, with `aborted` as (producer id, first offset)."""

    partition: int
    error_code: int
    high_watermark: int
    message_set: S | None
    last_stable_offset: int = NO_LAST_STABLE_OFFSET
    aborted: Sequence[tuple[int, int]] | None = None
    log_start_offset: int = NO_LOG_START_OFFSET


FRAME_HEADER: Final = struct.Struct(">iii")
"""Frame size, correlation id, topic count."""
THROTTLED_FRAME_HEADER: Final = struct.Struct(">iiii")
"""Version 1 and above: frame size, correlation id, throttle time, topic count."""
CORRELATION_BYTES: Final = 4
THROTTLED_BYTES: Final = 8
NO_THROTTLE_MS: Final = 0
NAME_SIZE: Final = struct.Struct(">h")
PARTITION_COUNT: Final = struct.Struct(">i")
PARTITION_HEADER: Final = struct.Struct(">ihqi")
"""Partition, error code, high watermark, set size."""
PARTITION_HEADERS: Final = (struct.Struct(">ihqq"), struct.Struct(">ihqqq"))
"""Partition, error code, high watermark, last stable offset; log start offset from version 5 on."""
SESSION: Final = struct.Struct(">hi")
"""Error code and session."""
COUNT: Final = struct.Struct(">i")
ABORTED: Final = struct.Struct(">qq")
ABORTED_MAX: Final = 100_000
"""More in one response would cost more than their messages."""


HighWatermarks = dict[str, dict[int, int]]
"""topic → partition → high watermark."""


def read_news(
    payload: memoryview, version: int, seen: HighWatermarks
) -> list[tuple[str, FetchPartitionResponse]]:
    """Read the parts of a FetchResponse's payload that have messages, an error, or another high
    watermark than `seen`, which gets it. Of thousands of partitions few have news, and objects for
    the others would take most of a consumer's time. ProtocolError."""
    try:
        if version >= MAGIC_2_VERSION:
            return _read_later_news(payload, version, seen)
        return _read_news(payload, CORRELATION_BYTES if version == 0 else THROTTLED_BYTES, seen)
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"FetchResponse: {error}") from error


class FetchNews:
    """`read_news` of responses for the same partitions, one after the other. Without messages each
    is like the one before, which takes no look at its partitions."""

    def __init__(self) -> None:
        self._seen: HighWatermarks = {}
        self._idle = b""
        """The last response, behind its correlation id, if it had no news."""
        self._idle_size = 0

    def read(self, payload: memoryview, version: int) -> list[tuple[str, FetchPartitionResponse]]:
        # A response with messages may be large, and is not copied.
        if len(payload) == self._idle_size and bytes(payload[CORRELATION_BYTES:]) == self._idle:
            return []
        news = read_news(payload, version, self._seen)
        self._idle_size = 0 if news else len(payload)
        self._idle = b"" if news else bytes(payload[CORRELATION_BYTES:])
        return news

    def forget(self, topic: str, partition: int) -> None:
        """The partition's high watermark is news again."""
        self._idle_size = 0
        self._seen.get(topic, {}).pop(partition, None)


def _read_news(
    payload: memoryview, at: int, seen: HighWatermarks
) -> list[tuple[str, FetchPartitionResponse]]:
    found = []
    unpack, header_bytes, length = PARTITION_HEADER.unpack_from, PARTITION_HEADER.size, len(payload)
    (topics,) = PARTITION_COUNT.unpack_from(payload, at)
    at += PARTITION_COUNT.size
    if topics < 0:
        raise ProtocolError(f"FetchResponse: a count of {topics}")
    for _ in range(topics):
        (size,) = NAME_SIZE.unpack_from(payload, at)
        at += NAME_SIZE.size
        topic = str(payload[at : at + max(0, size)], "utf-8")
        at += max(0, size)
        (partitions,) = PARTITION_COUNT.unpack_from(payload, at)
        at += PARTITION_COUNT.size
        if partitions < 0:
            raise ProtocolError(f"FetchResponse: a count of {partitions}")
        marks = seen.setdefault(topic, {})
        for _ in range(partitions):
            partition, error_code, high_watermark, size = unpack(payload, at)
            at += header_bytes
            if size or error_code or marks.get(partition) != high_watermark:
                marks[partition] = high_watermark
                data = payload[at : at + max(0, size)]
                at += max(0, size)
                found.append(
                    (topic, FetchPartitionResponse(partition, error_code, high_watermark, data))
                )
    if at != length:
        raise ProtocolError(f"FetchResponse: {length} bytes, but its parts have {at}")
    return found


def _read_later_news(
    payload: memoryview, version: int, seen: HighWatermarks
) -> list[tuple[str, FetchPartitionResponse]]:
    """`_read_news` from MAGIC_2_VERSION on. A topic may come more than once."""
    found = []
    at, length = THROTTLED_BYTES, len(payload)
    if version >= SESSION_VERSION:
        error_code, _ = SESSION.unpack_from(payload, at)
        at += SESSION.size
        check(error_code, "a whole Fetch request")
    header = PARTITION_HEADERS[version >= LOG_START_VERSION]
    unpack, count_of = header.unpack_from, COUNT.unpack_from
    has_preferred = version >= RACK_VERSION
    (topics,) = count_of(payload, at)
    at += COUNT.size
    if topics < 0:
        raise ProtocolError(f"FetchResponse: a count of {topics}")
    for _ in range(topics):
        (size,) = NAME_SIZE.unpack_from(payload, at)
        at += NAME_SIZE.size
        topic = str(payload[at : at + max(0, size)], "utf-8")
        at += max(0, size)
        (partitions,) = count_of(payload, at)
        at += COUNT.size
        if partitions < 0:
            raise ProtocolError(f"FetchResponse: a count of {partitions}")
        marks = seen.setdefault(topic, {})
        for _ in range(partitions):
            partition, error_code, high_watermark, stable, *start = unpack(payload, at)
            at += header.size
            (count,) = count_of(payload, at)
            at += COUNT.size
            aborted = None
            if count > 0:
                aborted, at = _read_aborted(payload, at, count)
            preferred = NO_REPLICA
            if has_preferred:
                (preferred,) = count_of(payload, at)
                at += COUNT.size
            (size,) = count_of(payload, at)
            at += COUNT.size
            if (
                size > 0
                or error_code
                or preferred != NO_REPLICA
                or marks.get(partition) != high_watermark
            ):
                marks[partition] = high_watermark
                data = payload[at : at + max(0, size)]
                result = FetchPartitionResponse(
                    partition,
                    error_code,
                    high_watermark,
                    data,
                    stable,
                    aborted,
                    start[0] if start else NO_LOG_START_OFFSET,
                    preferred,
                )
                found.append((topic, result))
            at += max(0, size)
    if at != length:
        raise ProtocolError(f"FetchResponse: {length} bytes, but its parts have {at}")
    return found


def _read_aborted(payload: memoryview, at: int, count: int) -> tuple[list[AbortedTransaction], int]:
    end = at + count * ABORTED.size
    if count > ABORTED_MAX or end > len(payload):
        raise ProtocolError(f"FetchResponse: {count} aborted transactions")
    return [AbortedTransaction(*one) for one in ABORTED.iter_unpack(payload[at:end])], end


def response_pieces(
    correlation_id: int, topics: Sequence[tuple[str, Sequence[PartitionData[S]]]], version: int = 0
) -> list[bytearray | S]:
    """The frame of a FetchResponse of `version` in wire order: bytes, and references to sets.

    The caller sends bytes directly, and a set in its own way (sendfile). Adjacent bytes are one
    piece, so a response without messages is a single piece. With the sets' bytes inserted it equals
    `codec.encode_response` of the same content. ProtocolError if that does not fit a frame.
    """
    try:
        if version == 0:
            return _pieces(FRAME_HEADER.pack(0, correlation_id, len(topics)), topics, version)
        header = THROTTLED_FRAME_HEADER.pack(0, correlation_id, NO_THROTTLE_MS, len(topics))
        return _pieces(header, topics, version)
    except (struct.error, UnicodeEncodeError) as error:
        raise ProtocolError(f"FetchResponse: {error}") from error


def _pieces(
    frame_header: bytes, topics: Sequence[tuple[str, Sequence[PartitionData[S]]]], version: int
) -> list[bytearray | S]:
    first = header = bytearray(frame_header)
    pieces: list[bytearray | S] = [first]
    sent_apart = 0
    for topic, partitions in topics:
        name = b"" if topic is NULL_NAME else topic.encode()
        name_size = -1 if topic is NULL_NAME else len(name)
        header += NAME_SIZE.pack(name_size) + name + PARTITION_COUNT.pack(len(partitions))
        for data in partitions:
            message_set = data.message_set
            size = 0 if message_set is None else message_set.size
            header += _partition_header(data, size, version)
            if message_set is not None and size > 0:
                header = bytearray()
                pieces += message_set, header
                sent_apart += size
    headers_bytes = sum(len(piece) for piece in pieces if isinstance(piece, bytearray))
    SIZE.pack_into(first, 0, headers_bytes - SIZE.size + sent_apart)
    if not header:
        pieces.pop()
    return pieces


def _partition_header(data: PartitionData[S], size: int, version: int) -> bytes:
    if version < MAGIC_2_VERSION:
        return PARTITION_HEADER.pack(*data[:3], size)
    starts = (data.log_start_offset,) if version >= LOG_START_VERSION else ()
    head = PARTITION_HEADERS[version >= LOG_START_VERSION]
    header = head.pack(*data[:3], data.last_stable_offset, *starts)
    aborted = data.aborted
    header += COUNT.pack(-1 if aborted is None else len(aborted))
    return header + b"".join(ABORTED.pack(*one) for one in aborted or ()) + COUNT.pack(size)


API = Api(
    1,
    "Fetch",
    FetchRequest,
    FetchResponse,
    (
        ApiVersion(0, FetchRequest, FetchResponse),
        ApiVersion(1, FetchRequest, FetchResponse, since=Level.V0_9_0),
        ApiVersion(MAGIC_1_VERSION, FetchRequest, FetchResponse, since=Level.V0_10_2),
        ApiVersion(3, FetchRequest, FetchResponse, since=Level.V0_10_2),
        ApiVersion(MAGIC_2_VERSION, FetchRequest, FetchResponse, since=Level.V0_11_0),
        ApiVersion(5, FetchRequest, FetchResponse, since=Level.V0_11_0),
        ApiVersion(6, FetchRequest, FetchResponse, since=None),
        ApiVersion(7, FetchRequest, FetchResponse, since=None),
        ApiVersion(8, FetchRequest, FetchResponse, since=None),
        ApiVersion(EPOCH_VERSION, FetchRequest, FetchResponse, since=None),
        ApiVersion(10, FetchRequest, FetchResponse, since=None),
        ApiVersion(RACK_VERSION, FetchRequest, FetchResponse, since=None),
    ),
)
