"""Produce requests at the ends of logs: what is appended, what is left, what both kernels do."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from struct import pack
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel import _python
from kafka08.kernel.types import NOT_AT_THE_END, Buffer, Rules
from kafka08.protocol.codec import encode_request
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import entry, field, plain, raw_entry, wrapper
from tests.kernel.tails import NOW_MS, File, a_leader, a_tail, an_index, state


def produce(
    kernel: ModuleType,
    leaders: Sequence[Any],
    sets: Sequence[Buffer],
    now_ms: int = NOW_MS,
    acks: int = 1,
    count_max: int = 10,
) -> Any:
    """The result of `append_produced` for a request of a set for each of these."""
    known = {b"t": dict(enumerate(leaders))}
    return kernel.append_produced(request_of(sets, acks), known, now_ms, count_max)


def request_of(sets: Sequence[Buffer], acks: int = 1) -> memoryview:
    """The payload of a request with a set for each partition."""
    partitions = [ProducePartition(number, bytes(data)) for number, data in enumerate(sets)]
    request = ProduceRequest(acks, 100, [ProduceTopic("t", partitions)])
    return memoryview(bytearray(encode_request(request, 1, "")))[4:]


def append(
    kernel: ModuleType, tails: Sequence[Any], sets: Sequence[Buffer], now_ms: int = NOW_MS
) -> list[int]:
    """The offsets that were given."""
    leaders = [a_leader(kernel, tail) for tail in tails]
    base_offsets: list[int] = produce(kernel, leaders, sets, now_ms)[3]
    return base_offsets


def test_sets_go_to_their_tails(kernel: ModuleType) -> None:
    """Sets are numbered from the log end and written behind the existing bytes, and the tail's end
    advances."""
    first, second = File(), File()
    tails = [a_tail(kernel, first), a_tail(kernel, second, end_offset=7, size=10)]
    sets = [bytearray(plain([(None, b"a"), (None, b"b")])), bytearray(plain([(b"k", b"c")]))]
    assert [40, 7] == append(kernel, tails, sets)
    assert [(1000, plain([(None, b"a"), (None, b"b")], 40))] == first.written
    assert [(10, plain([(b"k", b"c")], 7))] == second.written
    size = len(sets[0])
    assert (42, 1000 + size, 40, 1000, 100 + size, False) == (
        tails[0].end_offset,
        tails[0].size,
        tails[0].tail_offset,
        tails[0].tail_position,
        tails[0].bytes_since_index,
        tails[0].index_is_due,
    )


def test_an_index_entry_is_due_above_the_interval(kernel: ModuleType) -> None:
    """An index entry is due when more bytes than the interval were appended; the count restarts
    with the set that gets it."""
    data = bytearray(plain([(None, b"a")]))
    for since, is_due in ((200, False), (201, True)):
        tail = a_tail(kernel, File(), bytes_since_index=since)
        append(kernel, [tail], [data])
        expected = len(data) if is_due else since + len(data)
        assert (is_due, expected) == (tail.index_is_due, tail.bytes_since_index)


def test_timestamps_are_checked_and_kept(kernel: ModuleType) -> None:
    """With timestamp rules the tail keeps the segment's largest timestamp."""
    data = plain([(None, b"a"), (None, b"b")], magic=1)
    file = File()
    tail = a_tail(kernel, file, rules=Rules(magic=1), max_timestamp_ms=900)
    assert [40] == append(kernel, [tail], [data])
    assert (1001, 41) == (tail.max_timestamp_ms, tail.max_timestamp_offset)
    tail = a_tail(kernel, file, rules=Rules(magic=1, max_difference_ms=10))
    assert [-1] == append(kernel, [tail], [data])


