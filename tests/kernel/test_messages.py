"""The messages of a fetched set, as a consumer gets them."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import pack
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel.types import MAX_NESTING, Buffer, CorruptMessage, UnknownCodec
from kafka08.protocol import message_set
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import GZIP, entry, plain, refuse, unpack, wrapper

DATA = Path(__file__).parent.parent / "data"
THREE = [(b"k", b"value"), (None, b"x" * 10), (b"", None)]


def read(kernel: ModuleType, data: Buffer, from_offset: int = 0, **options: Any) -> list[Any]:
    """(offset, key, value) of each message."""
    messages = kernel.messages(data, "t", 1, from_offset, unpack, **options)
    return [(message.offset, message.key, message.value) for message in messages]


def numbered(base_offset: int) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(base_offset + i, key, value) for i, (key, value) in enumerate(THREE)]


def test_plain_messages(kernel: ModuleType) -> None:
    """An uncompressed set gives its offsets, keys and values."""
    assert numbered(5) == read(kernel, plain(THREE, 5))


def test_message_knows_where_it_comes_from(kernel: ModuleType) -> None:
    """A message has topic, partition and offset. It is a value: equal by all fields, hashable,
    picklable."""
    (message,) = kernel.messages(entry(5, b"k", b"v"), "topic", 3, 0, refuse)
    assert ("topic", 3, 5) == (message.topic, message.partition, message.offset)
    assert message.message is message.value
    assert message == kernel.MessageAndMetadata("topic", 3, 5, b"k", b"v")
    assert message != kernel.MessageAndMetadata("topic", 3, 6, b"k", b"v")
    assert message != b"v"
    assert len({message, kernel.MessageAndMetadata("topic", 3, 5, b"k", b"v")}) == 1
    assert message == pickle.loads(pickle.dumps(message))
    assert repr(message) == (
        "MessageAndMetadata(topic='topic', partition=3, offset=5, key=b'k', value=b'v')"
    )


def test_starts_at_from_offset(kernel: ModuleType) -> None:
    """Offsets below from_offset, which a broker's whole entries and wrappers contain, are left out
    undecoded."""
    data = bytearray(plain(THREE, 5))
    data[12] ^= 1
    assert numbered(5)[1:] == read(kernel, data, 6)


def test_ends_before_until_offset(kernel: ModuleType) -> None:
    """The range is half-open, also across gaps and inside wrappers, and `next_offset` reaches its
    end."""
    data = plain(THREE, 5) + entry(20, None, b"far")
    for until, count in [(5, 0), (6, 1), (8, 3), (9, 3), (20, 3), (21, 4)]:
        for stored in (data, wrapper(20, data)):
            messages = kernel.messages(stored, "t", 0, 5, unpack, until_offset=until)
            assert len(list(messages)) == count
            assert messages.next_offset == until


def test_decoders_make_objects_of_bytes_but_not_of_null(kernel: ModuleType) -> None:
    """Decoders are called for bytes and not for null, like MessageAndMetadata.key() and message()
    of the JVM."""
    data = plain(THREE)
    found = read(kernel, data, key_decoder=len, value_decoder=bytes.decode)
    assert found == [(0, 1, "value"), (1, None, "xxxxxxxxxx"), (2, 0, None)]


def test_decoder_that_raises(kernel: ModuleType) -> None:
    """The message is not returned; a caller that continues gets the next one."""

    def decode(value: bytes) -> str:
        return value.decode("ascii")

    data = plain([(None, b"a"), (None, b"\xff"), (None, b"c")])
    messages = kernel.messages(data, "t", 0, 0, refuse, value_decoder=decode)
    assert next(messages).value == "a"
    with pytest.raises(UnicodeDecodeError):
        next(messages)
    assert messages.position_offset == 0
    assert next(messages).value == "c"
    assert messages.position_offset == 2


def test_decoder_that_raises_stop_iteration(kernel: ModuleType) -> None:
    """It does not count as the end of the set, which would lose the rest silently."""
    data = plain([(None, b"a"), (None, b"bb")])
    messages = kernel.messages(
        data, "t", 0, 0, refuse, value_decoder=lambda value: next(iter(value[1:]))
    )
    with pytest.raises(RuntimeError, match="StopIteration"):
        next(messages)
    assert next(messages).value == ord("b")


def test_position_is_that_of_the_last_returned_message(kernel: ModuleType) -> None:
    """The position is -1 before the first message, and `next_offset` is one above it. Behind the
    end no message is returned."""
    messages = kernel.messages(plain(THREE, 5), "t", 0, 2, refuse)
    assert (-1, 2) == (messages.position_offset, messages.next_offset)
    for offset in (5, 6, 7):
        next(messages)
        assert (offset, offset + 1) == (messages.position_offset, messages.next_offset)
    assert next(messages, None) is None
    assert next(messages, None) is None


def test_partial_entry_ends_the_set_silently(kernel: ModuleType) -> None:
    """Cut at every byte, a set gives its whole messages, and `next_offset` is that of the next
    one."""
    data = plain(THREE, 5)
    ends = [32, 68, 94]
    for size in range(len(data) + 1):
        messages = kernel.messages(data[:size], "t", 0, 5, refuse)
        count = len(list(messages))
        assert sum(end <= size for end in ends) == count
        assert messages.next_offset == 5 + count


# ---- wrappers ----


def test_wrappers_are_unpacked_on_the_way(kernel: ModuleType) -> None:
    """Compressed and plain messages of one set come in the order of their offsets."""
    data = plain(THREE, 0) + wrapper(5, plain(THREE, 3)) + plain(THREE, 6)
    assert numbered(0) + numbered(3) + numbered(6) == read(kernel, data)


def test_inner_messages_below_from_offset_are_left_out(kernel: ModuleType) -> None:
    """A broker sends the whole wrapper that has the requested offset; the messages before that are
    left out."""
    data = wrapper(5, plain(THREE, 3)) + wrapper(8, plain(THREE, 6))
    assert (numbered(3) + numbered(6))[2:] == read(kernel, data, 5)
    assert numbered(6) == read(kernel, data, 6)


def test_wrappers_below_from_offset_are_not_unpacked(kernel: ModuleType) -> None:
    """The wrapper's offset is that of its last message, which suffices to skip it."""
    calls = []

    def count(codec: int, value: Buffer) -> bytes:
        calls.append(codec)
        return unpack(codec, value)

    data = wrapper(5, plain(THREE, 3)) + wrapper(8, plain(THREE, 6), codec=2)
    assert len(list(kernel.messages(data, "t", 0, 6, count))) == 3
    assert calls == [2]


