"""Sets as a leader of 0.10.2 takes them, held against those that a live 0.10.2.2 was sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import (
    ApiError,
    InvalidMessage,
    InvalidTimestamp,
    KafkaError,
    MessageSizeTooLarge,
)
from kafka08.kernel import Rules, build_set, entries, wrap
from kafka08.protocol import compression, message_set, validation
from kafka08.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from kafka08.protocol.message_set import PreparedSet
from tests import strategies

DATA = Path(__file__).parent.parent / "data"
NOW = 1_795_308_211_973
"""About when the captures were made; of sets that it stamped the response has the exact time."""
LIMIT = 1_000_012
THREE: list[tuple[bytes | None, bytes | None]] = [(b"k", b"value"), (b"l", b"x" * 10), (b"", None)]
TIMES = [5, 9, 7]
APPENDED = Rules(log_append_time=True)

each_codec = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=compression.CODECS.get)


class Produced(NamedTuple):
    """One captured set, and what 0.10.2.2 answered."""

    name: str
    topic: str
    message_set: bytes
    error_code: int
    offset: int
    append_time_ms: int


APPEND_TIME_TOPICS = {"b-lplain", "b-lgzip", "b-lsnappy", "b-llz4"}
TOPIC_CODECS = {"b-ct-gzip": GZIP, "b-ct-unc": NONE}
REFUSED_BY_US = "produce-magic2-byte"
"""0.10.2.2 takes a message of magic 2 for one of magic 1; see docs/compatibility.md."""
NOT_THE_SET = {"produce-acks2", "produce-acks-2", "produce-internal", "produce-unknown"}
"""Refused for what the request says."""


def produced() -> Iterator[Produced]:
    for exchange in json.loads((DATA / "0.10-api-data.json").read_text()):
        if not exchange["name"].startswith("produce-") or exchange["name"] in NOT_THE_SET:
            continue
        (topic,) = exchange["request"]["body"]["topics"]
        (part,) = topic["parts"]
        (answered,) = exchange["response"]["body"]["topics"][0]["parts"]
        yield Produced(
            exchange["name"],
            topic["topic"],
            bytes.fromhex(part["set"]["hex"]),
            answered["err"],
            answered["offset"],
            answered.get("ts", -1),
        )


PRODUCED = list(produced())


def rules_of(topic: str) -> Rules:
    """The configuration of the captured topics."""
    return Rules(
        magic=0 if topic.startswith("b-m0") else 1,
        log_append_time=topic in APPEND_TIME_TOPICS,
        max_difference_ms=60_000 if topic == "b-diff" else Rules().max_difference_ms,
        keys_required=topic == "b-cmp",
    )


def prepare_produced(one: Produced) -> PreparedSet:
    """As the captured leader was asked to, at the offset that it gave."""
    now_ms = one.append_time_ms if one.append_time_ms != -1 else NOW
    return validation.prepare(
        bytearray(one.message_set),
        max(0, one.offset),
        now_ms,
        rules_of(one.topic),
        LIMIT,
        1 << 30,
        TOPIC_CODECS.get(one.topic),
    )


@pytest.mark.parametrize("one", PRODUCED, ids=[one.name for one in PRODUCED])
def test_response_is_that_of_0_10_2_2(one: Produced) -> None:
    """The response has the same error code, or the same first offset."""
    if one.error_code or one.name == REFUSED_BY_US:
        with pytest.raises(ApiError) as raised:
            prepare_produced(one)
        assert (one.error_code or InvalidMessage.code) == raised.value.code
    else:
        assert one.offset == prepare_produced(one).first_offset


def stored(topic: str) -> bytes:
    """The content of the log after all captured sets of a topic."""
    sets = (one for one in PRODUCED if one.topic == topic and not one.error_code)
    taken = (prepare_produced(one) for one in sets if one.name != REFUSED_BY_US)
    return b"".join(bytes(prepared.data) for prepared in taken)


LOGS = {
    name.removesuffix("-0"): bytes.fromhex(log["hex"])
    for name, log in json.loads((DATA / "0.10-logs.json").read_text()).items()
}
IN_PLACE = ["b-plain", "b-snappy", "b-lplain", "b-lgzip", "b-lsnappy", "b-llz4", "b-ct-unc", "b-m0"]


@pytest.mark.parametrize("topic", IN_PLACE)
def test_log_is_that_of_0_10_2_2(topic: str) -> None:
    """The log is equal byte for byte, unless a codec of ours compressed a set again."""
    assert LOGS[topic] == stored(topic)


@pytest.mark.parametrize("topic", sorted(LOGS.keys() - set(IN_PLACE)))
def test_log_has_the_messages_of_0_10_2_2(topic: str) -> None:
    """Entries have the same offsets, timestamps and attributes, and wrappers the same bytes
    inside."""
    expected = [shown for shown in map(show, entries(LOGS[topic])) if shown[-1] != b"magic-2"]
    if topic == "b-misc":
        expected = [shown for shown in expected if shown[0] != MAGIC_2_OFFSET]
    assert expected == [show(entry) for entry in entries(stored(topic))]


MAGIC_2_OFFSET = 2
"""Of REFUSED_BY_US in b-misc."""


def show(entry: Any) -> tuple[Any, ...]:
    fields = entry.offset, entry.magic, entry.attributes, entry.timestamp_ms, entry.key
    if entry.codec:
        return *fields, bytes(message_set.unpack(entry.codec, entry.value))
    return *fields, entry.crc, entry.value


# ---- wrappers ----


def wrapped(
    codec: int, offset: int = 2, timestamp_ms: int = 9, inner: bytes | None = None
) -> bytes:
    inner = bytes(build_set(THREE, 0, 0, 1, TIMES)) if inner is None else inner
    return bytes(wrap(compression.compress(codec, inner, 1), offset, codec, 1, timestamp_ms))


def prepare(data: bytes, rules: Rules = Rules(), **options: Any) -> PreparedSet:
    chosen = {"max_message_bytes": LIMIT, "max_set_bytes": 1 << 30} | options
    return validation.prepare(bytearray(data), 100, NOW, rules, **chosen)


@each_codec
@pytest.mark.parametrize("offset", [2, 0], ids=["java", "librdkafka"])
def test_numbered_wrapper_is_not_packed_again(codec: int, offset: int) -> None:
    """Offset and largest timestamp are set in place; the contents keep their bytes."""
    data = bytearray(wrapped(codec, offset, timestamp_ms=-1))
    prepared = validation.prepare(data, 100, NOW, Rules(), LIMIT, 1 << 30)
    assert wrapped(codec, 102) == bytes(prepared.data) == data
    assert (100, 102, 3, codec, 9, 102) == (
        prepared.first_offset,
        prepared.last_offset,
        prepared.count,
        prepared.codec,
        prepared.max_timestamp_ms,
        prepared.max_timestamp_offset,
    )


@each_codec
def test_append_time_of_a_wrapper(codec: int) -> None:
    """The wrapper has the broker's time and type, the time index its offset."""
    prepared = prepare(wrapped(codec), APPENDED)
    (entry,) = entries(prepared.data, verify_crc=True)
    assert (NOW, 1, codec) == (entry.timestamp_ms, entry.timestamp_type, entry.codec)
    assert (NOW, 102) == (prepared.max_timestamp_ms, prepared.max_timestamp_offset)
    assert wrapped(codec)[26:] == bytes(prepared.data)[26:]