PLAIN = plain([(None, b"a"), (None, b"b")])
NO_ROOM = raw_entry(0, b"\0\0" + pack(">i", 90) + field(b"a"))
STAMPED = plain([(None, b"a")], magic=1)
LEFT: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a tail that takes nothing": (PLAIN, {"takes_plain_sets": False}),
    "a full index": (PLAIN, {"is_full": True}),
    "an empty segment": (PLAIN, {"size": 0}),
    "a segment that would be too large": (PLAIN, {"segment_bytes": 1000 + len(PLAIN) - 1}),
    "a segment that is too old": (PLAIN, {"age_max_ms": NOW_MS - 1000 - 1}),
    "timestamps too far apart": (
        STAMPED,
        {"rules": Rules(magic=1), "first_ms": 400, "age_max_ms": 599},
    ),
    "nothing": (b"", {}),
    "a cut entry behind a whole one": (PLAIN[:-1], {}),
    "a cut entry": (PLAIN[:20], {}),
    "a wrapper": (wrapper(1, PLAIN), {}),
    "a wrapper behind a plain entry": (PLAIN + wrapper(2, PLAIN), {}),
    "a bad CRC": (PLAIN[:-1] + b"x", {}),
    "a message that is too large": (PLAIN, {"max_entry_bytes": 20}),
    "LogAppendTime": (STAMPED, {"rules": Rules(magic=1, log_append_time=True)}),
    "magic 1 where magic 0 is kept": (STAMPED, {"rules": Rules(magic=0)}),
    "magic 0 behind magic 1": (STAMPED + PLAIN, {"rules": Rules(magic=1)}),
    "magic 1 behind magic 0": (PLAIN + STAMPED, {"rules": Rules(magic=1)}),
    "an unknown magic": (entry(0, None, b"a", magic=2), {"rules": Rules(magic=1)}),
    "magic 0 for LogAppendTime": (PLAIN, {"rules": Rules(magic=1, log_append_time=True)}),
    "magic 0 where timestamps are checked": (PLAIN, {"rules": Rules(magic=1, max_difference_ms=9)}),
    "magic 0 without its key": (PLAIN, {"rules": Rules(magic=1, keys_required=True)}),
    "magic 0 with a bad CRC": (PLAIN[:-1] + b"x", {"rules": Rules(magic=1)}),
    "magic 0 with an impossible key": (NO_ROOM, {"rules": Rules(magic=1)}),
    "magic 0 behind which bytes are left": (PLAIN + PLAIN[:20], {"rules": Rules(magic=1)}),
    "magic 0 and a wrapper": (PLAIN + wrapper(1, PLAIN), {"rules": Rules(magic=1)}),
    "magic 0 that is too large as magic 1": (
        PLAIN,
        {"rules": Rules(magic=1), "max_entry_bytes": len(PLAIN) // 2 + 7},
    ),
    "a segment that would be too large with timestamps": (
        PLAIN,
        {"rules": Rules(magic=1), "segment_bytes": 1000 + len(PLAIN) + 15},
    ),
    "an unknown codec": (entry(0, None, b"a", attributes=7), {}),
    "a message without its key": (STAMPED, {"rules": Rules(magic=1, keys_required=True)}),
    "256 KB": (plain([(None, bytes(9000))] * 30), {"segment_bytes": 1 << 20}),
}


def unstamped(messages: Sequence[tuple[bytes | None, bytes | None]]) -> bytes:
    """Of magic 1, from offset 40 on."""
    entries = [entry(40 + n, key, value, magic=1) for n, (key, value) in enumerate(messages)]
    return b"".join(entries)


def test_magic_0_becomes_magic_1(kernel: ModuleType) -> None:
    """Converted messages are numbered and keep null and empty keys and values, without timestamps,
    attributes or bytes behind the value. The request's bytes do not change, and the counts are
    those of the request."""
    messages = [(b"k", b"v" * 300), (None, b""), (b"", None)]
    data = plain(messages) + raw_entry(9, b"\0\x10" + field(b"k") + field(b"v") + b"behind")
    file = File()
    rules = Rules(magic=1, keys_required=False)
    leader = a_leader(kernel, a_tail(kernel, file, rules=rules, max_timestamp_ms=7))
    payload = request_of([data])
    before = bytes(payload)
    known = {b"t": {0: leader}}
    assert [40] == kernel.append_produced(payload, known, NOW_MS, 10)[3]
    assert before == bytes(payload)
    expected = unstamped([*messages, (b"k", b"v")])
    assert [(1000, expected)] == file.written
    tail = leader.log.active_segment
    assert (44, 1000 + len(expected), 7) == (tail.end_offset, tail.size, tail.max_timestamp_ms)
    assert (4, len(data), 44) == (leader.messages_in, leader.bytes_in, leader.high_watermark)


def test_converted_sets_of_one_request_do_not_mix(kernel: ModuleType) -> None:
    """Short, long and short sets of one request each write their own bytes to their own file."""
    sets = [plain([(b"k", letter * size)]) for letter, size in ((b"a", 9), (b"b", 900), (b"c", 5))]
    files = [File() for _ in sets]
    tails = [a_tail(kernel, file, rules=Rules(magic=1, keys_required=True)) for file in files]
    assert [40] * 3 == append(kernel, tails, sets)
    assert [
        [(1000, unstamped([(b"k", letter * size)]))]
        for letter, size in ((b"a", 9), (b"b", 900), (b"c", 5))
    ] == [file.written for file in files]


