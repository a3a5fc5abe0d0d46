"""Message sets as producers make them, leaders take them and readers get them."""

from __future__ import annotations

import json
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import (
    ApiError,
    InvalidMessage,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    UnknownError,
)
from kafka08.kernel import build_set, entries, wrap
from kafka08.kernel.types import MAX_NESTING
from kafka08.protocol import compression, message_set
from kafka08.protocol.codec import decode_request
from kafka08.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.types import Buffer
from tests import strategies

DATA = Path(__file__).parent.parent / "data"
LIMIT = 1_000_012
THREE: list[tuple[bytes | None, bytes | None]] = [(b"k", b"value"), (None, b"x" * 10), (b"", None)]
Row = tuple[int, bytes | None, bytes | None]

each_codec = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=compression.CODECS.get)


def read(data: Buffer, from_offset: int = 0) -> list[Row]:
    return [(m.offset, m.key, m.value) for m in message_set.decode(data, from_offset)]


def numbered(base_offset: int, pairs: list[Any] = THREE) -> list[Row]:
    return [(offset, key, value) for offset, (key, value) in enumerate(pairs, base_offset)]


def prepare(data: bytes, base_offset: int = 100, **limits: Any) -> message_set.PreparedSet:
    """`prepare` of a copy, without limits but those given."""
    chosen: dict[str, Any] = {"max_message_bytes": LIMIT, "max_set_bytes": 1 << 30} | limits
    return message_set.prepare(bytearray(data), base_offset, **chosen)


def pack_set(codec: int, inner: bytes | bytearray, offset: int = 0) -> bytes:
    return bytes(wrap(compression.compress(codec, inner), offset, codec))


# ---- making and reading ----


@given(
    pairs=strategies.pairs,
    codec=st.sampled_from([NONE, GZIP, SNAPPY, LZ4]),
    base_offset=st.integers(0, 1 << 40),
)
def test_there_and_back(pairs: list[Any], codec: int, base_offset: int) -> None:
    """With every codec messages are read as they were written, from the first or a later one."""
    data = message_set.encode(pairs, codec, base_offset)
    assert numbered(base_offset, pairs) == read(data)
    assert numbered(base_offset, pairs)[1:] == read(data, base_offset + 1)


@each_codec
def test_compressed_set_is_one_wrapper(codec: int) -> None:
    """The wrapper has the last offset and a null key, as the JVM's producers send it."""
    (wrapper,) = entries(message_set.encode(THREE, codec, 5), verify_crc=True)
    assert (7, codec, None) == (wrapper.offset, wrapper.attributes, wrapper.key)
    assert message_set.unpack(codec, wrapper.value or b"") == build_set(THREE, 5)


def test_empty_set() -> None:
    """No messages are no bytes, compressed or not: there is no empty wrapper."""
    for codec in (NONE, GZIP):
        assert message_set.encode([], codec) == b""
    assert read(b"") == []


@each_codec
def test_begins_compressed(codec: int) -> None:
    """The first entry alone decides; a set too short to have one is not compressed."""
    wrapped, plain = message_set.encode(THREE, codec), message_set.encode(THREE)
    assert message_set.begins_compressed(wrapped + plain)
    assert not message_set.begins_compressed(plain + wrapped)
    assert not message_set.begins_compressed(wrapped[:17])


# ---- a leader: uncompressed sets ----


def test_plain_set_is_numbered_in_place() -> None:
    """Numbering copies nothing: the result is the caller's buffer."""
    buffer = bytearray(build_set(THREE))
    prepared = message_set.prepare(buffer, 100, LIMIT, LIMIT)
    assert prepared.data is buffer
    assert (100, 102, 3, NONE, 94) == (
        prepared.first_offset,
        prepared.last_offset,
        prepared.count,
        prepared.codec,
        prepared.size,
    )
    assert numbered(100) == read(prepared.data)


def test_partial_entry_is_cut_off() -> None:
    """The stored set ends with the last whole entry."""
    prepared = prepare(bytes(build_set(THREE)) + bytes(build_set(THREE))[:20])
    assert (94, 3) == (prepared.size, prepared.count)
    assert build_set(THREE, 100) == prepared.data