def test_decompress_gets_the_value_without_a_copy(kernel: ModuleType) -> None:
    """The callback may keep the value: the data lives as long as any reference to it."""
    kept = []

    def keep(codec: int, value: Buffer) -> bytes:
        kept.append(value)
        return unpack(codec, value)

    assert len(list(kernel.messages(wrapper(2, plain(THREE)), "t", 0, 0, keep))) == 3
    assert isinstance(kept[0], memoryview)
    assert unpack(GZIP, kept[0]) == plain(THREE)


def test_wrappers_in_wrappers(kernel: ModuleType) -> None:
    """MAX_NESTING levels are read; one more is CorruptMessage."""
    data = plain(THREE)
    for _ in range(MAX_NESTING):
        data = wrapper(2, data)
    assert numbered(0) == read(kernel, data)
    with pytest.raises(CorruptMessage, match="levels"):
        read(kernel, wrapper(2, data))


def test_empty_wrapper(kernel: ModuleType) -> None:
    """It has no messages, but its offset counts as read."""
    messages = kernel.messages(wrapper(5, b"") + entry(9, None, b"x"), "t", 0, 0, unpack)
    assert [message.offset for message in messages] == [9]
    messages = kernel.messages(wrapper(5, b""), "t", 0, 0, unpack)
    assert list(messages) == []
    assert messages.next_offset == 6


def test_relative_offsets_of_magic_1(kernel: ModuleType) -> None:
    """Inside a magic-1 wrapper offsets count from 0; the wrapper has the last one's offset."""
    inner = b"".join(entry(i, key, value, magic=1) for i, (key, value) in enumerate(THREE))
    assert numbered(100) == read(kernel, wrapper(102, inner, magic=1))
    assert numbered(100)[2:] == read(kernel, wrapper(102, inner, magic=1), 102)


