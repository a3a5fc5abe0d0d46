"""Reads Produce and Fetch requests and writes their responses, without an object for each partition
(twin).

A request is `key:i16 version:i16 correlation_id:i32 client:str` and then

    Produce 0-3    (transactional_id:str from 3 on) acks:i16 timeout:i32
                   [topic:str [partition:i32 set:bytes32]]
    Fetch 0-5      replica:i32 max_wait:i32 min_bytes:i32 (max_bytes:i32 from 3 on)
                   (isolation:i8 from 4 on) [topic:str [partition:i32 offset:i64
                   (log_start:i64 from 5 on) max_bytes:i32]]

kafka08.protocol.produce and fetch have the layouts of the responses; the tests compare with that
codec. Source: kafka.api.ProducerRequest, FetchRequest 0.8.2.2 and 0.10.2.2.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Any, Final, TypeVar

from kafka08.format import entry_size, magic_of
from kafka08.format.v2 import V2
from kafka08.kernel.types import LENGTH, MAX_SET_BYTES, NO_TIMESTAMP, RECORDS_MAGIC, Buffer

T = TypeVar("T")

SHORT: Final = Struct(">h")
CORRELATION_ID: Final = slice(4, 8)
VERSION_POSITION: Final = 2
CLIENT_POSITION: Final = 8
PRODUCE: Final = Struct(">hii")
FETCH: Final = Struct(">iii")
PRODUCE_PARTITION: Final = Struct(">ii")
FETCH_PARTITION: Final = Struct(">iqi")
FETCH_PARTITION_5: Final = Struct(">iqqi")
PRODUCED: Final = Struct(">ihq")
FETCHED_HEAD: Final = Struct(">ihq")
TIME: Final = Struct(">q")
THROTTLED: Final = 1
"""From this version on, responses have a throttle time, which is 0."""
TIMED_PRODUCE: Final = 2
TRANSACTIONAL_PRODUCE: Final = 3
LIMITED_FETCH: Final = 3
RECORDS_FETCH: Final = 4
LOG_START_FETCH: Final = 5
ISOLATIONS: Final = (0, 1)
"""Readers of uncommitted, and of committed messages."""
NO_THROTTLE: Final = bytes(4)


class _NotHandled(Exception):
    """These functions do not read this request."""


def read_produce(
    payload: memoryview, partitions: dict[bytes, dict[int, T]], count_max: int
) -> tuple[int, int, list[T], list[int], list[int]] | None:
    """The fields of a Produce request: acks, timeout in ms; then three lists by partition: its
    value in `partitions` (topic name → partition number → value), the position of its set in the
    payload, and that set's size.

    None for an invalid layout, no partition, one that is unknown or repeated, more than
    `count_max`, or from version 3 on a set that is not one record batch.
    """
    try:
        position = _produce_body(payload)
        needs_batches = _version(payload) >= TRANSACTIONAL_PRODUCE
        acks, timeout_ms, topics = PRODUCE.unpack_from(payload, position)
        position += PRODUCE.size
        found: list[T] = []
        starts: list[int] = []
        sizes: list[int] = []
        names: set[bytes] = set()
        for _ in range(topics):
            known, count, position = _next_topic(payload, position, partitions, names)
            for _ in range(count):
                number, size = PRODUCE_PARTITION.unpack_from(payload, position)
                position += PRODUCE_PARTITION.size
                if not 0 <= size <= len(payload) - position or number not in known:
                    return None
                if needs_batches and not _is_one_batch(payload[position : position + size]):
                    return None
                found.append(known[number])
                starts.append(position)
                sizes.append(size)
                position += size
    except (_NotHandled, error):
        return None
    if _is_empty_or_repeated(found) or len(found) > count_max:
        return None
    return acks, timeout_ms, found, starts, sizes


def read_fetch(
    payload: memoryview, partitions: dict[bytes, dict[int, T]]
) -> tuple[int, int, int, int, int, list[T], list[int], list[int], list[int] | None] | None:
    """The fields of a Fetch request: replica id, max wait in ms, min bytes, max bytes of the whole
    response (MAX_SET_BYTES if the version has no such field), isolation level (0 if it has none);
    then lists by partition: its value in `partitions`, fetch offset, max bytes, and a follower's
    log start offset (None for a consumer, or if the version has no such field).

    None as for `read_produce`, and for an unknown isolation level.
    """
    try:
        position = _body(payload)
        replica_id, max_wait_ms, min_bytes = FETCH.unpack_from(payload, position)
        position += FETCH.size
        max_bytes = MAX_SET_BYTES
        version = _version(payload)
        if version >= LIMITED_FETCH:
            (max_bytes,) = LENGTH.unpack_from(payload, position)
            position += LENGTH.size
        isolation_level = 0
        if version >= RECORDS_FETCH:
            if position >= len(payload) or payload[position] not in ISOLATIONS:
                return None
            isolation_level = payload[position]
            position += 1
        (topics,) = LENGTH.unpack_from(payload, position)
        position += LENGTH.size
        found: list[T] = []
        offsets: list[int] = []
        limits: list[int] = []
        has_starts = replica_id >= 0 and version >= LOG_START_FETCH
        starts: list[int] | None = [] if has_starts else None
        names: set[bytes] = set()
        for _ in range(topics):
            known, count, position = _next_topic(payload, position, partitions, names)
            for _ in range(count):
                number, offset, *start, limit = _wanted(version).unpack_from(payload, position)
                position += _wanted(version).size
                if number not in known:
                    return None
                found.append(known[number])
                offsets.append(offset)
                limits.append(limit)
                if starts is not None:
                    starts += start
    except (_NotHandled, error):
        return None
    if _is_empty_or_repeated(found):
        return None
    head = replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level
    return *head, found, offsets, limits, starts


def write_produced(
    payload: memoryview, base_offsets: list[int], times_ms: list[int] | None = None
) -> bytes:
    """The encoded response to a Produce request that `read_produce` has read, without errors.
    `times_ms`: the timestamps that the broker has set, if any, for versions with this field.

    ValueError if a list has another length than the request has partitions.
    """
    version = _version(payload)
    if times_ms is None:
        times_ms = [NO_TIMESTAMP] * len(base_offsets)
    if len(base_offsets) != len(times_ms):
        raise ValueError(f"{len(times_ms)} times for {len(base_offsets)} offsets")
    response = bytearray(4) + payload[CORRELATION_ID]
    results = list(zip(base_offsets, times_ms, strict=True))[::-1]
    try:
        position = _produce_body(payload) + PRODUCE.size - LENGTH.size
        topics, position = _copy(payload, position, LENGTH.size, response)
        for _ in range(topics):
            (length,) = SHORT.unpack_from(payload, position)
            count, position = _copy(payload, position, SHORT.size + length + LENGTH.size, response)
            for _ in range(count):
                number, size = PRODUCE_PARTITION.unpack_from(payload, position)
                base_offset, time_ms = results.pop()
                response += PRODUCED.pack(number, 0, base_offset)
                if version >= TIMED_PRODUCE:
                    response += TIME.pack(time_ms)
                position += PRODUCE_PARTITION.size + size
    except (_NotHandled, error, IndexError) as cause:
        raise ValueError("the request has other partitions") from cause
    if results:
        raise ValueError("the request has other partitions")
    if version >= THROTTLED:
        response += NO_THROTTLE
    LENGTH.pack_into(response, 0, len(response) - LENGTH.size)
    return bytes(response)


def write_fetched(
    payload: memoryview,
    high_watermarks: list[int],
    sizes: list[int],
    log_starts: list[int] | None = None,
    stable_offsets: list[int] | None = None,
) -> list[bytes]:
    """The encoded response to a Fetch request that `read_fetch` has read, without its sets: the
    bytes before each set that is not empty, and those after the last one. For versions with these
    fields: `log_starts`, else -1; `stable_offsets`, the last stable offsets for a reader of
    committed messages, whose sets have no aborted transactions.

    ValueError if a list has another length than the request has partitions; OverflowError if the
    response does not fit a frame.
    """
    if len(high_watermarks) != len(sizes):
        raise ValueError(f"{len(high_watermarks)} high watermarks for {len(sizes)} sizes")
    if log_starts is None:
        log_starts = [-1] * len(sizes)
    if len(log_starts) != len(sizes):
        raise ValueError(f"{len(log_starts)} log starts for {len(sizes)} sizes")
    aborted = -1 if stable_offsets is None else 0
    if stable_offsets is None:
        stable_offsets = [-1] * len(sizes)
    if len(stable_offsets) != len(sizes):
        raise ValueError(f"{len(stable_offsets)} last stable offsets for {len(sizes)} sizes")
    pieces: list[bytes] = []
    piece = bytearray(4) + payload[CORRELATION_ID]
    results = list(zip(high_watermarks, stable_offsets, log_starts, sizes, strict=True))[::-1]
    try:
        position = _body(payload) + FETCH.size
        version = _version(payload)
        if version >= THROTTLED:
            piece += NO_THROTTLE
        if version >= LIMITED_FETCH:
            position += LENGTH.size
        if version >= RECORDS_FETCH:
            position += 1
        topics, position = _copy(payload, position, LENGTH.size, piece)
        for _ in range(topics):
            (length,) = SHORT.unpack_from(payload, position)
            count, position = _copy(payload, position, SHORT.size + length + LENGTH.size, piece)
            for _ in range(count):
                number = _wanted(version).unpack_from(payload, position)[0]
                position += _wanted(version).size
                high_watermark, stable_offset, log_start, size = results.pop()
                if not 0 <= size <= MAX_SET_BYTES:
                    raise OverflowError(f"a set of {size} bytes does not fit a frame")
                piece += FETCHED_HEAD.pack(number, 0, high_watermark)
                piece += _added(stable_offset, log_start, aborted, version) + LENGTH.pack(size)
                if size:
                    pieces.append(bytes(piece))
                    piece = bytearray()
    except (_NotHandled, error, IndexError) as cause:
        raise ValueError("the request has other partitions") from cause
    if results:
        raise ValueError("the request has other partitions")
    if piece:
        pieces.append(bytes(piece))
    total = sum(map(len, pieces)) + sum(sizes) - LENGTH.size
    if total > MAX_SET_BYTES:
        raise OverflowError(f"a response of {total} bytes does not fit a frame")
    pieces[0] = LENGTH.pack(total) + pieces[0][LENGTH.size :]
    return pieces


def read_fetched(
    payload: memoryview, version: int, partitions: dict[bytes, dict[int, T]]
) -> tuple[list[T], list[int], list[int], list[int], list[Buffer]] | None:
    """The fields of a Fetch response of `version` (without the frame's size), as lists by
    partition: its value in `partitions`, error code, HW, log start offset (-1 if the version has no
    such field), and set, a slice of the payload.

    None as for `read_produce`, but a response may have no partitions; and for later versions.
    """
    if version > LOG_START_FETCH:
        return None
    found: list[T] = []
    codes: list[int] = []
    high_watermarks: list[int] = []
    log_starts: list[int] = []
    sets: list[Buffer] = []
    try:
        position = LENGTH.size * (2 if version >= THROTTLED else 1)
        (topics,) = LENGTH.unpack_from(payload, position)
        position += LENGTH.size
        names: set[bytes] = set()
        for _ in range(topics):
            known, count, position = _next_topic(payload, position, partitions, names)
            for _ in range(count):
                number, code, high_watermark = FETCHED_HEAD.unpack_from(payload, position)
                position += FETCHED_HEAD.size
                log_start, position = _take_added(payload, position, version)
                (size,) = LENGTH.unpack_from(payload, position)
                position += LENGTH.size
                if not 0 <= size <= len(payload) - position or number not in known:
                    return None
                found.append(known[number])
                codes.append(code)
                high_watermarks.append(high_watermark)
                log_starts.append(log_start)
                sets.append(payload[position : position + size] if size else b"")
                position += size
    except (_NotHandled, error):
        return None
    if found and _is_empty_or_repeated(found):
        return None
    return found, codes, high_watermarks, log_starts, sets


def _wanted(version: int) -> Struct:
    """A partition of a Fetch request."""
    return FETCH_PARTITION_5 if version >= LOG_START_FETCH else FETCH_PARTITION


def _added(stable_offset: int, log_start: int, aborted: int, version: int) -> bytes:
    """The fields that version 4 added: last stable offset, from 5 on the log start offset, and the
    count of aborted transactions, which is 0, or -1 for a reader of uncommitted messages."""
    if version < RECORDS_FETCH:
        return b""
    starts = (log_start,) if version >= LOG_START_FETCH else ()
    return b"".join(map(TIME.pack, (stable_offset, *starts))) + LENGTH.pack(aborted)


def _take_added(payload: memoryview, position: int, version: int) -> tuple[int, int]:
    """The log start offset, and the position after what version 4 added to a partition: last stable
    offset, from 5 on the log start offset, aborted transactions."""
    log_start = -1
    if version < RECORDS_FETCH:
        return log_start, position
    position += TIME.size
    if version >= LOG_START_FETCH:
        (log_start,) = TIME.unpack_from(payload, position)
        position += TIME.size
    count: int = LENGTH.unpack_from(payload, position)[0]
    return log_start, position + LENGTH.size + 16 * max(0, count)


def _version(payload: memoryview) -> int:
    version: int = SHORT.unpack_from(payload, VERSION_POSITION)[0]
    return version


def _body(payload: memoryview) -> int:
    """The position after the request header."""
    client: int = SHORT.unpack_from(payload, CLIENT_POSITION)[0]
    position = CLIENT_POSITION + SHORT.size + max(0, client)
    if position > len(payload):
        raise _NotHandled
    return position


def _is_one_batch(data: memoryview) -> bool:
    is_whole = len(data) >= V2.head_bytes and entry_size(data, 0) == len(data)
    return is_whole and magic_of(data) == RECORDS_MAGIC


def _produce_body(payload: memoryview) -> int:
    """The position of a Produce request's acks."""
    position = _body(payload)
    if _version(payload) >= TRANSACTIONAL_PRODUCE:
        (length,) = SHORT.unpack_from(payload, position)
        if length < -1:
            raise _NotHandled
        position += SHORT.size + max(0, length)
    return position


def _next_topic(
    payload: memoryview,
    position: int,
    partitions: dict[bytes, dict[int, T]],
    names: set[bytes],
) -> tuple[dict[int, T], int, int]:
    """The topic's value in `partitions`, its number of partitions in the request, and the position
    of the first."""
    (length,) = SHORT.unpack_from(payload, position)
    position += SHORT.size
    if length < 0:
        raise _NotHandled
    name = bytes(payload[position : position + length])
    position += length
    (count,) = LENGTH.unpack_from(payload, position)
    if count < 0 or name in names or name not in partitions:
        raise _NotHandled
    names.add(name)
    return partitions[name], count, position + LENGTH.size


def _copy(payload: memoryview, position: int, size: int, response: bytearray) -> tuple[int, int]:
    """Copy bytes that end with a count. Returns the count, and the position after it."""
    end = position + size
    if size < LENGTH.size or end > len(payload):
        raise _NotHandled
    response += payload[position:end]
    count: int = LENGTH.unpack_from(payload, end - LENGTH.size)[0]
    return count, end


def _is_empty_or_repeated(found: list[Any]) -> bool:
    return not found or len(set(map(id, found))) != len(found)
