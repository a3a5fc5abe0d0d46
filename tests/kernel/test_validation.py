"""A leader from 0.9 on validates messages, and writes offsets and timestamps into them."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ApiError
from kafka08.format import Message, batches
from kafka08.format.v2 import V2
from kafka08.kernel import _python
from kafka08.kernel.types import (
    CREATE_TIME,
    OTHER_MAGIC_BIT,
    BadTimestamp,
    CorruptMessage,
    EntryTooLarge,
    Rules,
    UnknownCodec,
)
from kafka08.protocol import compression, message_set
from kafka08.protocol.record_batches import compress, prepare
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import entry, plain, wrapper
from tests.protocol.test_record_batches import DAY_MS, PRODUCED, produced, rules_of

NOW = 1_500_000
LIMIT = 1 << 20
THREE = [(b"k", b"value"), (b"l", b"x" * 10), (b"", None)]
APPENDED = Rules(log_append_time=True)
NEAR = Rules(max_difference_ms=10)
COMPACTED = Rules(keys_required=True)
OLD = Rules(magic=0)


def stamped(*times: int, attributes: int = 0) -> bytearray:
    return bytearray(
        b"".join(
            entry(i, b"k", b"v", magic=1, timestamp_ms=time, attributes=attributes)
            for i, time in enumerate(times)
        )
    )


# ---- plain sets, where they lie ----


def test_plain_set_is_numbered_in_place(kernel: ModuleType) -> None:
    """With CreateTime offsets change and no other byte does."""
    data = stamped(5, 7, 6)
    summary = kernel.validate_and_stamp(data, 100, LIMIT, Rules(), NOW)
    expected = b"".join(
        entry(100 + i, b"k", b"v", magic=1, timestamp_ms=time) for i, time in enumerate((5, 7, 6))
    )
    assert expected == data
    assert (3, 100, 102, 0, 2) == (
        summary.count,
        summary.first_offset,
        summary.last_offset,
        summary.codec,
        summary.magics,
    )


def test_largest_timestamp_is_that_of_the_first_message_that_has_it(kernel: ModuleType) -> None:
    """The time index needs the first of equal timestamps; the result is -1 and -1 if no message has
    one."""
    for times, expected in (((5, 7, 7), (7, 101)), ((-1, -1), (-1, -1)), ((-1, 0), (0, 101))):
        summary = kernel.validate_and_stamp(stamped(*times), 100, LIMIT, Rules(), NOW)
        assert expected == (summary.max_timestamp_ms, summary.max_timestamp_offset)


def test_append_time_is_written_into_every_message(kernel: ModuleType) -> None:
    """LogAppendTime sets timestamp, type and CRC; the time index gets the first offset."""
    data = stamped(5, -1)
    summary = kernel.validate_and_stamp(data, 100, LIMIT, APPENDED, NOW)
    expected = b"".join(
        entry(100 + i, b"k", b"v", magic=1, timestamp_ms=NOW, attributes=8) for i in range(2)
    )
    assert expected == data
    assert (NOW, 100) == (summary.max_timestamp_ms, summary.max_timestamp_offset)


def test_topic_of_magic_0_has_no_append_time(kernel: ModuleType) -> None:
    """Messages of magic 0 have no field for it."""
    data = bytearray(plain(THREE))
    rules = Rules(magic=0, log_append_time=True)
    summary = kernel.validate_and_stamp(data, 7, LIMIT, rules, NOW)
    assert plain(THREE, 7) == data
    assert (-1, 1) == (summary.max_timestamp_ms, summary.magics)


def test_empty_set(kernel: ModuleType) -> None:
    """An empty set is valid, with nothing to number or stamp."""
    summary = kernel.validate_and_stamp(bytearray(), 7, LIMIT, APPENDED, NOW)
    assert (0, -1, -1) == (summary.count, summary.first_offset, summary.max_timestamp_ms)


@pytest.mark.parametrize("rules", [Rules(), APPENDED], ids=["CreateTime", "LogAppendTime"])
def test_other_magics_and_wrappers_are_left_to_the_caller(kernel: ModuleType, rules: Rules) -> None:
    """The caller converts or compresses them: messages keep timestamps and CRCs, wrappers their
    offsets."""
    wrapped = wrapper(2, plain(THREE, 0, 1), magic=1)
    for tail, codec, magics in (
        (plain(THREE), 0, 0b11),
        (wrapped, 1, 0b10),
        (entry(0, None, None, magic=3), 0, 0b10 | OTHER_MAGIC_BIT),
    ):
        head = stamped(5)
        data = head + tail
        summary = kernel.validate_and_stamp(data, 100, LIMIT, rules, NOW)
        assert (codec, magics) == (summary.codec, summary.magics)
        assert head[8:] == data[8 : len(head)]
        assert tail == data[len(head) :]


def test_timestamp_too_far_from_now(kernel: ModuleType) -> None:
    """A difference strictly above the limit, in either direction, refuses the whole set; -1 counts
    as a timestamp."""
    for time in (NOW - 10, NOW + 10):
        assert kernel.validate_and_stamp(stamped(time), 0, LIMIT, NEAR, NOW).count == 1
    for time in (NOW - 11, NOW + 11, -1, -(1 << 63), (1 << 63) - 1):
        with pytest.raises(BadTimestamp) as raised:
            kernel.validate_and_stamp(stamped(NOW, time), 0, LIMIT, NEAR, NOW)
        assert (36, time) == (raised.value.position, raised.value.timestamp_ms)
        assert "more than 10 ms" in str(raised.value)


def test_any_timestamp_by_default_and_under_append_time(kernel: ModuleType) -> None:
    """The default limit refuses no timestamp, and the broker's own time never exceeds it."""
    strict = Rules(log_append_time=True, max_difference_ms=0)
    for rules in (Rules(), strict):
        data = stamped(-1, -5, -(1 << 63), (1 << 63) - 1)
        assert kernel.validate_and_stamp(data, 0, LIMIT, rules, NOW).count == 4