# ---- what is wrong ----


def corrupt(kernel: ModuleType, data: bytes, **options: Any) -> CorruptMessage:
    """The error, which must come again when asked again and leave what was read before."""
    messages = kernel.messages(plain(THREE) + data, "t", 0, 0, unpack, **options)
    for offset in range(3):
        assert next(messages).offset == offset
    for _ in range(2):
        with pytest.raises(CorruptMessage) as caught:
            next(messages)
        assert caught.value.position == 94
    assert messages.next_offset == 3
    return caught.value


def test_bad_crc(kernel: ModuleType) -> None:
    """CorruptMessage has the offset; with verify_crc=False the message is returned."""
    data = entry(7, b"k", b"v")[:-1] + b"w"
    assert corrupt(kernel, data).offset == 7
    assert read(kernel, data, verify_crc=False) == [(7, b"k", b"w")]


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (pack(">qi", 8, 13) + bytes(13), 8, "corrupt size 13"),
        (pack(">qi", 8, -1), 8, "corrupt size -1"),
        (entry(8, None, b"x", magic=3), 8, "magic 3"),
        (wrapper(8, entry(6, None, b"v")[:-1]), 6, "partial"),
        (wrapper(8, b"x"), -1, "partial"),
        (wrapper(8, pack(">qi", 6, 5)), 6, "corrupt size 5"),
        (wrapper(8, pack(">qi", 6, 5), magic=1), 8, "corrupt size 5"),
        (wrapper(8, entry(6, b"", b"v")[:-1] + b"w"), 6, "crc"),
        (entry(8, None, b"no such stream", attributes=GZIP), 8, "cannot be decompressed"),
        (entry(8, None, None, attributes=GZIP), 8, "without a value"),
    ],
)
def test_broken_entries(kernel: ModuleType, data: bytes, offset: int, reason: str) -> None:
    """No entry is skipped: the error has offset, position and reason, inside wrappers too."""
    error = corrupt(kernel, data)
    assert error.offset == offset
    assert reason in str(error)


def test_unknown_codec(kernel: ModuleType) -> None:
    """Attributes with an unknown codec are UnknownCodec."""
    with pytest.raises(UnknownCodec):
        read(kernel, entry(8, None, b"x", attributes=4))


def test_other_errors_of_the_callback_are_raised(kernel: ModuleType) -> None:
    """An error in `decompress` that is no ValueError does not count as a corrupt message."""
    with pytest.raises(AssertionError):
        list(kernel.messages(wrapper(2, plain(THREE)), "t", 0, 0, refuse))
    with pytest.raises(TypeError):
        list(kernel.messages(wrapper(2, plain(THREE)), "t", 0, 0, lambda codec, value: None))


def test_iterator_cannot_be_moved_from_inside_its_callback() -> None:
    """The same guard lets only one thread at a time advance a native iterator; the interpreter
    protects the twin's state."""
    kernel = native_or_skip()

    def reenter(codec: int, value: Buffer) -> bytes:
        next(messages)
        return b""

    messages = kernel.messages(wrapper(2, plain(THREE)), "t", 0, 0, reenter)
    with pytest.raises(RuntimeError, match="another thread"):
        next(messages)


@pytest.mark.parametrize("begun", [False, True])
def test_a_garbage_collection_may_move_the_iterator(begun: bool) -> None:
    """An allocation may run other code, which uses the iterator: each message comes once, from
    memory that is still there. Once while a wrapper is opened, once while a message is made."""
    kernel = native_or_skip()
    inner = plain([(b"key-%d" % number, bytes(1000)) for number in range(5)])
    iterator = kernel.messages(wrapper(4, inner), "t", 0, 0, unpack)
    kept = list(kernel.messages(plain(THREE * 200), "t", 0, 0, refuse))  # no free object is left
    found = [next(iterator)] if begun else []

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            with suppress(RuntimeError):  # it is in use
                found.extend(iterator)

    thresholds = gc.get_threshold()
    Garbage()
    gc.set_threshold(1)
    try:
        message = next(iterator, None)
    finally:
        gc.set_threshold(*thresholds)
    found += [message] if message is not None else []
    found += iterator
    assert [(number, b"key-%d" % number) for number in range(5)] == sorted(
        (message.offset, message.key) for message in found
    )
    assert len(kept) == 600


