"""Fetch responses at the ends of a follower's logs: what is appended, what is left."""

from __future__ import annotations

import random
from collections.abc import Sequence
from struct import error, pack
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel.types import Buffer, Rules
from kafka08.protocol.codec import encode_response
from kafka08.protocol.fetch import FetchPartitionResponse, FetchResponse, FetchTopicResponse
from tests.broker.replica.conftest import BUILDS, build_of
from tests.broker.replica.leaders import a_leader
from tests.kernel.sets import plain, wrapper
from tests.kernel.tails import NOW_MS, File, a_tail, state

MAX_BYTES = 1 << 20
FIELDS = ("unsettled", "is_followed", "max_bytes", "expected_bytes", "lag")
PLAIN = plain([(None, b"a"), (None, b"b")], 40)


def a_replica(kernel: ModuleType, tail: Any, **fields: Any) -> Any:
    """A partition that is followed, with what belongs to its FollowerState and its LeaderState."""
    followed = kernel.FollowerState()
    values = {
        "unsettled": None,
        "is_followed": True,
        "max_bytes": MAX_BYTES,
        "expected_bytes": 9,
        "lag": 9,
        "leader_start": -1,
        "frame_position": 0,
    }
    own = {name: value for name, value in fields.items() if name in values}
    for name, value in (values | own).items():
        setattr(followed, name, value)
    others = {name: value for name, value in fields.items() if name not in values}
    followed.partition = a_leader(kernel, tail, **({"is_leader": False} | others))
    return followed


def response(
    results: Sequence[tuple[int, int, Buffer]], version: int = 0, start: int = -1
) -> memoryview:
    """The payload with a (code, HW, set) for each partition; their logs start at `start`."""
    partitions = [
        FetchPartitionResponse(n, *result, log_start_offset=start)
        for n, result in enumerate(results)
    ]
    frame = encode_response(FetchResponse([FetchTopicResponse("t", partitions)]), 1, version)
    return memoryview(frame)[4:]


def fetched(
    kernel: ModuleType, replicas: Sequence[Any], *results: tuple[int, int, Buffer]
) -> tuple[list[Any], list[Any]]:
    known = {b"t": dict(enumerate(replicas))}
    taken = kernel.append_fetched(response(results), 0, known, MAX_BYTES, NOW_MS)
    assert taken is not None
    left, appended, risen = taken
    assert not risen
    return [(item, code, mark, data) for item, code, mark, _, data in left], appended


def whole_state(replica: Any) -> Any:
    tail = replica.partition.log.active_segment
    own = [getattr(replica, name) for name in FIELDS]
    return own, replica.partition.high_watermark, state(tail)