@each_codec
@given(pairs=strategies.pairs, first=st.integers(0, 3), gap=st.booleans(), tail=st.booleans())
def test_any_wrapper(codec: int, pairs: list[Any], first: int, gap: bool, tail: bool) -> None:
    """Whatever its inner offsets, the log has the same messages, numbered from the log end."""
    pairs = [*pairs, (b"last", b"")]
    times = list(range(len(pairs)))
    inner = bytes(build_set(pairs[:-1], first, 0, 1, times[:-1]))
    inner += bytes(build_set(pairs[-1:], first + len(pairs) - 1 + gap, 0, 1, times[-1:]))
    data = wrapped(codec, 50, inner=inner + b"tail" * tail)
    prepared = prepare(data)
    found = [
        (message.offset, message.key, message.value, message.timestamp)
        for message in message_set.decode(prepared.data)
    ]
    assert [(100 + i, *pair, i) for i, pair in enumerate(pairs)] == found
    assert (len(pairs), times[-1]) == (prepared.count, prepared.max_timestamp_ms)
    (entry,) = entries(prepared.data, verify_crc=True)
    assert build_set(pairs, 0, 0, 1, times) == message_set.unpack(codec, entry.value or b"")


def test_empty_wrapper() -> None:
    """An empty wrapper gets -1, as from 0.10.2.2."""
    for inner in (b"", b"x" * 11):
        with pytest.raises(ApiError) as raised:
            prepare(wrapped(GZIP, inner=inner))
        assert raised.value.code == -1


