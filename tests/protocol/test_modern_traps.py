"""Answers of a broker of 4.4.0 that a client of an earlier age misreads, as they were captured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

import pytest

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.consumer.group.membership import Membership, Sync, Timeouts
from kafka08.errors import InvalidTimestamp
from kafka08.levels import Level
from kafka08.protocol import codec
from kafka08.protocol.compression import LZ4, compress
from kafka08.protocol.fetch import FetchRequest, FetchResponse
from kafka08.protocol.join_group import JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.message_set import fetched_unpacker
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.protocol.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka08.protocol.types import Request
from tests.client.epoch_cluster import ClientVersions

DATA = Path(__file__).parent.parent / "data" / "modern-4.4.0.json"
CAPTURED: Final = {one["name"]: one for one in json.loads(DATA.read_text(encoding="utf-8"))}
Row = tuple[int, int, bytes | None, bytes | None]
COMPACTED: Final[list[Row]] = [
    (2, 1795938967447, b"c", b"1"),
    # Behind a batch without records.
    (5, 1795938968256, b"a", b"3"),
    (6, 1795938968257, b"b", b"3"),
    (8, 1795938969073, b"z", b"9"),
]
"""Offset, timestamp, key, value. The batch of 5 and 6 has a delete horizon in place of its first
timestamp: above the largest one, so that the records' deltas are negative."""
LEGACY: Final[list[Row]] = [
    (0, -1, b"k", b"m0"),
    (1, -1, None, b"m0b"),
    (2, -1, b"k", b"z0"),
    (3, -1, b"k", b"z1"),
    (4, 1500000000000, b"k", b"m1"),
    (5, 1500000000100, b"k", b"y0"),
    (6, 1500000000200, b"k", b"y1"),
    (7, 1500000000300, b"k", b"v2"),
]
"""Plain messages and wrappers of magic 0 and 1, then a batch, in one set."""
ZSTD: Final[list[Row]] = [
    (n, 1700000000000 + n % 3, b"key-%d" % (n % 3), b"value-%d" % (n % 3)) for n in range(6)
]
"""In frames without their content's size, to a Fetch that comes before zstd."""


def answer(name: str, request: type[Request]) -> Any:
    one = CAPTURED[name]
    payload = memoryview(bytes.fromhex(one["response_hex"]))[4:]
    return codec.decode_response(request, payload, one["api_version"])[1]


@pytest.mark.parametrize(
    ("name", "rows", "from_offset"),
    [
        ("compacted-fetch-v11", COMPACTED, 0),
        ("compacted-fetch-v11-from-4", COMPACTED[1:], 4),
        ("legacy-leg4-fetch-v4-4.4.0", LEGACY, 0),
        ("legacy-leg4-fetch-v4-4.4.0", LEGACY[3:], 3),
        ("fetch-v4-zstd-batch-4.4.0", ZSTD, 0),
    ],
)
def test_fetched_records(name: str, rows: list[Row], from_offset: int) -> None:
    """Each with its own time; the next offset is behind the last record, and behind gaps."""
    response: FetchResponse = answer(name, FetchRequest)
    found = response.topics[0].partitions[0].message_set
    read = kernel.messages(found, "t", 0, from_offset, fetched_unpacker(1 << 20))
    assert [(m.offset, m.timestamp, m.key, m.value) for m in read] == rows
    assert kernel.validate(found, INT_MAX).last_offset == rows[-1][0]


def test_a_batch_without_records_is_passed() -> None:
    """The next offset is behind it although an answer may have nothing else."""
    response: FetchResponse = answer("compacted-fetch-v11-from-4", FetchRequest)
    first = bytes(response.topics[0].partitions[0].message_set)[:61]
    assert not list(kernel.messages(first, "t", 0, 4, fetched_unpacker(1 << 20)))
    assert kernel.validate(first, INT_MAX).last_offset == 4


