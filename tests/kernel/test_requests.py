"""Wide requests: both kernels read what the codec writes, and write what it writes."""

from __future__ import annotations

import struct
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.kernel import _python
from kafka08.protocol.codec import encode_request, encode_response
from kafka08.protocol.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
)
from kafka08.protocol.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from tests.kernel.conftest import native_or_skip

NAMES = ("a", "bc", "ü", "topic-with-a-longer-name")
KNOWN = {name.encode(): {number: f"{name}-{number}" for number in range(5)} for name in NAMES}
COUNT_MAX = 100
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
chosen = st.dictionaries(
    st.sampled_from(NAMES), st.lists(st.integers(0, 4), unique=True, max_size=5), max_size=4
)
clients = st.sampled_from(("", "client", None))


def body(frame: bytes) -> memoryview:
    return memoryview(bytearray(frame))[4:]


def batch(records: bytes) -> bytes:
    """Bytes that are one record batch by their head."""
    size = struct.pack(">i", 49 + len(records))
    return bytes(8) + size + bytes(4) + b"\2" + bytes(44) + records


@st.composite
def produce_requests(draw: st.DrawFn) -> tuple[ProduceRequest, memoryview]:
    version = draw(st.integers(0, 3))
    sets = st.binary(max_size=20).map(batch if version >= 3 else bytes)
    topics = [
        ProduceTopic(name, [ProducePartition(n, draw(sets)) for n in numbers])
        for name, numbers in draw(chosen).items()
    ]
    request = ProduceRequest(draw(st.integers(-2, 3)), draw(int32), topics, version=version)
    if version >= 3:
        request.transactional_id = draw(clients)
    return request, body(encode_request(request, draw(int32), draw(clients)))


@st.composite
def fetch_requests(draw: st.DrawFn) -> tuple[FetchRequest, memoryview]:
    topics = [
        FetchTopic(name, [FetchPartition(n, draw(int64), draw(int32)) for n in numbers])
        for name, numbers in draw(chosen).items()
    ]
    version = draw(st.integers(0, 5))
    request = FetchRequest(draw(int32), draw(int32), draw(int32), topics, version=version)
    if version >= 3:
        request.max_bytes = draw(int32)
    if version >= 4:
        request.isolation_level = draw(st.sampled_from((0, 1)))
    for one in (one for topic in topics if version >= 5 for one in topic.partitions):
        one.log_start_offset = draw(int64)
    return request, body(encode_request(request, draw(int32), draw(clients)))


def correlation_id(payload: memoryview) -> int:
    found: int = struct.unpack_from(">i", payload, 4)[0]
    return found


@given(produce_requests(), st.data())
def test_a_produce_request_is_handled_as_by_the_codec(
    kernel: ModuleType, asked: tuple[ProduceRequest, memoryview], data: st.DataObject
) -> None:
    """The kernel reads the codec's fields and the places of its sets, if there are not too many; it
    writes the codec's response without errors."""
    request, payload = asked
    named = [(t.topic, p) for t in request.topics for p in t.partitions]
    read = kernel.read_produce(payload, KNOWN, COUNT_MAX)
    if named:
        acks, timeout_ms, found, starts, sizes = read
        assert (acks, timeout_ms) == (request.required_acks, request.timeout_ms)
        assert found == [f"{topic}-{p.partition}" for topic, p in named]
        sets = [payload[at : at + size] for at, size in zip(starts, sizes, strict=True)]
        assert sets == [p.message_set for _, p in named]
        assert kernel.read_produce(payload, KNOWN, len(named)) == read
        assert kernel.read_produce(payload, KNOWN, len(named) - 1) is None
    else:
        assert read is None
    offsets = data.draw(st.lists(int64, min_size=len(named), max_size=len(named)))
    times = data.draw(st.lists(int64, min_size=len(named), max_size=len(named)))
    results = iter(zip(offsets, times, strict=True))
    response = ProduceResponse(
        [
            ProduceTopicResponse(
                t.topic,
                [ProducePartitionResponse(p.partition, 0, *next(results)) for p in t.partitions],
            )
            for t in request.topics
        ]
    )
    expected = encode_response(response, correlation_id(payload), request.version)
    assert kernel.write_produced(payload, offsets, times) == expected
    without_times = kernel.write_produced(payload, offsets, [-1] * len(named))
    assert kernel.write_produced(payload, offsets) == without_times