@pytest.mark.parametrize("data", [b"", b"x" * 11, bytes(build_set(THREE))[:20]])
def test_a_set_without_a_whole_entry(data: bytes) -> None:
    """It gets error 0 and offset -1, like an empty set."""
    prepared = prepare(data)
    assert (0, -1, -1, 0) == (
        prepared.count,
        prepared.first_offset,
        prepared.last_offset,
        prepared.size,
    )


def test_bad_crc() -> None:
    """An entry with a wrong CRC makes the whole set InvalidMessage."""
    with pytest.raises(InvalidMessage):
        prepare(bytes(build_set(THREE))[:-1] + b"x")


@pytest.mark.parametrize("size", [13, -1])
def test_impossible_size(size: int) -> None:
    """An entry whose size is less than a header's is InvalidMessage."""
    with pytest.raises(InvalidMessage):
        prepare(bytes(build_set(THREE)) + pack(">qi", 0, size))


def test_entry_limit_counts_its_header() -> None:
    """max.message.bytes limits offset, size and message together; a larger entry refuses the whole
    set."""
    assert prepare(bytes(build_set(THREE)), max_message_bytes=36).count == 3
    with pytest.raises(MessageSizeTooLarge):
        prepare(bytes(build_set(THREE)), max_message_bytes=35)


def test_set_limit() -> None:
    """segment.bytes limits the bytes to be written, without a partial entry."""
    data = bytes(build_set(THREE))
    assert prepare(data + data[:20], max_set_bytes=94).count == 3
    with pytest.raises(MessageSetSizeTooLarge):
        prepare(data, max_set_bytes=93)


def test_magic_and_upper_attribute_bits_are_stored_as_they_are() -> None:
    """0.8: the leader checks neither and stores both."""
    data = bytes(build_set([(None, b"x")], attributes=0x78))
    assert build_set([(None, b"x")], 100, attributes=0x78) == prepare(data).data


# ---- a leader: compressed sets ----


@each_codec
def test_compressed_set_is_numbered_inside(codec: int) -> None:
    """The result is one wrapper with the last offset; the messages keep their bytes."""
    prepared = prepare(message_set.encode(THREE, codec))
    (wrapper,) = entries(prepared.data, verify_crc=True)
    assert (102, codec, None, 0) == (
        wrapper.offset,
        wrapper.attributes,
        wrapper.key,
        wrapper.magic,
    )
    inner = compression.decompress(codec, wrapper.value or b"", LIMIT, strict=True)
    assert inner == build_set(THREE, 100)
    assert (100, 102, 3, codec) == (
        prepared.first_offset,
        prepared.last_offset,
        prepared.count,
        prepared.codec,
    )


def test_everything_goes_into_one_wrapper_of_the_last_codec() -> None:
    """Plain entries between wrappers go inside, and nested wrappers are flattened."""
    nested = pack_set(LZ4, bytes(build_set(THREE)) + pack_set(GZIP, build_set(THREE)))
    data = bytes(build_set(THREE)) + nested + pack_set(SNAPPY, build_set(THREE))
    prepared = prepare(data + bytes(build_set(THREE)))
    (wrapper,) = entries(prepared.data, verify_crc=True)
    assert (SNAPPY, 114) == (wrapper.codec, wrapper.offset)
    assert numbered(100, THREE * 5) == read(prepared.data)


@given(
    parts=st.lists(
        st.tuples(st.lists(st.sampled_from([GZIP, SNAPPY, LZ4]), max_size=3), strategies.pairs),
        max_size=4,
    )
)
def test_any_mixture(parts: list[tuple[list[int], list[Any]]]) -> None:
    """From any nesting the result has every message once, in order, with consecutive offsets."""
    data = b""
    for codecs, pairs in parts:
        layer = bytes(build_set(pairs))
        for codec in codecs:
            layer = pack_set(codec, layer)
        data += layer
    prepared = prepare(data)
    assert numbered(100, [pair for _, pairs in parts for pair in pairs]) == read(prepared.data)


def test_wrapper_without_messages() -> None:
    """0.8: no bytes are written, and the response has error 0 and the log end offset."""
    prepared = prepare(pack_set(GZIP, b""))
    assert (0, 100, 99, 0) == (
        prepared.count,
        prepared.first_offset,
        prepared.last_offset,
        prepared.size,
    )


