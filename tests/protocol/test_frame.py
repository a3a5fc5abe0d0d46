"""Cutting a stream into frames: any cut gives the same payloads, wrong sizes are refused early."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol import growing_buffer
from kafka08.protocol.frame import BUFFER_BYTES, SIZE, BufferPool, FrameReader, frame_size
from kafka08.protocol.growing_buffer import GrowingBuffer
from tests.memory import resident_bytes

MAX_SIZE = 104857600
payload_lists = st.lists(st.binary(min_size=1, max_size=300), max_size=8)


def stream(*payloads: bytes) -> bytes:
    return b"".join(SIZE.pack(len(payload)) + payload for payload in payloads)


def receive(reader: FrameReader, data: bytes) -> list[bytes]:
    """Treats bytes that arrived as a server does: into the buffer, payloads out, release."""
    payloads = []
    while data:
        room = reader.buffer()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        reader.advance(count)
        payloads += [bytes(payload) for payload in reader.payloads()]
        reader.release()
    return payloads


@given(payloads=payload_lists, cuts=st.lists(st.integers(0, 2500), max_size=10))
def test_any_cut_of_the_stream_gives_the_same_payloads(
    payloads: list[bytes], cuts: list[int]
) -> None:
    """However the bytes arrive, each payload is returned once, whole and in order."""
    data = stream(*payloads)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for pool in (BufferPool(buffer_bytes=16), BufferPool()):
        reader = FrameReader(MAX_SIZE, pool)
        pieces = [data[start:end] for start, end in pairwise(edges)]
        assert payloads == [payload for piece in pieces for payload in receive(reader, piece)]
        assert reader.pending_bytes == 0


@given(payloads=payload_lists)
def test_fed_whole_and_byte_by_byte_are_the_same(payloads: list[bytes]) -> None:
    """feed() of all bytes equals feed() of each byte, and each result has its own buffer."""
    data = stream(*payloads)
    reader = FrameReader(MAX_SIZE)
    assert payloads == FrameReader(MAX_SIZE).feed(data)
    assert payloads == [p for i in range(len(data)) for p in reader.feed(data[i : i + 1])]


def test_payloads_are_writable_views_without_a_copy() -> None:
    """A Produce request is numbered in its receive buffer."""
    pool = BufferPool()
    reader = FrameReader(MAX_SIZE, pool)
    room = reader.buffer()
    room[:8] = stream(b"abcd")
    reader.advance(8)
    (payload,) = reader.payloads()
    payload[0:1] = b"X"
    assert bytes(room[4:8]) == b"Xbcd"


@pytest.mark.parametrize("size", [0, -1, -(1 << 31), 101, (1 << 31) - 1])
def test_a_wrong_size_is_refused_after_four_bytes(size: int) -> None:
    """Four bytes suffice to refuse a frame, before any of its payload."""
    reader = FrameReader(100)
    assert reader.feed(SIZE.pack(size)[:3]) == []
    with pytest.raises(ProtocolError, match=str(size)):
        reader.feed(SIZE.pack(size)[3:])


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"\x16\x03\x01\x02", "looks like TLS"),
        (b"\x15\x03\x03\x00", "looks like TLS"),
        (b"GET ", "looks like HTTP"),
        (b"\x16\x04\x01\x02", "maximum of 100$"),
    ],
)
def test_another_protocol_is_named(first: bytes, said: str) -> None:
    """Of a TLS client at this port a broker's log told only a huge frame."""
    with pytest.raises(ProtocolError, match=said):
        FrameReader(100).feed(first)


def test_a_frame_of_the_largest_size_passes() -> None:
    """A frame of exactly the limit is accepted."""
    assert FrameReader(100).feed(stream(b"x" * 100)) == [b"x" * 100]


def test_valid_frames_before_a_wrong_size_are_returned_first() -> None:
    """The error comes at the wrong frame's turn, and again at each later call."""
    data = stream(b"good", b"frame") + SIZE.pack(-1)
    reader = FrameReader(100)
    room = reader.buffer()
    room[: len(data)] = data
    reader.advance(len(data))
    payloads = reader.payloads()
    assert [bytes(next(payloads)), bytes(next(payloads))] == [b"good", b"frame"]
    for _ in range(2):
        with pytest.raises(ProtocolError):
            next(reader.payloads())
    with pytest.raises(ProtocolError):
        reader.buffer()


def test_feed_raises_a_wrong_size_after_the_valid_frames() -> None:
    """feed() returns the valid frames and raises at its next call."""
    reader = FrameReader(100)
    assert reader.feed(stream(b"good") + SIZE.pack(0)) == [b"good"]
    with pytest.raises(ProtocolError):
        reader.feed(b"more")


def test_iteration_may_stop_and_continue() -> None:
    """A server that parks a request takes the rest of the pipeline later."""
    data = stream(b"1", b"2", b"3")
    reader = FrameReader(100)
    room = reader.buffer()
    room[: len(data)] = data
    reader.advance(len(data))
    assert bytes(next(reader.payloads())) == b"1"
    reader.release()
    assert [bytes(payload) for payload in reader.payloads()] == [b"2", b"3"]


