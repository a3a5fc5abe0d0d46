"""Responses to followers, with copies of the messages at the ends of the leader's logs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import pack
from types import ModuleType
from typing import Any

import pytest

from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.broker.replica.conftest import BUILDS, build_of
from tests.broker.replica.leaders import a_leader
from tests.kernel.tails import File, a_tail, an_index

BYTES = bytes(number % 251 for number in range(1000))
"""The segment: base offset 5, LEO 40, the last set from offset 30 on at position 900."""
ENOUGH = 1 << 20


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "5.log"
    path.write_bytes(BYTES)
    with path.open("rb", buffering=0) as file:
        yield file.fileno()


def payload_of(offsets: Sequence[int], limits: Sequence[int], version: int = 0) -> memoryview:
    partitions = [
        FetchPartition(n, *pair) for n, pair in enumerate(zip(offsets, limits, strict=True))
    ]
    request = FetchRequest(2, 500, 1, [FetchTopic("t", partitions)], version=version)
    return memoryview(encode_request(request, 77, "fetcher"))[4:]


def respond(
    kernel: ModuleType,
    leaders: Sequence[Any],
    offsets: Sequence[int],
    positions: Sequence[int] | None = None,
    limits: Sequence[int] | None = None,
    bytes_max: int = ENOUGH,
    version: int = 0,
    high_watermarks: list[int] | None = None,
) -> bytes | None:
    """The result of `respond_to_follower` for a request for each of these."""
    positions = [-1] * len(offsets) if positions is None else positions
    limits = [ENOUGH] * len(offsets) if limits is None else limits
    payload = payload_of(offsets, limits, version)
    found: bytes | None = kernel.respond_to_follower(
        payload,
        list(leaders),
        list(offsets),
        list(limits),
        list(positions),
        bytes_max,
        high_watermarks,
    )
    return found


def sets_of(frame: bytes | None, version: int = 0) -> list[tuple[int, int, bytes]]:
    """(code, HW, set) of each partition."""
    assert frame is not None
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, response = decode_response(FetchRequest, memoryview(frame)[4:], version)
    assert 77 == header
    [topic] = response.topics
    return [(p.error_code, p.high_watermark, bytes(p.message_set)) for p in topic.partitions]


@pytest.mark.parametrize("version", range(4))
def test_a_follower_gets_what_follows_its_offset(
    kernel: ModuleType, descriptor: int, version: int
) -> None:
    """From the last set on, from a position that was noted before, from an index entry, from the
    start of the segment; or nothing at its end. Each response is counted."""
    view = memoryview(bytearray(pack(">IIII", 10, 400, 15, 600) + bytes(16)))
    index = an_index(kernel, view, entries=2)
    tail = a_tail(kernel, File(), descriptor=descriptor, index_tail=index)
    leaders = [a_leader(kernel, tail, high_watermark=hw) for hw in range(6)]
    positions = [-1, 700, -1, -1, 3, -1]
    found = respond(kernel, leaders, [30, 17, 20, 15, 5, 40], positions, version=version)
    starts = (900, 700, 600, 400, 0, 1000)
    assert [(0, hw, BYTES[at:]) for hw, at in enumerate(starts)] == sets_of(found, version)
    earlier = respond(kernel, leaders[:1], [30], high_watermarks=[-7], version=version)
    assert [(0, -7, BYTES[900:])] == sets_of(earlier, version)
    counts = [(leader.fetch_requests, leader.bytes_out) for leader in leaders]
    assert [(2, 0), *[(1, 0)] * 5] == counts


@pytest.mark.parametrize(
    ("offset", "asked", "fields", "leading"),
    [
        (41, {}, {}, {}),
        (4, {}, {}, {}),
        (20, {}, {}, {}),
        (20, {"positions": [1000]}, {}, {}),
        (30, {"limits": [100]}, {}, {}),
        (40, {"limits": [-1]}, {}, {}),
        (30, {"bytes_max": 99}, {}, {}),
        (30, {}, {"descriptor": -1}, {}),
        (30, {}, {"size": 1001}, {}),
        (30, {}, {}, {"is_leader": False}),
        (30, {}, {}, {"log": None}),
    ],
)
def test_what_is_not_the_rule_is_left(
    kernel: ModuleType,
    descriptor: int,
    offset: int,
    asked: dict[str, Any],
    fields: dict[str, Any],
    leading: dict[str, Any],
) -> None:
    """There is no response, and nothing is counted."""
    tail = a_tail(kernel, File(), **({"descriptor": descriptor} | fields))
    leader = a_leader(kernel, tail, **leading)
    assert respond(kernel, [leader], [offset], **asked) is None
    assert 0 == leader.fetch_requests


def test_a_file_that_cannot_be_read_is_left(kernel: ModuleType, tmp_path: Path) -> None:
    """A failed read is no response: the broker reads again, in its own way, and handles the
    error."""
    with (tmp_path / "5.log").open("wb") as file:
        leader = a_leader(kernel, a_tail(kernel, File(), descriptor=file.fileno()))
        assert respond(kernel, [leader], [30]) is None
    assert 0 == leader.fetch_requests


def test_limits_are_of_all_sets_together(kernel: ModuleType, descriptor: int) -> None:
    """The limits count all sets: two of 100 bytes need 200."""
    leaders = [a_leader(kernel, a_tail(kernel, File(), descriptor=descriptor)) for _ in range(2)]
    assert respond(kernel, leaders, [30, 30], bytes_max=199) is None
    assert respond(kernel, leaders, [30, 30], limits=[101, 101], bytes_max=200) is not None


def test_another_request_is_an_error(kernel: ModuleType, descriptor: int) -> None:
    """One for other partitions than the caller says."""
    leaders = [a_leader(kernel, a_tail(kernel, File(), descriptor=descriptor)) for _ in range(2)]
    payload = payload_of([30], [ENOUGH])
    with pytest.raises(ValueError):
        kernel.respond_to_follower(payload, leaders, [30, 30], [ENOUGH] * 2, [-1, -1], ENOUGH)
    with pytest.raises(ValueError):
        kernel.respond_to_follower(payload, leaders[:1], [30], [ENOUGH], [], ENOUGH)


@pytest.mark.parametrize("seed", range(20))
def test_all_builds_answer_the_same(descriptor: int, seed: int) -> None:
    """Random ends, offsets, positions, limits and indexes."""
    drawn, builds = random.Random(seed), [build_of(name) for name in BUILDS]
    for _ in range(50):
        entries = sorted(
            {drawn.randrange(1, 35): drawn.randrange(1, 1000) for _ in range(4)}.items()
        )
        bytes_of_index = b"".join(pack(">II", *entry) for entry in entries).ljust(32, b"\0")
        count = drawn.randrange(1, 4)
        fields = [
            {"size": drawn.choice([0, 900, 1000]), "tail_offset": drawn.randrange(5, 41)}
            for _ in range(count)
        ]
        offsets = [drawn.randrange(3, 42) for _ in range(count)]
        positions = [drawn.randrange(-1, 1002) for _ in range(count)]
        limits = [drawn.choice([-1, 0, 300, ENOUGH, ENOUGH]) for _ in range(count)]
        responses = []
        for kernel in builds:
            leaders = []
            for one in fields:
                index = an_index(
                    kernel, memoryview(bytearray(bytes_of_index)), entries=len(entries)
                )
                tail = a_tail(kernel, File(), descriptor=descriptor, index_tail=index, **one)
                leaders.append(a_leader(kernel, tail))
            found = respond(kernel, leaders, offsets, positions, limits, 1500)
            responses.append((found, [leader.fetch_requests for leader in leaders]))
        assert responses[0] == responses[1] == responses[2]