def test_partial_entry_inside_a_wrapper_is_cut_off() -> None:
    """The wrapper is compressed again with its whole entries."""
    prepared = prepare(pack_set(GZIP, build_set(THREE)[:-1]))
    assert numbered(100)[:2] == read(prepared.data)


def test_inner_crcs_are_not_checked() -> None:
    """0.8: a leader checks the wrapper's CRC alone and stores the inner bytes unchanged."""
    inner = build_set(THREE)
    inner[-1] ^= 1
    assert prepare(pack_set(GZIP, inner)).count == 3


def test_impossible_size_inside_a_wrapper() -> None:
    """An inner entry whose size is less than a header's is InvalidMessage too."""
    with pytest.raises(InvalidMessage):
        prepare(pack_set(GZIP, pack(">qi", 0, 13) + bytes(20)))


def test_wrapper_crc_is_checked() -> None:
    """A wrapper with a wrong CRC is InvalidMessage and is not unpacked."""
    with pytest.raises(InvalidMessage):
        prepare(pack_set(GZIP, build_set(THREE))[:-1] + b"x")


@pytest.mark.parametrize("codec", [4, 5, 6, 7])
def test_unknown_codec(codec: int) -> None:
    """It is refused in an outer entry and inside a wrapper."""
    unknown = bytes(wrap(b"x", 0, codec))
    with pytest.raises(UnknownError):
        prepare(unknown)
    with pytest.raises(UnknownError):
        prepare(pack_set(GZIP, unknown))


@pytest.mark.parametrize(
    "entry",
    [
        bytes(wrap(b"no gzip", 0, GZIP)),
        bytes(wrap(b"", 0, GZIP)),
        bytes(build_set([(None, None)], attributes=GZIP)),
        bytes(build_set([(b"k" * 20, None)], attributes=GZIP)),
    ],
)
def test_wrapper_that_cannot_be_unpacked(entry: bytes) -> None:
    """A wrapper that is damaged, empty or without a value, with a key or without, is
    UnknownError."""
    with pytest.raises(UnknownError):
        prepare(entry)


def test_key_of_a_wrapper_is_dropped() -> None:
    """The new wrapper has no key; the messages inside keep theirs."""
    value = compression.compress(GZIP, build_set(THREE))
    prepared = prepare(bytes(build_set([(b"key", value)], attributes=GZIP)))
    (wrapper,) = entries(prepared.data)
    assert wrapper.key is None
    assert numbered(100) == read(prepared.data)


def test_standard_lz4_header_checksum_is_refused() -> None:
    """0.8: its reader requires its own wrong checksum."""
    value = bytearray(compression.compress(LZ4, build_set(THREE)))
    value[6] = 0x82
    with pytest.raises(UnknownError, match="header checksum"):
        prepare(bytes(wrap(value, 0, LZ4)))


@each_codec
def test_limits_hold_again_after_repacking(codec: int) -> None:
    """Three small wrappers can make one above max.message.bytes, or above segment.bytes."""
    noise = [(None, compression.compress(GZIP, str(i).encode() * 9)) for i in range(30)]
    data = b"".join(message_set.encode(noise[i : i + 10], codec) for i in (0, 10, 20))
    largest = max(entry.entry_size for entry in entries(data))
    assert prepare(data).count == 30
    with pytest.raises(MessageSizeTooLarge):
        prepare(data, max_message_bytes=largest)
    with pytest.raises(MessageSetSizeTooLarge):
        prepare(data, max_set_bytes=largest)


@each_codec
def test_bombs(codec: int) -> None:
    """One limit applies to all that a set unpacks to, in adjacent and nested wrappers."""
    mega = pack_set(codec, build_set([(None, bytes(1 << 20))]))
    prepared = prepare(mega, max_unpacked_bytes=(1 << 20) + 26)
    assert prepared.count == 1
    for bomb in (mega * 3, pack_set(GZIP, mega * 3)):
        with pytest.raises(UnknownError, match="more than"):
            prepare(bomb, max_unpacked_bytes=2 << 20)