@pytest.mark.parametrize("data", [PLAIN, wrapper(41, PLAIN), PLAIN[:-3], plain([(b"k", b"v")], 90)])
def test_whole_entries_are_appended_as_they_are(kernel: ModuleType, data: bytes) -> None:
    """Entries, compressed ones too, keep the leader's offsets and their gaps; a cut entry at the
    end is left out. The HW is the leader's, at most the log end."""
    file = File()
    replica = a_replica(kernel, a_tail(kernel, file))
    assert ([], [replica]) == fetched(kernel, [replica], (0, 1000, data))
    tail = replica.partition.log.active_segment
    whole = PLAIN[: len(PLAIN) // 2] if data == PLAIN[:-3] else data
    end = {PLAIN[:-3]: 41, plain([(b"k", b"v")], 90): 91}.get(data, 42)
    assert [(1000, whole)] == file.written
    assert (end, 1000 + len(whole), 40, 1000) == (
        tail.end_offset,
        tail.size,
        tail.tail_offset,
        tail.tail_position,
    )
    assert (end, len(data), 1000 - end) == (
        replica.partition.high_watermark,
        replica.expected_bytes,
        replica.lag,
    )


def test_empty_responses_move_the_high_watermark_alone(kernel: ModuleType) -> None:
    """It may fall, as while a new leader does not know the former leader's HW."""
    file = File()
    replica = a_replica(kernel, a_tail(kernel, file, end_offset=40), high_watermark=38)
    assert ([], []) == fetched(kernel, [replica], (0, 7, b""))
    assert ([], 7, 0, 0) == (
        file.written,
        replica.partition.high_watermark,
        replica.expected_bytes,
        replica.lag,
    )


LEFT: dict[str, tuple[tuple[int, int, Buffer], dict[str, Any], dict[str, Any]]] = {
    "an error": ((6, -1, b""), {}, {}),
    "an error with data": ((6, -1, PLAIN), {}, {}),
    "a log that may differ": ((0, 9, PLAIN), {"unsettled": 30}, {}),
    "another fetch size": ((0, 9, PLAIN), {"max_bytes": MAX_BYTES + 1}, {}),
    "a partition that is not followed": ((0, 9, b""), {"is_followed": False}, {}),
    "a partition that is led here": ((0, 9, b""), {"is_leader": True}, {}),
    "a tail that takes nothing": ((0, 9, PLAIN), {}, {"takes_plain_sets": False}),
    "a full index": ((0, 9, PLAIN), {}, {"is_full": True}),
    "an empty segment": ((0, 9, PLAIN), {}, {"size": 0}),
    "a full segment": ((0, 9, PLAIN), {}, {"segment_bytes": 1000 + len(PLAIN) - 1}),
    "an old segment": ((0, 9, PLAIN), {}, {"age_max_ms": NOW_MS - 1000 - 1}),
    "an offset far from the base": (
        (0, 9, plain([(None, b"a")], 5 + (1 << 31))),
        {},
        {"base_offset": 5},
    ),
    "a cut entry": ((0, 9, PLAIN[:20]), {}, {}),
    "a bad CRC": ((0, 9, PLAIN[:-1] + b"x"), {}, {}),
    "offsets below the end": ((0, 9, PLAIN), {}, {"end_offset": 41}),
    "offsets out of order": ((0, 9, PLAIN + PLAIN), {}, {}),
    "256 KB": (
        (0, 9, plain([(None, bytes(9000))] * 30, 40)),
        {},
        {"segment_bytes": 1 << 20},
    ),
}


@pytest.mark.parametrize("reason", LEFT)
def test_sets_that_need_python_are_left(kernel: ModuleType, reason: str) -> None:
    """Nothing is written and no tail changes; the partition beside it is appended to. Without the
    reason the set would be appended."""
    result, own, of_tail = LEFT[reason]
    file, other = File(), File()
    replica = a_replica(kernel, a_tail(kernel, file, **of_tail), **own)
    beside = a_replica(kernel, a_tail(kernel, other))
    before = whole_state(replica)
    left, appended = fetched(kernel, [replica, beside], result, (0, 9, PLAIN))
    assert [(replica, *result)] == [(one, code, hw, bytes(data)) for one, code, hw, data in left]
    assert ([beside], [], 1) == (appended, file.written, len(other.written))
    assert before == whole_state(replica)
    if result == (0, 9, PLAIN):
        usual = a_replica(kernel, a_tail(kernel, file))
        assert ([], [usual]) == fetched(kernel, [usual], result)


def test_a_failed_write_leaves_the_set(kernel: ModuleType) -> None:
    """A set whose write failed is left to the Python path, which meets the error."""
    file = File()
    file.fails = True
    replica = a_replica(kernel, a_tail(kernel, file))
    before = whole_state(replica)
    left, appended = fetched(kernel, [replica], (0, 9, PLAIN))
    assert ([replica], []) == ([one for one, *_ in left], appended)
    assert before == whole_state(replica)


def test_due_index_entries_are_added(kernel: ModuleType) -> None:
    """To exactly the segments with a due index entry that were appended to."""
    tails = [a_tail(kernel, File(), bytes_since_index=since) for since in (500, 0, 500)]
    replicas = [a_replica(kernel, tail) for tail in tails]
    fetched(kernel, replicas, (0, 9, PLAIN), (0, 9, PLAIN), (0, 9, b""))
    assert [1, 0, 0] == [tail.indexed for tail in tails]


def test_new_offsets_go_into_the_frame(kernel: ModuleType) -> None:
    """Those of partitions to which something was appended, and no others. A frame that is too short
    is a bug."""
    replicas = [
        a_replica(kernel, a_tail(kernel, File()), frame_position=position) for position in (3, 20)
    ]
    known = {b"t": dict(enumerate(replicas))}
    frame = bytearray(40)
    payload = response([(0, 9, PLAIN), (0, 9, b"")])
    kernel.append_fetched(payload, 0, known, MAX_BYTES, NOW_MS, frame)
    assert bytes(3) + pack(">q", 42) + bytes(29) == frame
    replicas[1].frame_position = 33
    with pytest.raises((IndexError, error)):
        kernel.append_fetched(response([(0, 9, b""), (0, 9, PLAIN)]), 0, known, MAX_BYTES, 0, frame)


def test_another_log_start_of_the_leader_is_named(kernel: ModuleType) -> None:
    """Of version 5, where it is another one than is known here; also beside an empty set. What is
    left has it, too."""
    known = [a_replica(kernel, a_tail(kernel, File()), leader_start=start) for start in (3, 7, 7)]
    payload = response([(0, 9, b""), (0, 9, PLAIN), (6, -1, b"")], version=5, start=7)
    taken = kernel.append_fetched(payload, 5, {b"t": dict(enumerate(known))}, MAX_BYTES, NOW_MS)
    assert ([(known[2], 6, -1, 7, b"")], [known[1]], [(known[0], 7)]) == taken


def test_a_response_of_another_layout_is_left_whole(kernel: ModuleType) -> None:
    """A response that is cut, or has a partition that was not requested, is left whole."""
    file = File()
    known = {b"t": {0: a_replica(kernel, a_tail(kernel, file))}}
    payload = response([(0, 9, PLAIN)])
    assert kernel.append_fetched(payload[:-1], 0, known, MAX_BYTES, NOW_MS) is None
    payload = response([(0, 9, PLAIN), (0, 9, PLAIN)])
    assert kernel.append_fetched(payload, 0, known, MAX_BYTES, NOW_MS) is None
    assert [] == file.written


@pytest.mark.parametrize("seed", range(20))
def test_all_builds_append_the_same(seed: int) -> None:
    """Random valid and invalid sets go to tails of every kind alike."""
    drawn, builds = random.Random(seed), {name: build_of(name) for name in BUILDS}
    fields = {"rules": drawn.choice([None, Rules(magic=1)]), "segment_bytes": 3000}
    fields |= {"first_ms": drawn.choice([-1, 500]), "age_max_ms": drawn.choice([600, 1 << 40])}
    files = {name: File() for name in BUILDS}
    replicas = {
        name: a_replica(builds[name], a_tail(builds[name], file, **fields))
        for name, file in files.items()
    }
    for _ in range(60):
        end = replicas[BUILDS[0]].partition.log.active_segment.end_offset
        offset = max(0, end + drawn.choice([0, 0, 0, 0, 5, -1, 1 << 31]))
        messages = [(b"k", bytes(drawn.randrange(90)))] * drawn.randrange(4)
        data = bytearray(plain(messages, offset, drawn.randrange(2)))
        if data and drawn.random() < 0.2:
            data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
        if drawn.random() < 0.2:
            del data[drawn.randrange(len(data) + 1) :]
        result = (drawn.choice([0, 0, 0, 6]), drawn.randrange(100), bytes(data))
        outcomes = []
        for name, replica in replicas.items():
            left, appended = fetched(builds[name], [replica], result)
            outcomes.append((len(left), len(appended), whole_state(replica)))
        assert outcomes[0] == outcomes[1] == outcomes[2], data.hex()
    first, second, third = (file.written for file in files.values())
    assert first == second == third
    assert first or fields["age_max_ms"] == 600