@given(fetch_requests(), st.data())
def test_a_fetch_request_is_handled_as_by_the_codec(
    kernel: ModuleType, asked: tuple[FetchRequest, memoryview], data: st.DataObject
) -> None:
    """The kernel reads the codec's fields, and writes the codec's response with the sets between
    its pieces; that to a reader of committed messages has last stable offsets, and an empty list of
    aborted transactions."""
    request, payload = asked
    named = [(t.topic, p) for t in request.topics for p in t.partitions]
    read = kernel.read_fetch(payload, KNOWN)
    if not named:
        assert read is None
        return
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, *lists = read
    found, offsets, limits, log_starts = lists
    assert (replica_id, max_wait_ms) == (request.replica_id, request.max_wait_ms)
    assert (min_bytes, max_bytes) == (request.min_bytes, request.max_bytes)
    assert isolation_level == request.isolation_level
    assert found == [f"{topic}-{p.partition}" for topic, p in named]
    assert (offsets, limits) == ([p.offset for _, p in named], [p.max_bytes for _, p in named])
    count = len(named)
    has_starts = replica_id >= 0 and request.version >= 5
    assert log_starts == ([p.log_start_offset for _, p in named] if has_starts else None)
    marks = data.draw(st.lists(int64, min_size=count, max_size=count))
    sets = data.draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
    starts = data.draw(st.lists(int64, min_size=count, max_size=count))
    stable = data.draw(st.lists(int64, min_size=count, max_size=count)) if isolation_level else None
    aborted: list[AbortedTransaction] | None = [] if isolation_level else None
    results = iter(zip(marks, sets, stable or [-1] * count, starts, strict=True))

    def partition_of(number: int) -> FetchPartitionResponse:
        mark, data, stable_offset, start = next(results)
        return FetchPartitionResponse(number, 0, mark, data, stable_offset, aborted, start)

    response = FetchResponse(
        [
            FetchTopicResponse(t.topic, [partition_of(p.partition) for p in t.partitions])
            for t in request.topics
        ]
    )
    pieces = kernel.write_fetched(payload, marks, [len(s) for s in sets], starts, stable)
    full = [s for s in sets if s]
    frame = b"".join(piece + (full[n] if n < len(full) else b"") for n, piece in enumerate(pieces))
    assert frame == encode_response(response, correlation_id(payload), request.version)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("level", [2, 0x7F, 0x80, 0xFF])
def test_an_unknown_isolation_level_is_left_to_the_codec(
    kernel: ModuleType, version: int, level: int
) -> None:
    """Which refuses it."""
    topics = [FetchTopic("a", [FetchPartition(0, 0, 1)])]
    request = FetchRequest(-1, 0, 1, topics, max_bytes=-2, isolation_level=1, version=version)
    payload = body(encode_request(request, 1, ""))
    assert 1 == kernel.read_fetch(payload, KNOWN)[4]
    at = bytes(payload).index(struct.pack(">ib", -2, 1)) + 4
    payload[at] = level
    assert kernel.read_fetch(payload, KNOWN) is None


def test_each_partition_has_a_last_stable_offset(kernel: ModuleType) -> None:
    """Or none has."""
    topics = [FetchTopic("a", [FetchPartition(n, 0, 1) for n in (0, 1)])]
    request = FetchRequest(-1, 0, 1, topics, isolation_level=1, version=5)
    payload = body(encode_request(request, 1, ""))
    for stable in ([], [0], [0, 0, 0]):
        with pytest.raises(ValueError, match="last stable offsets"):
            kernel.write_fetched(payload, [0, 0], [0, 0], [0, 0], stable)


@pytest.mark.parametrize(
    "request_",
    [
        ProduceRequest(1, 1, [ProduceTopic("a", [ProducePartition(9, b"")])]),
        ProduceRequest(1, 1, [ProduceTopic("unknown", [ProducePartition(0, b"")])]),
        ProduceRequest(1, 1, [ProduceTopic("a", [ProducePartition(0, b"")] * 2)]),
        ProduceRequest(1, 1, [ProduceTopic("a", [ProducePartition(n, b"")]) for n in (0, 1)]),
    ],
)
def test_unknown_and_repeated_partitions_are_left_to_the_codec(
    kernel: ModuleType, request_: ProduceRequest
) -> None:
    """So is a repeated topic, since a response has each topic once."""
    payload = body(encode_request(request_, 1, ""))
    assert kernel.read_produce(payload, KNOWN, COUNT_MAX) is None


