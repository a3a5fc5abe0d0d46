"""Fetch responses sent in pieces, as a broker does that keeps its message sets in files."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ProtocolError, UnknownError
from kafka08.protocol import codec
from kafka08.protocol import fetch as fetch_module
from kafka08.protocol.fetch import (
    AbortedTransaction,
    FetchNews,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
    HighWatermarks,
    PartitionData,
    read_news,
    response_pieces,
)


@dataclass(frozen=True)
class Slice:
    """A message set that the broker has not read."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


partitions = st.builds(
    PartitionData,
    st.integers(0, 9),
    st.integers(-1, 9),
    st.integers(-1, 1 << 40),
    st.none() | st.builds(Slice, st.binary(max_size=20)),
)
topics = st.lists(st.tuples(st.text(max_size=8), st.lists(partitions, max_size=4)), max_size=4)


@given(correlation_id=st.integers(0, 99), topics=topics)
def test_pieces_with_the_sets_in_place_are_the_encoded_response(
    correlation_id: int, topics: list[tuple[str, list[PartitionData[Slice]]]]
) -> None:
    """Joined with the sets, the pieces equal encode_response; adjacent bytes are one piece, and no
    piece is empty."""
    response = FetchResponse(
        [
            FetchTopicResponse(
                topic,
                [
                    FetchPartitionResponse(
                        data.partition,
                        data.error_code,
                        data.high_watermark,
                        data.message_set.data if data.message_set else b"",
                    )
                    for data in partitions
                ],
            )
            for topic, partitions in topics
        ]
    )
    pieces = response_pieces(correlation_id, topics)
    sent = [piece.data if isinstance(piece, Slice) else piece for piece in pieces]
    assert codec.encode_response(response, correlation_id) == b"".join(sent)
    assert all(sent)
    for piece, following in pairwise(pieces):
        assert isinstance(piece, Slice) or isinstance(following, Slice)


def test_a_response_without_messages_is_one_piece() -> None:
    """The response of a long poll that timed out needs one send."""
    nothing: list[PartitionData[Slice]] = [PartitionData(0, 0, 5, None)] * 3
    assert len(response_pieces(1, [("a", nothing), ("b", nothing)])) == 1


def test_too_large_fields_are_a_protocol_error() -> None:
    """A topic name, a set or a whole frame that is too large is refused."""

    @dataclass(frozen=True)
    class Huge:
        size: int

    for topic, sizes in (("x" * 40000, [1]), ("t", [1 << 31]), ("t", [1 << 30, 1 << 30])):
        sets = [PartitionData(0, 0, 5, Huge(size)) for size in sizes]
        with pytest.raises(ProtocolError, match="FetchResponse"):
            response_pieces(1, [(topic, sets)])


def test_null_instead_of_messages_is_read_as_none() -> None:
    """Brokers from 1.0 on send null beside an error; the other partitions of the response are
    read."""
    parts = [FetchPartitionResponse(n, 76 * n, n - 1, b"") for n in (0, 1)]
    body = bytearray(codec.encode_body(FetchResponse([FetchTopicResponse("t", parts)])))
    body[-4:] = b"\xff" * 4
    decoded, _ = codec.decode_body(FetchResponse, bytes(body))
    assert decoded == FetchResponse([FetchTopicResponse("t", parts)])


def encoded(version: int, parts: list[tuple[str, FetchPartitionResponse]]) -> memoryview:
    response = FetchResponse([FetchTopicResponse(topic, [part]) for topic, part in parts])
    return memoryview(codec.encode_response(response, 7, version))[4:]


@given(version=st.sampled_from(range(12)), topics=topics)
def test_the_first_response_is_all_news(
    version: int, topics: list[tuple[str, list[PartitionData[Slice]]]]
) -> None:
    """Without a former response every part is news, as codec.decode_response reads it."""
    parts = [
        (topic, FetchPartitionResponse(n, data.error_code, 5, b"x" * data.partition))
        for topic, some in dict(topics).items()
        for n, data in enumerate(some)
    ]
    payload = encoded(version, parts)
    decoded = codec.decode_response(FetchRequest, payload, version)[1]
    assert isinstance(decoded, FetchResponse)
    assert read_news(payload, version, {}) == [
        (topic.topic, part) for topic in decoded.topics for part in topic.partitions
    ]