def test_endless_nesting() -> None:
    """MAX_NESTING levels are accepted; one more is UnknownError."""
    data = bytes(build_set(THREE))
    for _ in range(MAX_NESTING):
        data = pack_set(GZIP, data)
    assert prepare(data).count == 3
    with pytest.raises(UnknownError, match="levels"):
        prepare(pack_set(GZIP, data))


# ---- damage ----


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4], ids=compression.CODECS.get)
def test_cut_and_flipped_anywhere(codec: int) -> None:
    """A damaged set gives a leader fewer messages or a protocol error; the kernel's tests have the
    same for consumers."""
    data = message_set.encode(THREE, codec) + message_set.encode(THREE[:1])
    for size in range(len(data)):
        assert prepare(data[:size]).count <= 4
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x81
        try:
            assert prepare(bytes(damaged)).count <= 4
        except ApiError:
            pass


@given(inner=st.binary(max_size=80), codec=st.sampled_from([GZIP, SNAPPY, LZ4]))
def test_noise_inside_a_wrapper(inner: bytes, codec: int) -> None:
    """Any bytes inside are accepted or raise a protocol error."""
    for data in (pack_set(codec, inner), bytes(wrap(inner, 0, codec))):
        try:
            prepare(data, max_unpacked_bytes=10_000)
        except ApiError:
            pass


# ---- captured ----


def captured_produce() -> list[tuple[str, bytes, int]]:
    """(name, message set, error code) of each partition that the live broker answered."""
    found = []
    for exchange in json.loads((DATA / "api-0.8.2.2.json").read_text()):
        if exchange.get("api_key") != 0 or exchange["api_version"] or "response" not in exchange:
            continue
        _, request = decode_request(bytearray.fromhex(exchange["request_hex"])[4:])
        assert isinstance(request, ProduceRequest)
        responses = exchange["response"]["body"]["topics"]
        for topic, response in zip(request.topics, responses, strict=True):
            for part, stated in zip(topic.partitions, response["parts"], strict=True):
                found.append((exchange["name"], bytes(part.message_set), stated["err"]))
    return found


OF_THE_SET = frozenset({0, 2, 10, -1})
"""Error codes that the set alone decides; the others are about topics and replicas."""
SMALL_LIMIT = 200
"""max.message.bytes of the topic in the exchanges about sizes."""


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [pytest.param(*case, id=case[0]) for case in captured_produce() if case[2] in OF_THE_SET],
)
def test_captured_produce_requests(name: str, data: bytes, code: int) -> None:
    """The captured sets are accepted and refused as by the live 0.8.2.2 broker, and read back
    completely."""
    small = any(word in name for word in ("too-large", "limit"))
    limit = SMALL_LIMIT if small else LIMIT
    if code:
        with pytest.raises(ApiError) as caught:
            prepare(data, max_message_bytes=limit)
        assert caught.value.code == code
        return
    prepared = prepare(data, max_message_bytes=limit)
    before = [(m.key, m.value) for m in message_set.decode(data)]
    assert before == [(m.key, m.value) for m in message_set.decode(prepared.data)]
    assert len(before) == prepared.count


def test_captured_produce_requests_cover_every_outcome() -> None:
    """The captures have each outcome, without which the test above would compare nothing."""
    codes = [code for _, _, code in captured_produce() if code in OF_THE_SET]
    assert {0, 2, 10, -1} == set(codes)
    assert len(codes) >= 25


def test_the_first_timestamp_is_in_the_first_bytes() -> None:
    """TIMESTAMP_END bytes suffice, also of a compressed set, whose wrapper has its newest; magic 0
    and a shorter set have none."""
    pairs: list[tuple[bytes | None, bytes | None]] = [(None, b"a" * 100), (b"k", None)]
    for codec, expected in ((compression.NONE, 7), (compression.GZIP, 9)):
        stamped = message_set.encode(pairs, codec, magic=1, timestamps=[7, 9])
        assert expected == message_set.first_timestamp(stamped[: message_set.TIMESTAMP_END])
        assert expected == message_set.first_timestamp(memoryview(stamped))
        cut = stamped[: message_set.TIMESTAMP_END - 1]
        assert -1 == message_set.first_timestamp(cut) == message_set.first_timestamp(b"")
    assert -1 == message_set.first_timestamp(message_set.encode(pairs, magic=1))
    assert -1 == message_set.first_timestamp(message_set.encode(pairs))