def test_a_broker_appends_to_internal_partitions(kernel: ModuleType) -> None:
    """`append_records` appends records of the broker like a Produce request, without checking the
    sender, and returns -1 for those that it does not append."""
    records = [(None, b"a"), (b"k", None)]
    file = File()
    leader = a_leader(kernel, a_tail(kernel, file), is_internal=True)
    assert 40 == kernel.append_records(leader, records, -1, NOW_MS)
    data = plain(records, 40)
    assert [(1000, data)] == file.written
    assert (2, len(data), 42) == (leader.messages_in, leader.bytes_in, leader.high_watermark)
    leader.reached_in_sync = 2
    assert -1 == kernel.append_records(leader, records, -1, NOW_MS)
    leader.is_leader = False
    assert -1 == kernel.append_records(leader, records, 1, NOW_MS)
    assert -1 == kernel.append_records(a_leader(kernel, None), records, 1, NOW_MS)


@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_a_broker_have_its_time(kernel: ModuleType, magic: int) -> None:
    """Where the topic's messages have timestamps."""
    file = File()
    leader = a_leader(kernel, a_tail(kernel, file, rules=Rules(magic=magic, keys_required=True)))
    assert 40 == kernel.append_records(leader, [(b"k", b"v")], 1, NOW_MS)
    [(_, data)] = file.written
    [message] = kernel.entries(data, verify_crc=True)
    assert (40, b"k", b"v") == (message.offset, message.key, message.value)
    assert (magic, NOW_MS if magic else -1) == (message.magic, message.timestamp_ms)


@pytest.mark.parametrize("reason", LEFT)
def test_sets_that_need_python_are_left(kernel: ModuleType, reason: str) -> None:
    """A set that needs the Python path leaves file, tail and messages unchanged; the set beside it
    is appended. Without the reason the set would be appended."""
    data, fields = LEFT[reason]
    file, other = File(), File()
    tail = a_tail(kernel, file, **fields)
    before = state(tail)
    leaders = [a_leader(kernel, one) for one in (tail, None, a_tail(kernel, other))]
    _, _, _, base_offsets, left, _, response, _ = produce(kernel, leaders, [data, PLAIN, PLAIN])
    assert ([-1, -1, 40], [0, 1], None) == (base_offsets, [number for number, _ in left], response)
    assert before == state(tail)
    assert data[8:30] == left[0][1][8:30]
    assert ([], 1) == (file.written, len(other.written))
    if data is PLAIN and "rules" not in fields:
        assert [40] == append(kernel, [a_tail(kernel, file)], [data])


def test_a_failed_write_leaves_the_set(kernel: ModuleType) -> None:
    """The tail does not change, and the Python path meets the error."""
    file = File()
    file.fails = True
    tail = a_tail(kernel, file)
    before = state(tail)
    assert [-1] == append(kernel, [tail], [PLAIN])
    assert before == state(tail)


def test_errors_of_callbacks_are_raised(kernel: ModuleType) -> None:
    """Errors of write callbacks, and a wrong object under a partition's number, are raised."""
    tail = a_tail(kernel, File())

    def fail(data: Buffer, position: int) -> None:
        raise RuntimeError("a bug")

    tail.write = fail
    with pytest.raises(RuntimeError):
        append(kernel, [tail], [PLAIN])
    with pytest.raises((TypeError, AttributeError)):
        produce(kernel, [object()], [PLAIN])


def test_a_file_with_a_descriptor_is_written_at_its_position(
    kernel: ModuleType, tmp_path: Path
) -> None:
    """Bytes are at their position whether kernel or Python writes them; a descriptor that accepts
    no byte leaves the set."""
    path = tmp_path / "00.log"
    path.write_bytes(b"x" * 1000)
    with path.open("r+b", buffering=0) as file:
        descriptor = file.fileno()
        tail = a_tail(kernel, File(), descriptor=descriptor)
        tail.write = lambda data, position: os.pwrite(descriptor, data, position)
        assert [40] == append(kernel, [tail], [PLAIN])
    assert b"x" * 1000 + plain([(None, b"a"), (None, b"b")], 40) == path.read_bytes()
    with path.open("rb", buffering=0) as file:
        tail = a_tail(kernel, File(), descriptor=file.fileno())
        tail.write = lambda data, position: os.pwrite(file.fileno(), data, position)
        before = state(tail)
        assert [-1] == append(kernel, [tail], [PLAIN])
        assert before == state(tail)