def test_wrappers_share_the_budget() -> None:
    """One limit applies to a whole set."""
    inner = len(build_set(THREE, 0, 0, 1, TIMES))
    assert prepare(wrapped(GZIP) * 2, max_unpacked_bytes=2 * inner).count == 6
    with pytest.raises(ApiError, match="more than"):
        prepare(wrapped(GZIP) * 2, max_unpacked_bytes=2 * inner - 1)


def test_size_is_checked_again_after_packing() -> None:
    """Two small wrappers can make one that is too large."""
    noise = [(None, bytes(range(i, i + 100))) for i in range(20)]
    half = wrapped(GZIP, 19, inner=bytes(build_set(noise, magic=1)))
    assert prepare(half, max_message_bytes=len(half)).count == 20
    with pytest.raises(MessageSizeTooLarge):
        prepare(half + wrapped(GZIP), max_message_bytes=len(half))
    plain = bytes(build_set(THREE))
    assert prepare(plain, max_message_bytes=45).count == 3
    with pytest.raises(MessageSizeTooLarge):
        prepare(plain, max_message_bytes=44)


# ---- conversion ----


def test_magic_0_into_a_topic_of_magic_1() -> None:
    """Plain messages have no timestamp, or with LogAppendTime the broker's; the time index gets the
    last offset."""
    prepared = prepare(bytes(build_set(THREE)))
    assert build_set(THREE, 100, magic=1) == prepared.data
    assert (-1, -1) == (prepared.max_timestamp_ms, prepared.max_timestamp_offset)
    prepared = prepare(bytes(build_set(THREE)), APPENDED)
    assert build_set(THREE, 100, 8, 1, [NOW] * 3) == prepared.data
    assert (NOW, 102) == (prepared.max_timestamp_ms, prepared.max_timestamp_offset)


@each_codec
def test_compressed_magic_0_into_a_topic_of_magic_1(codec: int) -> None:
    """The result is one wrapper with relative offsets and no timestamp, or the broker's."""
    data = message_set.encode(THREE, codec)
    for rules, time in ((Rules(), -1), (APPENDED, NOW)):
        prepared = prepare(data, rules)
        (entry,) = entries(prepared.data, verify_crc=True)
        assert (102, 1, time) == (entry.offset, entry.magic, entry.timestamp_ms)
        inner = compression.decompress(codec, entry.value or b"", LIMIT, magic=1)
        assert build_set(THREE, magic=1) == inner