def test_timestamps_ahead_of_the_broker() -> None:
    """4.4 refuses them by default, with a text for each record."""
    response: ProduceResponse = answer("produce-v8-future-timestamp-4.4.0", ProduceRequest)
    one = response.topics[0].partitions[0]
    assert one.error_code == InvalidTimestamp.code
    assert [error.index for error in one.record_errors] == [0, 1, 2]
    assert "out of range" in (one.record_errors[0].message or "")


def test_a_classic_member_in_a_group_of_the_new_protocol() -> None:
    """No member leads: it goes to Sync at once, and the broker assigns."""
    response: JoinGroupResponse = answer("consumer-group-classic-join-v3", JoinGroupRequest)
    assert (response.leader_id, response.members) == ("", [])
    member = Membership("g", Timeouts(session=10.0, heartbeat=3.0, poll=300.0, backoff=0.1))
    member.subscribe(0.0)
    member.give_up()
    member.joined(response, 1.0)
    action = member.due(1.0)
    assert isinstance(action, Sync)
    assert (action.request.generation, action.request.assignments) == (3, [])


def test_a_static_leader_that_comes_back() -> None:
    """It led, and gets another id and the answer of a follower, which names its former id: it goes
    to Sync at once, without assignments, and waits for nobody."""
    response: JoinGroupResponse = answer("joingroup-v5-static-restart-4.4.0", JoinGroupRequest)
    assert response.members == []
    assert response.leader_id.startswith("i1-")
    assert response.leader_id != response.member_id
    member = Membership("g-static", Timeouts(session=10.0, heartbeat=3.0, poll=300.0, backoff=0.1))
    member.subscribe(0.0)
    member.give_up()
    member.joined(response, 1.0)
    action = member.due(1.0)
    assert isinstance(action, Sync)
    assert (action.request.member_id, action.request.assignments) == (response.member_id, [])


def test_no_null_set_is_sent() -> None:
    """A broker would never answer it."""
    request = ProduceRequest(1, 1000, [ProduceTopic("t", [ProducePartition(0, cast(Any, None))])])
    for request.version in (3, 8):
        with pytest.raises(TypeError):
            codec.encode_request(request, 1, "c")


def test_lz4_frames_have_independent_blocks() -> None:
    """Brokers refuse linked ones, which only frames of several blocks can have."""
    framed = compress(LZ4, bytes(range(256)) * 1000, magic=2)
    assert framed[4] & 0x20


def epochs(answer: Any) -> list[tuple[int, int]]:
    """The offset, if it has one, and the leader epoch of each partition."""
    return [
        (getattr(one, "offset", getattr(one, "end_offset", -1)), one.leader_epoch)
        for topic in answer.topics
        for one in topic.partitions
    ]


@pytest.mark.parametrize(
    ("name", "request_class", "expected"),
    [
        ("metadata-v7-known-unknown-invalid-4.4.0", MetadataRequest, [(-1, 0), (-1, 0)]),
        ("offsetfetch-v5-some-4.4.0", OffsetFetchRequest, [(-5, 0), (5, -1), (-1, -1), (-1, -1)]),
        ("truncation-leaderepoch-v3-b2", OffsetForLeaderEpochRequest, [(3, 0)]),
        ("leaderepoch-v3-epoch5-4.4.0", OffsetForLeaderEpochRequest, [(-1, -1)]),
        ("listoffsets-v4-latest-4.4.0", OffsetsRequest, [(38, 0)]),
    ],
)
def test_leader_epochs(
    name: str, request_class: type[Request], expected: list[tuple[int, int]]
) -> None:
    """Requests and answers with leader epochs are read and written as they were captured."""
    one = CAPTURED[name]
    sent, payload = bytes.fromhex(one["request_hex"]), bytes.fromhex(one["response_hex"])
    header, asked = codec.decode_request(sent[4:], ClientVersions(Level.V0_11_0))
    assert isinstance(asked, request_class)
    assert codec.encode_request(asked, header.correlation_id, header.client_id) == sent
    found = answer(name, request_class)
    assert epochs(found) == expected
    number = int.from_bytes(payload[4:8], "big")
    assert codec.encode_response(found, number, one["api_version"]) == payload