def test_an_append_is_counted(kernel: ModuleType) -> None:
    """Messages and bytes are counted. The HW advances at once if no follower must have them, or all
    have them; unless it was below the log end before: then it waits for their fetches."""
    data = plain([(None, b"a"), (None, b"b")])
    alone = a_leader(kernel, a_tail(kernel, File()), messages_in=5, bytes_in=100)
    ahead = kernel.FollowerReplica(2, 0.0)
    ahead.log_end_offset = 41
    led: dict[str, Any] = {"maximal_isr": (1, 2), "followers": {2: ahead}}
    other = a_leader(kernel, a_tail(kernel, File()), high_watermark=40, **led)
    waiting = a_leader(kernel, a_tail(kernel, File()), high_watermark=39, **led)
    produce(kernel, [alone, other, waiting], [data, data, data])
    assert (7, 100 + len(data)) == (alone.messages_in, alone.bytes_in)
    assert (2, len(data)) == (other.messages_in, other.bytes_in)
    assert [42, 41, 39] == [one.high_watermark for one in (alone, other, waiting)]


@pytest.mark.parametrize(
    "fields",
    [{"is_leader": False}, {"is_internal": True}, {"is_queued": True}, {"log": None}],
)
def test_a_partition_that_refuses_appends_is_left(
    kernel: ModuleType, fields: dict[str, Any]
) -> None:
    """Its set is returned unchanged, without a response."""
    leader = a_leader(kernel, a_tail(kernel, File()), **fields)
    _, _, found, base_offsets, left, due, response, _ = produce(kernel, [leader], [PLAIN])
    assert ([leader], [-1], [], None) == (found, base_offsets, due, response)
    assert [(0, PLAIN)] == [(number, bytes(data)) for number, data in left]


def test_acks_of_all_need_enough_in_sync(kernel: ModuleType) -> None:
    """As many as the topic says, or else the partition; with acks -1 alone."""
    cases = ((-1, 2, True), (-1, 3, False), (2, 3, True), (3, 1, False))
    for of_topic, reached, is_enough in cases:
        for acks in (-1, 0, 1):
            tail = a_tail(kernel, File(), min_in_sync=of_topic)
            leader = a_leader(kernel, tail, isr=(1, 2), reached_in_sync=reached)
            assert is_enough == leader.has_enough_in_sync()
            expected = 40 if is_enough or acks >= 0 else -1
            assert [expected] == produce(kernel, [leader], [PLAIN], acks=acks)[3]


def test_what_replicas_still_need_is_named(kernel: ModuleType) -> None:
    """With acks -1, where the HW is below the new end, and only if every set was appended."""

    def leaders() -> list[Any]:
        return [
            a_leader(kernel, a_tail(kernel, File()), topic_partition=name, maximal_isr=isr)
            for name, isr in (("a", (1, 2)), ("b", (1,)))
        ]

    assert {"a": 42} == produce(kernel, leaders(), [PLAIN] * 2, acks=-1)[7]
    assert {} == produce(kernel, leaders(), [PLAIN] * 2, acks=1)[7]
    assert {} == produce(kernel, leaders(), [PLAIN, PLAIN[:20]], acks=-1)[7]


def test_segments_with_a_due_index_entry_are_named(kernel: ModuleType) -> None:
    """The result has exactly the segments whose index entry is due."""
    tails = [a_tail(kernel, File(), bytes_since_index=since) for since in (500, 0, 500)]
    due = produce(kernel, [a_leader(kernel, tail) for tail in tails], [PLAIN] * 3)[5]
    assert [tails[0], tails[2]] == due


def test_an_index_with_room_gets_its_entries(kernel: ModuleType) -> None:
    """Offset less the base, and position of the set; the segment is full with its index."""
    view = memoryview(bytearray(32))
    index = an_index(kernel, view, capacity=3)
    tail = a_tail(kernel, File(), bytes_since_index=500, index_tail=index)
    leader = a_leader(kernel, tail)
    assert [] == produce(kernel, [leader], [PLAIN])[5]
    assert (2, 40, 1000, False) == (
        index.entries,
        index.last_offset,
        index.last_position,
        tail.is_full,
    )
    assert pack(">II", 35, 1000) == view[8:16]
    tail.bytes_since_index = 500
    assert [] == produce(kernel, [leader], [PLAIN])[5]
    assert (3, True) == (index.entries, tail.is_full)
    assert pack(">II", 37, 1000 + len(PLAIN)) == view[16:24]