@pytest.mark.parametrize(
    "set_", [b"", batch(b"")[:-1], batch(b"") + b"x", batch(b"") * 2, b"\0" * 61]
)
def test_sets_of_version_3_that_are_not_one_batch_are_left_to_the_codec(
    kernel: ModuleType, set_: bytes
) -> None:
    """None, cut, with more behind it, two, or one of an older format; one batch is read."""
    for one, is_read in ((batch(b"x"), True), (set_, False)):
        request = ProduceRequest(1, 1, [ProduceTopic("a", [ProducePartition(0, one)])], version=3)
        read = kernel.read_produce(body(encode_request(request, 1, "")), KNOWN, COUNT_MAX)
        assert is_read == (read is not None)


@given(st.one_of(produce_requests(), fetch_requests()), st.data())
def test_both_kernels_read_broken_requests_alike(
    asked: tuple[ProduceRequest | FetchRequest, memoryview], data: st.DataObject
) -> None:
    """A request that is cut anywhere or has a changed byte is read, and responded to, alike by both
    kernels."""
    native = native_or_skip()
    broken = bytearray(asked[1])
    if data.draw(st.booleans()):
        del broken[data.draw(st.integers(0, len(broken))) :]
    elif broken:
        broken[data.draw(st.integers(8, len(broken) - 1))] = data.draw(st.integers(0, 255))
    payload = memoryview(broken)
    produced = [kernel.read_produce(payload, KNOWN, COUNT_MAX) for kernel in (native, _python)]
    fetched = [kernel.read_fetch(payload, KNOWN) for kernel in (native, _python)]
    for (ours, theirs), name in ((produced, "write_produced"), (fetched, "write_fetched")):
        assert ours == theirs
        if ours is None:
            continue  # it is answered without the kernel
        for count in (0, 1, 3):
            numbers = list(range(count))
            lists = [numbers] * (4 if name == "write_fetched" and data.draw(st.booleans()) else 2)
            assert outcome(native, name, payload, lists) == outcome(_python, name, payload, lists)


def outcome(kernel: ModuleType, name: str, payload: memoryview, lists: list[list[int]]) -> object:
    try:
        return getattr(kernel, name)(payload, *lists)
    except (ValueError, OverflowError, struct.error) as error:
        return ValueError if isinstance(error, ValueError | struct.error) else type(error)


def test_a_response_too_large_for_a_frame_is_refused(kernel: ModuleType) -> None:
    """Sizes whose sum exceeds an int32."""
    partitions = [FetchPartition(n, 0, 1) for n in range(3)]
    payload = body(encode_request(FetchRequest(-1, 0, 0, [FetchTopic("a", partitions)]), 1, ""))
    with pytest.raises(OverflowError):
        kernel.write_fetched(payload, [0, 0, 0], [1 << 30, 1 << 30, 0])


@given(fetch_requests(), st.data())
def test_a_fetch_response_is_read_as_by_the_codec(
    kernel: ModuleType, asked: tuple[FetchRequest, memoryview], data: st.DataObject
) -> None:
    """Both kernels read the codec's bytes, also with the fields of versions 4 and 5. A response
    that is cut anywhere is left to the codec."""
    request, _ = asked
    version = data.draw(st.sampled_from((request.version, 4, 5)))
    aborted = st.none() | st.lists(st.builds(AbortedTransaction, int64, int64), max_size=2)
    named = [(t.topic, p.partition) for t in request.topics for p in t.partitions]
    count = len(named)
    codes = data.draw(st.lists(st.integers(-1, 20), min_size=count, max_size=count))
    marks = data.draw(st.lists(int64, min_size=count, max_size=count))
    sets = data.draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
    starts = data.draw(st.lists(int64, min_size=count, max_size=count))
    results = iter(zip(codes, marks, sets, starts, strict=True))

    def partition_of(number: int) -> FetchPartitionResponse:
        code, mark, sets_of, start = next(results)
        gone = data.draw(aborted)
        return FetchPartitionResponse(
            number, code, mark, sets_of, aborted=gone, log_start_offset=start
        )

    response = FetchResponse(
        [
            FetchTopicResponse(t.topic, [partition_of(p.partition) for p in t.partitions])
            for t in request.topics
        ]
    )
    written = body(encode_response(response, 1, version))
    found = [f"{topic}-{number}" for topic, number in named]
    read = kernel.read_fetched(written, version, KNOWN)
    assert read == (found, codes, marks, starts if version >= 5 else [-1] * count, sets)
    cut = written[: data.draw(st.integers(0, len(written) - 1))]
    assert kernel.read_fetched(cut, version, KNOWN) is None
    assert kernel.read_fetched(written, version, {}) in (None, ([], [], [], [], []))
