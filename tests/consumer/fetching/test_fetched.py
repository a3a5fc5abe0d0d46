"""FetchedSet: messages, damage, and the size that a cut message needs."""

from __future__ import annotations

import pytest

from kafka08 import kernel
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.fetching.fetched import FetchedSet
from kafka08.errors import InvalidMessage, MessageTooLarge, OffsetOutOfRange
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.protocol import compression, message_set
from kafka08.structs import TopicPartition

TP = TopicPartition("t", 3)
PAIRS = [(b"k", b"value-%d" % n) for n in range(5)]


def fetched(data: bytes, offset: int = 0, max_bytes: int | None = None) -> FetchedSet:
    size = len(data) if max_bytes is None else max_bytes
    return FetchedSet(TP, offset, data, size, "b:9092", high_watermark=100)


def test_every_cut_gives_the_whole_messages_before_it() -> None:
    """A partial last message is left out, wherever the set is cut."""
    data = message_set.encode(PAIRS)
    entry = len(data) // len(PAIRS)
    for cut in range(len(data) + 1):
        of_cut = fetched(data[:cut])
        assert [m.offset for m in of_cut] == list(range(cut // entry))
        assert of_cut.next_offset() == cut // entry


def test_a_message_that_a_later_broker_withholds_is_one_offset() -> None:
    """A later broker sends the header of an impossible message in place of one that it does not
    convert. Alone it means: no message, no cut message, and the next offset. Behind other messages
    it is an ordinary cut message."""
    filler = ENTRY_HEADER.pack(-1, 73) + bytes(49)
    withheld = fetched(filler, offset=7)
    assert withheld.is_withheld
    assert list(withheld) == []
    assert withheld.size_needed(1000) is None
    assert withheld.next_offset() == 8
    behind = fetched(message_set.encode(PAIRS) + filler)
    assert not behind.is_withheld
    assert behind.next_offset() == 5


def test_a_bomb_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper may unpack to the larger of two sizes: a leader's limit, and the requested bytes.
    Beyond that it is an error."""
    monkeypatch.setattr(message_set, "MAX_UNPACKED_BYTES", 10_000)
    bomb = message_set.encode([(None, b"x" * 20_000)], compression.GZIP)
    with pytest.raises(InvalidMessage, match=r"10000 bytes allowed; .*fetch\.message\.max\.bytes"):
        list(fetched(bomb, max_bytes=1000))
    with pytest.raises(InvalidMessage, match="10000 bytes allowed"):
        list(fetched(bomb, max_bytes=1000).batches(BatchLimits()))
    assert [20_000] == [len(m.value or b"") for m in fetched(bomb, max_bytes=30_000)]


@pytest.mark.parametrize("codec", compression.CODECS)
def test_messages_below_the_offset_are_skipped(codec: int) -> None:
    """A broker sends a compressed set whole, although the requested offset is within it."""
    data = message_set.encode(PAIRS, codec, base_offset=10)
    messages = list(fetched(data, offset=12))
    assert [(m.offset, m.key, m.value) for m in messages] == [
        (10 + n, *PAIRS[n]) for n in range(2, 5)
    ]
    assert [m.offset for m in fetched(data, offset=12).decoded(until_offset=14)] == [12, 13]
    assert fetched(data, offset=12).next_offset() == 15


def test_decoders_do_not_see_nulls() -> None:
    """A null key or value stays None without a call of the decoder."""
    data = message_set.encode([(None, b"1"), (b"2", None)])
    messages = fetched(data).decoded(int, int)
    assert [(m.key, m.value) for m in messages] == [(None, 1), (2, None)]


def test_a_flipped_bit_is_named_with_partition_broker_and_offset() -> None:
    """The error has partition, broker and offset. The messages before it are returned, and
    next_offset is its offset."""
    data = bytearray(message_set.encode(PAIRS, base_offset=7))
    data[-1] ^= 1
    of_damaged = fetched(bytes(data), offset=7)
    assert of_damaged.next_offset() == 11
    messages = iter(of_damaged)
    assert [next(messages).offset for _ in range(4)] == [7, 8, 9, 10]
    with pytest.raises(InvalidMessage, match=r"\[t,3\] at b:9092.*offset 11") as caught:
        next(messages)
    assert isinstance(caught.value.__cause__, kernel.CorruptMessage)


def test_an_error_is_raised_when_the_set_is_read() -> None:
    """Every way to read the set raises the error."""
    refused = FetchedSet(TP, 0, b"", 10, "b:9092", error=OffsetOutOfRange(str(TP)))
    for read in (refused.next_offset, refused.messages, lambda: list(refused)):
        with pytest.raises(OffsetOutOfRange):
            read()
    assert refused.size_needed(100) is None


def test_the_size_of_a_cut_message_comes_from_its_header() -> None:
    """A cut message has its size in its first 12 bytes. With fewer, the size is those 12. With
    none, there is no message."""
    data = message_set.encode([(None, b"x" * 100)], base_offset=5)
    for cut in range(len(data)):
        needed = fetched(data[:cut]).size_needed(1000)
        assert needed == (None if cut == 0 else 12 if cut < 12 else len(data))
    assert fetched(data).size_needed(1000) is None
    assert fetched(data + data[:20]).size_needed(1000) is None


def test_a_message_beyond_the_limit_is_named() -> None:
    """The error has topic-partition, offset, size and limit."""
    data = message_set.encode([(None, b"x" * 100)], base_offset=5)
    with pytest.raises(MessageTooLarge) as caught:
        fetched(data[:40]).size_needed(len(data) - 1)
    assert str(caught.value) == (
        f"[t,3] at b:9092: the message at offset 5 has {len(data)} bytes, "
        f"more than the {len(data) - 1} allowed"
    )
    assert fetched(data[:40]).size_needed(len(data)) == len(data)


def test_a_message_that_stays_cut_is_damage() -> None:
    """A message that is still cut after a larger fetch is damaged. Larger fetches would never
    end."""
    data = message_set.encode([(None, b"x" * 100)], base_offset=5)
    with pytest.raises(InvalidMessage, match="cut off"):
        fetched(data[:40], max_bytes=len(data)).size_needed(1000)


def test_a_size_that_no_message_has_is_left_to_the_reader() -> None:
    """An impossible size does not make the fetch grow. The reader gets an error for the damage."""
    data = (5).to_bytes(8, "big") + (3).to_bytes(4, "big") + b"abc"
    assert fetched(data).size_needed(1000) is None
    with pytest.raises(InvalidMessage, match="offset 5"):
        list(fetched(data))