@pytest.mark.parametrize("rules", [Rules(), APPENDED], ids=["CreateTime", "LogAppendTime"])
def test_producer_may_not_set_log_append_time(kernel: ModuleType, rules: Rules) -> None:
    """Only a broker may set the type LogAppendTime, whatever the topic's type."""
    with pytest.raises(BadTimestamp, match="LogAppendTime"):
        kernel.validate_and_stamp(stamped(5, attributes=8), 0, LIMIT, rules, NOW)


@pytest.mark.parametrize("magic", [0, 1])
def test_compacted_topics_require_keys(kernel: ModuleType, magic: int) -> None:
    """A null key is refused, an empty one is a key."""
    rules = Rules(magic=magic, keys_required=True)
    with_keys = bytearray(plain(THREE, 0, magic))
    assert kernel.validate_and_stamp(with_keys, 0, LIMIT, rules, NOW).count == 3
    with pytest.raises(CorruptMessage, match="needs a key"):
        kernel.validate_and_stamp(with_keys + plain([(None, b"v")], 3, magic), 0, LIMIT, rules, NOW)


def test_sizes_crcs_and_codecs_come_before_rules(kernel: ModuleType) -> None:
    """0.10.2.2 checks these of all entries before it checks the first timestamp."""
    bad_crc = stamped(5)
    bad_crc[-1] ^= 1
    for tail, error in (
        (bad_crc, CorruptMessage),
        (stamped(5) + bytes(11) + b"\x01", CorruptMessage),
        (entry(0, None, b"", magic=1, attributes=4), UnknownCodec),
        (entry(0, None, b"x" * 100, magic=1), EntryTooLarge),
    ):
        with pytest.raises(error):
            kernel.validate_and_stamp(stamped(5) + tail, 0, 100, NEAR, NOW)


@pytest.mark.parametrize("first", [entry(5, None, b"v"), wrapper(5, bytes(stamped(5)), magic=1)])
def test_unknown_codecs_are_found_behind_what_is_left_to_the_caller(
    kernel: ModuleType, first: bytes
) -> None:
    """A wrapper, or a message of another magic, ends the numbering, not the checks."""
    data = bytearray(first) + entry(6, None, b"v", magic=1, attributes=5)
    with pytest.raises(UnknownCodec):
        kernel.validate_and_stamp(data, 0, LIMIT, Rules(), NOW)


