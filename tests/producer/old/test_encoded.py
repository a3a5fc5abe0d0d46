"""Encoded: a batch as columns, split by partition."""

from __future__ import annotations

import pytest

from kafka08 import kernel
from kafka08.producer import DefaultEncoder, KeyedMessage, NullEncoder, StringEncoder
from kafka08.producer.old.encoded import Encoded
from kafka08.producer.old.message_columns import MessageColumns

DEFAULT = DefaultEncoder()


def test_columns_follow_the_messages() -> None:
    """Encoders make the columns of keys and values, and null stays null. A partition key replaces
    the key for the choice of a partition and is not stored."""
    messages = [
        KeyedMessage("t", "v", key="k"),
        KeyedMessage("u", None),
        KeyedMessage("t", "w", key="l", partition_key=7),
    ]
    found = Encoded.of(messages, StringEncoder(), StringEncoder())
    assert list(found.topics) == ["t", "u", "t"]
    assert list(found.chosen_by) == ["k", None, 7]
    assert list(found.pairs()) == [(b"k", b"v"), (None, None), (b"l", b"w")]


@pytest.mark.parametrize("value", [bytearray(b"v"), memoryview(b"v")])
def test_other_buffers_are_copied(value: bytearray | memoryview) -> None:
    """Only bytes skip the DefaultEncoder, which would return the same object. Other buffers are
    copied."""
    messages = [KeyedMessage("t", b"u"), KeyedMessage("t", value)]
    assert list(Encoded.of(messages, DEFAULT, DEFAULT).values) == [b"u", b"v"]
    assert all(type(field) is bytes for field in Encoded.of(messages, DEFAULT, DEFAULT).values)


def test_an_encoder_may_give_null() -> None:
    """With NullEncoder the key chooses the partition and is stored as null."""
    found = Encoded.of([KeyedMessage("t", b"v", key=b"k")], DEFAULT, NullEncoder())
    assert (list(found.chosen_by), list(found.keys)) == ([b"k"], [None])


def test_a_type_that_the_encoder_refuses() -> None:
    """A type that the encoder refuses is an error, also after many values that it accepts."""
    messages = [KeyedMessage("t", b"v") for _ in range(100)] + [KeyedMessage("t", 1)]
    with pytest.raises(TypeError, match="DefaultEncoder takes bytes, not int"):
        Encoded.of(messages, DEFAULT, DEFAULT)


def test_an_encoder_that_gives_no_bytes() -> None:
    """An encoder that returns no bytes is an error before anything is sent."""
    with pytest.raises(TypeError, match="must return bytes"):
        Encoded.of([KeyedMessage("t", "v")], lambda value: value, DEFAULT)


def test_parts_and_their_sum() -> None:
    """Failed parts are taken out and combined for the next try, and each message is still known."""
    messages = [KeyedMessage("t", b"%d" % n, key=b"k%d" % n) for n in range(5)]
    whole = Encoded.of(messages, DEFAULT, DEFAULT)
    odd, even = whole.at([1, 3]), whole.at([0, 2, 4])
    assert [list(odd.places), list(even.at([1, 2]).places)] == [[1, 3], [2, 4]]
    assert list(even.values) == [b"0", b"2", b"4"]
    both = Encoded.joined([odd, even])
    assert list(both.places) == [1, 3, 0, 2, 4]
    assert list(both.keys) == [b"k1", b"k3", b"k0", b"k2", b"k4"]
    assert kernel.build_set(both.pairs()) == kernel.build_set(list(both.pairs()))


def test_message_columns_are_a_sequence() -> None:
    """Columns are the sequence of the messages they were made of, by index, slice and iteration.
    Only KeyedMessages have columns."""
    messages = [KeyedMessage("t", b"%d" % n, key=n, partition_key=-n) for n in range(4)]
    columns = MessageColumns.of(messages)
    assert list(columns) == messages
    assert (columns[1], columns[-1], columns[1:3]) == (messages[1], messages[-1], messages[1:3])
    assert MessageColumns.of(columns) is columns
    columns.extend(MessageColumns.of(messages[:2]))
    assert (len(columns), columns[-1], columns.column("key")) == (6, messages[1], [*range(4), 0, 1])
    with pytest.raises(IndexError):
        columns[6]
    with pytest.raises(TypeError, match="not a tuple"):
        MessageColumns.of([*messages, ("t", b"v", None, None)])  # type: ignore[list-item]