# ---- captured logs ----


def stated(decoded: dict[str, Any]) -> bytes | None:
    return None if decoded is None else bytes.fromhex(decoded["hex"])


@pytest.mark.parametrize("file", ["logs-0.8.2.2", "logs-0.10.2.2", "logs-0.9.0.1"])
def test_captured_entries(kernel: ModuleType, file: str) -> None:
    """Each entry of the captured segments has the recorded offset, CRC, key, value and
    timestamp."""
    segments = json.loads((DATA / f"{file}.json").read_text())
    count = 0
    for name in ("plain", "gzip", "snappy", "lz4", "acks", "g1-0", "g1-1"):
        if name not in segments:
            continue
        data = bytes.fromhex(segments[name]["hex"])
        found = list(kernel.entries(data, verify_crc=True))
        for expected, actual in zip(segments[name]["decoded"], found, strict=True):
            for theirs, ours in [
                ("offset", "offset"),
                ("crc", "crc"),
                ("attr", "attributes"),
                ("size", "size"),
                ("pos", "position"),
                ("magic", "magic"),
            ]:
                assert expected[theirs] == getattr(actual, ours), (name, theirs)
            assert expected.get("ts", -1) == actual.timestamp_ms
            assert stated(expected["key"]) == actual.key
            count += 1
    assert count >= 6


@pytest.mark.parametrize(
    ("file", "name", "count", "last_offset"),
    [
        ("logs-0.8.2.2", "gzip", 16, 15),
        ("logs-0.8.2.2", "snappy", 6, 5),
        ("logs-0.8.2.2", "lz4", 6, 5),
        ("logs-0.10.2.2", "g1-1", 15, 14),
    ],
)
def test_captured_wrappers(
    kernel: ModuleType, file: str, name: str, count: int, last_offset: int
) -> None:
    """Logs in every codec, and of 0.10 with relative inner offsets, give every offset once."""
    data = bytes.fromhex(json.loads((DATA / f"{file}.json").read_text())[name]["hex"])
    messages = list(kernel.messages(data, "t", 0, 0, message_set.unpack))
    assert list(range(count)) == [message.offset for message in messages]
    assert messages[-1].offset == last_offset
    for offset in range(count):
        rest = list(kernel.messages(data, "t", 0, offset, message_set.unpack))
        assert messages[offset:] == rest


@pytest.mark.parametrize("file", ["logs-0.8.2.2", "sandbox-logs-0.8.2.2"])
def test_captured_offsets_topic(kernel: ModuleType, file: str) -> None:
    """The offsets topic of a 0.8.2.2 broker gives the recorded keys and values. One capture is cut
    in a message, the other records only its last twelve."""
    segments = json.loads((DATA / f"{file}.json").read_text())["consumer_offsets"]
    (segment,) = segments.values()
    stated = {
        record["log_offset"]: (bytes.fromhex(record["key_hex"]), bytes.fromhex(record["value_hex"]))
        for record in segment["decoded"]
    }
    found = {
        message.offset: (message.key, message.value)
        for message in kernel.messages(bytes.fromhex(segment["hex"]), "t", 0, 0, refuse)
    }
    both = stated.keys() & found.keys()
    assert len(both) >= 9
    assert {offset: stated[offset] for offset in both} == {offset: found[offset] for offset in both}


def test_captured_producer_segments(kernel: ModuleType) -> None:
    """Segments of the JVM's console producer give text lines with keys."""
    for segment in json.loads((DATA / "sandbox-logs-0.8.2.2.json").read_text())[
        "producer segments"
    ]:
        data = bytes.fromhex(segment["hex"])
        decode: Callable[[bytes], str] = bytes.decode
        messages = list(kernel.messages(data, "t", 0, 0, message_set.unpack, decode, decode))
        assert list(range(len(messages))) == [message.offset for message in messages]
        for message in messages:
            assert message.key.startswith("k")
            assert message.value.startswith("line ")