def test_idle_readers_hold_no_buffer() -> None:
    """A thousand connections between requests share one buffer."""
    pool = BufferPool()
    readers = [FrameReader(MAX_SIZE, pool) for _ in range(1000)]
    for reader in readers:
        assert receive(reader, stream(b"request")) == [b"request"]
    assert pool.kept_bytes == BUFFER_BYTES


def test_a_buffer_that_a_request_refers_to_is_not_released() -> None:
    """While a request is in progress: with its payload the buffer is returned."""
    pool = BufferPool()
    reader = FrameReader(MAX_SIZE, pool)
    data = stream(b"request")
    reader.buffer()[: len(data)] = data
    reader.advance(len(data))
    payload = reader.next_payload()
    assert payload is not None
    reader.release_if_unused()
    assert (b"request", 0) == (bytes(payload), pool.kept_bytes)
    del payload
    reader.release_if_unused()
    assert BUFFER_BYTES == pool.kept_bytes
    assert BUFFER_BYTES == len(pool.take())


def test_a_size_alone_takes_little_memory() -> None:
    """A peer that announces 100 MB and sends nothing costs a buffer, not 100 MB."""
    tracemalloc.start()
    try:
        reader = FrameReader(MAX_SIZE)
        receive(reader, SIZE.pack(MAX_SIZE))
        assert len(reader.buffer()) > 0
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


LARGE = bytes(range(256)) * (40 << 10)


@pytest.mark.parametrize("piece_bytes", [1 << 16, 100_001, 1 << 24])
def test_a_large_frame_arrives_whole(piece_bytes: int) -> None:
    """It arrives between small ones, in pieces of any size, and its memory does not go to the
    pool."""
    pool = BufferPool()
    reader = FrameReader(MAX_SIZE, pool)
    data = stream(b"before", LARGE, b"next", LARGE, b"last")
    pieces = [data[at : at + piece_bytes] for at in range(0, len(data), piece_bytes)]
    received = [payload for piece in pieces for payload in receive(reader, piece)]
    assert [b"before", LARGE, b"next", LARGE, b"last"] == received
    assert pool.kept_bytes <= 1 << 20


def test_a_large_frame_is_never_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its receive buffer grows in place: ten times for 1 GB, not at each receive."""
    grown: list[int] = []

    def grow(buffer: GrowingBuffer, frame_bytes: int) -> GrowingBuffer:
        larger = real(buffer, frame_bytes)
        assert larger is buffer
        grown.append(len(larger))
        return larger

    real = growing_buffer.grow
    monkeypatch.setattr(growing_buffer, "grow", grow)
    reader = FrameReader(MAX_SIZE)
    data = stream(LARGE)
    for at in range(0, len(data), 1 << 16):
        receive(reader, data[at : at + (1 << 16)])
    assert [2 << 20, 4 << 20, 8 << 20, len(data)] == grown


def test_a_large_frame_takes_no_more_memory_than_has_arrived() -> None:
    """With 100 MB announced and 20 MB sent it takes little more than 20 MB, all released at the
    end. Eight such clients used to hold 899 MB."""
    before = resident_bytes()
    reader = FrameReader(MAX_SIZE)
    receive(reader, SIZE.pack(MAX_SIZE))
    piece = bytes(1 << 20)
    for _ in range(20):
        receive(reader, piece)
    assert 20 << 20 <= resident_bytes() - before < 26 << 20
    reader.close()
    assert resident_bytes() - before < 4 << 20


def test_a_payload_outlives_its_large_buffer() -> None:
    """A parked request keeps its bytes when its connection closes."""
    reader = FrameReader(MAX_SIZE)
    data = stream(LARGE)
    payload = None
    while data:
        room = reader.buffer()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        reader.advance(count)
        payload = next(reader.payloads(), None)
    reader.close()
    assert payload is not None
    assert bytes(payload) == LARGE


def test_closing_does_not_share_a_buffer_that_may_still_be_used() -> None:
    """A request in progress when its connection closes keeps its bytes."""
    pool = BufferPool()
    reader = FrameReader(100, pool)
    reader.buffer()[:8] = stream(b"abcd")
    reader.advance(8)
    (payload,) = reader.payloads()
    reader.close()
    assert receive(FrameReader(100, pool), stream(b"other")) == [b"other"]
    assert bytes(payload) == b"abcd"


def test_the_pool_gives_a_buffer_that_is_large_enough() -> None:
    """take(size) prefers the buffer that was returned last, skips smaller ones, and creates one if
    none fits."""
    pool = BufferPool(buffer_bytes=10)
    small, large = pool.take(), pool.take(100)
    assert (len(small), len(large)) == (10, 100)
    pool.give(large)
    pool.give(small)
    assert large is pool.take(50)
    assert small is pool.take()
    assert pool.kept_bytes == 0


def test_frame_size_reads_at_a_position() -> None:
    """The same check serves callers that read the four bytes themselves."""
    assert frame_size(b"..\0\0\0\5", 5, 2) == 5