@pytest.mark.parametrize(
    "fields",
    [
        {"view": None},
        {"view": memoryview(bytearray(15))},
        {"capacity": 0},
        {"capacity": 1},
        {"allocated": 15},
        {"last_offset": 40},
        {"last_position": 1000},
    ],
)
def test_an_index_without_room_is_left_to_its_owner(
    kernel: ModuleType, fields: dict[str, Any]
) -> None:
    """Also one that has an entry behind the set. Nothing in it changes."""
    view = memoryview(bytearray(32))
    index = an_index(kernel, **({"view": view} | fields))
    tail = a_tail(kernel, File(), bytes_since_index=500, index_tail=index)
    assert [tail] == produce(kernel, [a_leader(kernel, tail)], [PLAIN])[5]
    assert (1, bytes(32)) == (index.entries, bytes(view))


def test_more_sets_than_allowed_are_left(kernel: ModuleType) -> None:
    """A request with more sets than the limit is left whole."""
    files = [File(), File()]
    leaders = [a_leader(kernel, a_tail(kernel, file)) for file in files]
    assert produce(kernel, leaders, [PLAIN] * 2, count_max=1) is None
    assert [[], []] == [file.written for file in files]
    assert produce(kernel, leaders, [PLAIN] * 2, count_max=2) is not None


@pytest.mark.parametrize(("is_follower", "expected"), [(True, [1, 2, 3, 5]), (False, [0, 2, 3, 4])])
def test_partitions_with_news_are_found(
    kernel: ModuleType, is_follower: bool, expected: list[int]
) -> None:
    """Followers read to the LEO (40), consumers to the HW. Invalid offsets, and a HW below the
    log's start, are left for the Python path to report."""
    asked = [(40, 39, 9), (39, 39, 9), (40, 40, -1), (7, 40, 9), (40, 3, 9), (3, 3, 9)]
    leaders = [a_leader(kernel, a_tail(kernel, File()), high_watermark=hw) for _, hw, _ in asked]
    for leader in leaders:
        leader.log.log_start_offset = 3
    offsets, limits = [offset for offset, _, _ in asked], [limit for _, _, limit in asked]
    found = kernel.partitions_to_read(leaders, offsets, limits, is_follower)
    assert found is not None
    assert ([39, 39, 40, 40, 3, 3], expected) == found[:2]
    assert [1000, -1, NOT_AT_THE_END, -1, 1000, NOT_AT_THE_END] == found[2]
    leaders[-1].log.log_start_offset = 4
    found = kernel.partitions_to_read(leaders, offsets, limits, is_follower)
    assert ([39, 39, 40, 40, 3, 3], sorted({*expected, 5})) == found[:2]
    leaders[2].is_leader = False
    assert kernel.partitions_to_read(leaders, offsets, limits, is_follower) is None


@pytest.mark.parametrize(("offsets", "limits"), [(1, 2), (2, 1), (3, 2), (0, 0)])
def test_partitions_need_as_many_offsets_and_limits(
    kernel: ModuleType, offsets: int, limits: int
) -> None:
    """Lists of other lengths are refused, not read beyond their ends."""
    leaders = [a_leader(kernel, a_tail(kernel, File())) for _ in range(2)]
    with pytest.raises(ValueError):
        kernel.partitions_to_read(leaders, [40] * offsets, [9] * limits, True)


@pytest.mark.parametrize("seed", range(20))
def test_both_kernels_append_the_same(seed: int) -> None:
    """Both kernels append random valid and invalid sets to tails of every kind alike."""
    native, drawn = native_or_skip(), random.Random(seed)
    rules = drawn.choice(
        [
            None,
            Rules(magic=0),
            Rules(magic=1),
            Rules(magic=1, keys_required=True),
            Rules(magic=1, log_append_time=True),
            Rules(magic=1, max_difference_ms=4000),
        ]
    )
    fields = {"rules": rules, "segment_bytes": 3000, "first_ms": drawn.choice([-1, 500])}
    fields["age_max_ms"] = drawn.choice([600, 1 << 40])
    files = {kernel: File() for kernel in (native, _python)}
    tails = {kernel: a_tail(kernel, file, **fields) for kernel, file in files.items()}
    for _ in range(60):
        magic = drawn.randrange(2)
        key = drawn.choice([None, b"k", b"k"])
        data = bytearray(plain([(key, bytes(drawn.randrange(90)))] * drawn.randrange(4), 9, magic))
        if drawn.random() < 0.1:
            data += plain([(key, b"v")], 9, drawn.randrange(2))
        if data and drawn.random() < 0.2:
            data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
        if drawn.random() < 0.1:
            del data[drawn.randrange(len(data) + 1) :]
        now_ms = NOW_MS + drawn.randrange(1000)
        results = [append(kernel, [tail], [data], now_ms) for kernel, tail in tails.items()]
        assert results[0] == results[1], data.hex()
        assert state(tails[native]) == state(tails[_python])
    assert files[native].written == files[_python].written