def test_what_the_last_response_said_is_no_news() -> None:
    """Of many partitions only those with messages, an error or another high watermark are read."""
    seen: HighWatermarks = {}

    def news(changed: dict[int, FetchPartitionResponse]) -> list[int]:
        idle = {n: FetchPartitionResponse(n, 0, 5, b"") for n in range(1000)}
        parts = [("t", part) for part in (idle | changed).values()]
        return [part.partition for _, part in read_news(encoded(2, parts), 2, seen)]

    assert news({}) == [*range(1000)]
    assert news({}) == []
    assert news({3: FetchPartitionResponse(3, 0, 6, b"")}) == [3]
    assert news({9: FetchPartitionResponse(9, 0, 5, b"x")}) == [3, 9]
    assert news({9: FetchPartitionResponse(9, 6, -1, b"")}) == [9]
    assert news({9: FetchPartitionResponse(9, 6, -1, b"")}) == [9]
    assert news({}) == [9]


@pytest.mark.parametrize("version", [0, 3, 4, 11])
def test_a_response_like_the_last_one_is_not_read(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partitions of a response without messages are looked at once, until one of them has news
    or is to be news again; messages are never taken for those of the last response."""
    read: list[int] = []

    def counted(payload: memoryview, *rest: Any) -> list[tuple[str, FetchPartitionResponse]]:
        read.append(len(payload))
        return read_news(payload, *rest)

    monkeypatch.setattr(fetch_module, "read_news", counted)
    news = FetchNews()
    idle = [("t", FetchPartitionResponse(n, 0, 5, b"")) for n in range(3)]
    full = [*idle[:2], ("t", FetchPartitionResponse(2, 0, 5, b"x"))]

    def look(parts: list[tuple[str, FetchPartitionResponse]]) -> list[int]:
        return [part.partition for _, part in news.read(encoded(version, parts), version)]

    assert [look(idle), look(idle), len(read)] == [[0, 1, 2], [], 2]
    assert [look(idle), look(idle), len(read)] == [[], [], 2]
    assert [look(full), look(full), len(read)] == [[2], [2], 4]
    assert [look(idle), look(idle), len(read)] == [[], [], 5]
    news.forget("t", 1)
    assert look(idle) == [1]


@pytest.mark.parametrize("version", [4, 5, 7, 11])
def test_later_fields_are_read(version: int) -> None:
    """A response has them from their versions on; null in place of a list or a set is read as
    none."""
    some = [AbortedTransaction(7, 3), AbortedTransaction(8, 1)]
    full = FetchPartitionResponse(1, 0, 9, b"messages", 8, some)
    if version >= 5:
        full.log_start_offset = 2
    if version >= 11:
        full.preferred_replica = 3
    nothing = FetchPartitionResponse(2, 1, -1, b"", -1, None)
    payload = encoded(version, [("t", full), ("u", nothing), ("t", nothing)])
    expected = [("t", full), ("u", nothing), ("t", nothing)]
    assert read_news(payload, version, {}) == expected
    null = memoryview(bytes(payload[:-4]) + b"\xff" * 4)
    assert read_news(null, version, {}) == expected


def test_an_error_of_the_whole_response_is_raised() -> None:
    """From version 7 on it stands before the topics, of which there are none."""
    response = FetchResponse([], error_code=70)
    payload = memoryview(codec.encode_response(response, 7, 11))[4:]
    with pytest.raises(UnknownError, match="70"):
        read_news(payload, 11, {})


@pytest.mark.parametrize("version", [0, 2, 4, 11])
def test_a_cut_response_has_no_news(version: int) -> None:
    """A response that ends early, or goes on after its end, is refused."""
    part = FetchPartitionResponse(1, 0, 5, b"messages")
    payload = bytes(encoded(version, [("t", part), ("u", part)]))
    for end in range(4, len(payload)):
        with pytest.raises(ProtocolError):
            read_news(memoryview(payload[:end]), version, {})
    with pytest.raises(ProtocolError):
        read_news(memoryview(payload + b"x"), version, {})


@pytest.mark.parametrize("at", [8, 15])
def test_a_negative_count_is_refused(at: int) -> None:
    """That of the topics, and that of the partitions of one: else the rest would be no news."""
    payload = bytearray(encoded(1, [("t", FetchPartitionResponse(1, 0, 5, b""))]))
    payload[at : at + 4] = (-1).to_bytes(4, signed=True)
    with pytest.raises(ProtocolError, match="a count of -1"):
        read_news(memoryview(payload[: at + 4]), 1, {})