def test_partial_entry_is_left_out(kernel: ModuleType) -> None:
    """At every cut the whole entries are accepted, as by `validate_and_assign`."""
    data = stamped(5, 7)
    for size in range(len(data)):
        cut = data[:size]
        summary = kernel.validate_and_stamp(cut, 0, LIMIT, APPENDED, NOW)
        assert (size // 36, size // 36 * 36) == (summary.count, summary.size)
        assert data[summary.size : size] == cut[summary.size :]


def test_read_only_data_is_refused(kernel: ModuleType) -> None:
    """Offsets are written in place, so a bytes object raises BufferError."""
    with pytest.raises(BufferError):
        kernel.validate_and_stamp(bytes(stamped(5)), 0, LIMIT, Rules(), NOW)
    with pytest.raises(OverflowError):
        kernel.validate_and_stamp(stamped(5), -1, LIMIT, Rules(), NOW)


# ---- messages of a wrapper, or that must be converted ----


def test_messages_of_a_wrapper(kernel: ModuleType) -> None:
    """Their offsets and largest timestamp decide whether the wrapper stays."""
    summary = kernel.check_messages(stamped(5, 9, 9), Rules(), NOW, 1)
    assert (3, 0, 2, True, 9, 1, 0b10) == (
        summary.count,
        summary.first_offset,
        summary.last_offset,
        summary.monotonic,
        summary.max_timestamp_ms,
        summary.max_timestamp_offset,
        summary.magics,
    )


def test_a_wrapper_with_invalid_messages_is_refused(kernel: ModuleType) -> None:
    """Another magic, a compressed message, an unknown magic, a bad CRC, a bad size and a missing
    key are refused."""
    bad_crc = stamped(5)
    bad_crc[-1] ^= 1
    for data, rules, magic, reason in (
        (plain(THREE), Rules(), 1, "magic 0 inside a compressed message of magic 1"),
        (stamped(5), Rules(), 0, "magic 1 inside a compressed message of magic 0"),
        (stamped(5, attributes=1), Rules(), 1, "compressed message inside"),
        (entry(0, b"", b"", magic=2), Rules(), 1, "magic 2 is not known"),
        (bad_crc, Rules(), 1, "stored crc"),
        (bytes(12), Rules(), 1, "corrupt size 0"),
        (plain([(None, b"v")], 0, 1), COMPACTED, 1, "needs a key"),
    ):
        with pytest.raises(CorruptMessage, match=reason):
            kernel.check_messages(data, rules, NOW, magic)


def test_inner_timestamp_types_are_not_checked(kernel: ModuleType) -> None:
    """The type bit is checked in wrappers and plain messages alone."""
    assert kernel.check_messages(stamped(5, attributes=8), Rules(), NOW, 1).count == 1
    with pytest.raises(BadTimestamp):
        kernel.check_messages(stamped(5, attributes=8), Rules(), NOW)


def test_timestamps_of_magic_0(kernel: ModuleType) -> None:
    """They count as -1 in plain sets that are converted, and are not checked elsewhere
    (0.10.2.2)."""
    for rules in (NEAR, Rules(magic=0, max_difference_ms=10)):
        assert kernel.check_messages(plain(THREE), rules, NOW).count == 3
        with pytest.raises(BadTimestamp):
            kernel.check_messages(plain(THREE), rules, NOW, check_unstamped=True)
    with pytest.raises(BadTimestamp):
        kernel.check_messages(stamped(NOW - 11), NEAR, NOW)
    assert kernel.check_messages(stamped(NOW - 11), OLD._replace(max_difference_ms=10), NOW).count


# ---- the wrapper ----


def test_wrapper_gets_offset_and_time(kernel: ModuleType) -> None:
    """The CRC is computed again if timestamp or type change; the contents stay."""
    inner = plain(THREE, 0, 1)
    for time, by_broker in ((1002, False), (7, False), (1002, True)):
        data = bytearray(wrapper(2, inner, magic=1, timestamp_ms=1002))
        kernel.set_wrapper(data, 102, time, by_broker)
        (found,) = kernel.entries(data, verify_crc=True)
        expected = (102, time, 1 | 8 * by_broker)
        assert expected == (found.offset, found.timestamp_ms, found.attributes)
        assert wrapper(2, inner, magic=1, timestamp_ms=1002)[26:] == data[26:]


def test_wrapper_that_keeps_its_time_keeps_its_crc(kernel: ModuleType) -> None:
    """No CRC is computed for it: even a wrong one, which an earlier check would have found,
    stays."""
    data = bytearray(wrapper(2, b"", magic=1, timestamp_ms=5))
    data[15] ^= 1
    expected = data[8:]
    kernel.set_wrapper(data, 102, 5, False)
    assert expected == data[8:]


def test_only_wrappers_of_magic_1_are_stamped(kernel: ModuleType) -> None:
    """Magic 0 has no timestamp, and a cut entry cannot be written."""
    whole = bytearray(wrapper(2, b"", magic=1))
    for data in (bytearray(wrapper(2, b"")), whole[:-1], bytearray()):
        with pytest.raises(CorruptMessage, match="no complete message of magic 1"):
            kernel.set_wrapper(data, 0, 0, False)
    with pytest.raises(BufferError):
        kernel.set_wrapper(bytes(whole), 0, 0, False)


# ---- record batches ----


@pytest.mark.parametrize("name", PRODUCED)
def test_a_plain_batch_is_numbered_as_a_leader_stores_it(kernel: ModuleType, name: str) -> None:
    """Of the captured sets: the bytes of `record_batches.prepare`, without objects for records; or
    None, and the set is unchanged, for what must be unpacked, is several batches, or is refused."""
    found = produced(name)
    assert found is not None
    topic, sent, answer = found
    rules, now_ms = rules_of(topic, answer)
    data = bytearray(sent)
    summary = kernel.number_batch(data, 7, LIMIT, rules, now_ms, 3)
    try:
        prepared = prepare(bytearray(sent), 7, now_ms, rules, LIMIT, LIMIT, leader_epoch=3)
    except ApiError:
        assert (None, sent) == (summary, data)
        return
    batches_in = list(batches(sent))
    if (
        len(batches_in) > 1
        or batches_in[0].magic != 2
        or prepared.codec
        or len(sent) > (batches_in[0].size)
    ):
        assert (None, sent) == (summary, data)
        return
    assert prepared.data == data
    assert (prepared.count, prepared.first_offset, prepared.last_offset) == (
        summary.count,
        summary.first_offset,
        summary.last_offset,
    )
    assert (4, prepared.max_timestamp_ms, prepared.max_timestamp_offset) == (
        summary.magics,
        summary.max_timestamp_ms,
        summary.max_timestamp_offset,
    )


def test_a_batch_of_negative_timestamps_has_none(kernel: ModuleType) -> None:
    """It is stored with -1, as by 0.11.0.3, whatever its producer wrote: not with a timestamp that
    is smaller than none."""
    found = produced("produce-v3-plain")
    assert found is not None
    sent = bytearray(found[1])
    sent[27:43] = (-DAY_MS).to_bytes(8, "big", signed=True) * 2
    sent[17:21] = V2().checksum(sent[21:]).to_bytes(4, "big")
    rules = Rules(magic=2)
    data = bytearray(sent)
    assert kernel.number_batch(data, 7, LIMIT, rules, NOW, 3).max_timestamp_ms == -1
    prepared = prepare(bytearray(sent), 7, NOW, rules, LIMIT, LIMIT, leader_epoch=3)
    assert (data, -1) == (prepared.data, prepared.max_timestamp_ms)


@given(st.binary(max_size=80), st.integers(0, 117), st.sampled_from([0, 1, 2, 3]))
def test_both_kernels_number_broken_batches_alike(noise: bytes, at: int, codec: int) -> None:
    """Bytes of a batch that are overwritten, with a CRC that is right."""
    native = native_or_skip()
    broken = bytearray(compressed_batch(codec))
    broken[at : at + len(noise)] = noise
    if len(broken) > 21:
        broken[17:21] = V2().checksum(broken[21:]).to_bytes(4, "big")
    results = []
    for one in (native, _python):
        data, rules = bytearray(broken), Rules(magic=2, max_difference_ms=10)
        try:
            summary = one.number_batch(data, 5, LIMIT, rules, NOW, 1, message_set.unpack)
        except ValueError as error:
            summary = str(error)
        results.append((data, getattr(summary, "max_timestamp_ms", summary)))
    assert results[0] == results[1]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_a_compressed_batch_is_numbered_where_it_is(kernel: ModuleType, codec: int) -> None:
    """If its records can be unpacked: only offset and leader's epoch change, no byte of the
    records. Without `unpack` it is left, and the error of a codec is that of the call."""
    sent = compressed_batch(codec)
    data = bytearray(sent)
    assert kernel.number_batch(data, 7, LIMIT, Rules(magic=2), NOW, 3) is None
    with pytest.raises(compression.DecompressionError, match="no room"):
        kernel.number_batch(data, 7, LIMIT, Rules(magic=2), NOW, 3, no_room)
    assert sent == data
    summary = kernel.number_batch(data, 7, LIMIT, Rules(magic=2), NOW, 3, message_set.unpack)
    assert (codec, 3, 7, 9, NOW + 2) == (
        summary.codec,
        summary.count,
        summary.first_offset,
        summary.last_offset,
        summary.max_timestamp_ms,
    )
    (batch,) = batches(data)
    assert (7, 3) == (batch.base_offset, batch.leader_epoch)
    assert sent[16:] == data[16:]


def test_records_of_a_compressed_batch_are_checked(kernel: ModuleType) -> None:
    """A record too few or too many, a second offset 0, a record without the key that its topic
    needs: the batch is left as it is."""
    sent = compressed_batch(3)
    for unpack, rules in (
        (lambda codec, data: message_set.unpack(codec, data)[:-1], Rules(magic=2)),
        (lambda codec, data: message_set.unpack(codec, data) * 2, Rules(magic=2)),
        (message_set.unpack, Rules(magic=2, keys_required=True)),
        (message_set.unpack, Rules(magic=2, max_difference_ms=1)),
    ):
        data = bytearray(sent)
        assert kernel.number_batch(data, 7, LIMIT, rules, NOW, 3, unpack) is None
        assert sent == data


def no_room(codec: int, data: memoryview) -> bytes:
    raise compression.DecompressionError("no room")


def compressed_batch(codec: int) -> bytes:
    """Of three records without keys, a millisecond apart."""
    records = [Message(n, None, memoryview(b"value"), NOW + n, CREATE_TIME, ()) for n in range(3)]
    return bytes(V2().build(records, codec, compress))