@each_codec
def test_magic_1_into_a_topic_of_magic_0(codec: int) -> None:
    """Timestamps go, a wrapper has absolute offsets, and the time index gets no entry."""
    old = Rules(magic=0)
    prepared = prepare(bytes(build_set(THREE, 0, 0, 1, TIMES)), old)
    assert build_set(THREE, 100) == prepared.data
    prepared = prepare(wrapped(codec), old)
    (entry,) = entries(prepared.data, verify_crc=True)
    assert (102, 0) == (entry.offset, entry.magic)
    inner = compression.decompress(codec, entry.value or b"", LIMIT, strict=True)
    assert build_set(THREE, 100) == inner
    assert (-1, -1) == (prepared.max_timestamp_ms, prepared.max_timestamp_offset)


def test_codec_of_the_topic() -> None:
    """With a compression.type other than "producer" plain sets are compressed, and wrappers
    compressed again."""
    plain = bytes(build_set(THREE, 0, 0, 1, TIMES))
    for data in (plain, wrapped(SNAPPY)):
        prepared = prepare(data, APPENDED, target_codec=GZIP)
        (entry,) = entries(prepared.data, verify_crc=True)
        assert (GZIP, NOW, 1) == (entry.codec, entry.timestamp_ms, entry.timestamp_type)
        assert plain == message_set.unpack(GZIP, entry.value or b"")
    prepared = prepare(wrapped(GZIP), target_codec=NONE)
    assert build_set(THREE, 100, 0, 1, TIMES) == prepared.data
    assert (9, 101) == (prepared.max_timestamp_ms, prepared.max_timestamp_offset)


# ---- whatever comes ----


@given(data=st.binary(max_size=120), magic=st.integers(0, 1))
def test_noise_is_a_clean_error(data: bytes, magic: int) -> None:
    """Any bytes are accepted or raise an error of the table."""
    try:
        prepare(data, Rules(magic=magic))
    except ApiError:
        pass


@each_codec
def test_every_byte_flipped_and_every_cut(codec: int) -> None:
    """A damaged wrapper or message inside is refused, or the stored messages can be read; a cut
    entry is left out."""
    data = wrapped(codec)
    inner = bytes(build_set(THREE, 0, 0, 1, TIMES))
    for size in range(len(data)):
        assert prepare(data[:size]).count == 0
    damaged = [flipped(data, position) for position in range(12, len(data))]
    damaged += [wrapped(codec, inner=flipped(inner, at)) for at in range(len(inner))]
    for one in damaged:
        try:
            prepared = prepare(one)
        except ApiError:
            continue
        assert prepared.count == len(list(message_set.decode(prepared.data)))


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


def test_producer_may_not_set_a_wrappers_append_time() -> None:
    """A wrapper that its producer marked LogAppendTime is refused, unless timestamps are
    dropped."""
    data = bytes(wrap(compression.compress(GZIP, build_set(THREE, magic=1)), 2, GZIP, 1, 5, True))
    with pytest.raises(InvalidTimestamp):
        prepare(data)
    assert prepare(data, Rules(magic=0)).count == 3


@given(
    values=st.lists(st.one_of(st.none(), st.binary(max_size=30)), max_size=5),
    cut=st.integers(0, 20),
    damaged=st.integers(0, 300),
    most=st.sampled_from([60, 68, 1 << 20]),
)
def test_old_producers_sets_take_the_fast_path(
    values: list[bytes | None], cut: int, damaged: int, most: int
) -> None:
    """Sets of magic 0, cut and damaged ones too, give the result or error of the full path."""
    data = bytearray(message_set.encode([(b"k", value) for value in values], 0, 9))
    del data[len(data) - min(cut, len(data)) :]
    if damaged < len(data):
        data[damaged] ^= 1

    def outcome() -> object:
        copy = bytearray(data)
        try:
            made = validation.prepare(copy, 70, 1000, Rules(), most, 1 << 20)
        except KafkaError as error:
            return type(error), str(error)
        return replace(made, data=bytes(made.data))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "_with_magic_1", lambda *arguments: None)
        long_way = outcome()
    assert long_way == outcome()
