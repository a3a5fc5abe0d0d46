"""The iterator over the sets of a stream, which another thread can stop."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import inf
from time import monotonic
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel.types import CorruptMessage
from kafka08.protocol import message_set
from tests.consumer.streams import elsewhere
from tests.kernel.conftest import native_or_skip
from tests.kernel.sets import entry, plain, refuse

TWO = plain([(None, b"a"), (None, b"b")])


def no_more(_: object) -> float:
    raise StopIteration


def stream_of(
    kernel: ModuleType,
    data: bytes | bytearray,
    find_more: Callable[[Any], Any] = no_more,
    clock: Callable[[], float] = lambda: 0.0,
    decoder: Callable[[bytes], Any] | None = None,
) -> Any:
    """An open iterator over this set."""
    messages = kernel.messages(data, "t", 0, 0, refuse, value_decoder=decoder)
    stream = kernel.StreamIterator(messages, clock, find_more)
    stream.limit = inf
    return stream


def test_it_continues_with_what_is_found(kernel: ModuleType) -> None:
    """After the last message of a set it calls `find_more` until there is a message, first with
    None, and then with its last result for this message. A StopIteration of that ends it."""
    calls = []

    def find_more(last: object) -> int:
        calls.append((last, stream.ended is stream.messages))
        if len(calls) == 2:
            stream.messages = kernel.messages(entry(7, None, b"c"), "t", 0, 7, refuse)
        if len(calls) == 3:
            raise StopIteration
        return len(calls)

    stream = stream_of(kernel, TWO, find_more)
    assert [0, 1, 7] == [message.offset for message in stream]
    assert calls == [(None, True), (1, True), (None, True)]


def test_nothing_is_returned_from_the_limit_on(kernel: ModuleType) -> None:
    """The clock is read before each message if there is a limit. Once it is at the limit the
    position stays where it is, and the set is not exhausted; with a later limit it continues. At
    first nothing is returned at all."""
    now = [1.0]
    stream = stream_of(kernel, TWO, clock=lambda: now[0])
    assert -inf == kernel.StreamIterator(stream.messages, lambda: 0.0, no_more).limit
    stream.limit = 2.0
    assert stream.take().value == b"a"
    now[0] = 2.0
    assert (stream.take(), list(stream)) == (None, [])
    assert (stream.messages.position_offset, stream.ended) == (0, None)
    stream.limit = 3.0
    assert stream.take().value == b"b"


def test_the_systems_clock(kernel: ModuleType) -> None:
    """`time.monotonic`, which the compiled iterator reads without a call of Python's, counts from
    the same moment."""
    stream = stream_of(kernel, TWO, clock=monotonic)
    stream.limit = monotonic()
    assert stream.take() is None
    stream.limit = monotonic() + 60
    assert stream.take().value == b"a"


def test_it_is_busy_from_the_clock_to_the_end_of_the_decoder(kernel: ModuleType) -> None:
    """A thread that has moved the limit waits while it is busy: the reader may have compared
    before. It is busy no longer after a message, an error, or the end."""
    seen = []

    def clock() -> float:
        seen.append(stream.busy)
        return 0.0

    def look(value: bytes) -> bytes:
        seen.append(stream.busy)
        if value == b"b":
            raise KeyError(value)
        return value

    stream = stream_of(kernel, TWO, clock=clock, decoder=look)
    stream.limit = 1.0
    assert not stream.busy
    assert next(stream).value == b"a"
    assert not stream.busy
    assert stream.take() is None
    assert isinstance(stream.damage, KeyError)
    assert not stream.busy
    assert stream.take() is None
    assert not stream.busy
    assert seen == [True] * 5


def test_an_unreadable_message_is_kept_as_damage(kernel: ModuleType) -> None:
    """What is wrong with a message, or a decoder's error, is not raised, since its reader holds a
    lock to say more of it: `find_more` is called. The messages before it are returned."""
    data = bytearray(TWO)
    data[-1] ^= 1
    refused = stream_of(kernel, TWO, decoder=lambda value: {b"a": 1}[value])
    for stream, kind in ((stream_of(kernel, data), CorruptMessage), (refused, KeyError)):
        assert ([0], None) == ([message.offset for message in stream], stream.ended)
        assert isinstance(stream.damage, kind)


def test_a_claimed_set_is_for_one_thread(kernel: ModuleType) -> None:
    """Another one gets no message, and moves nothing: `find_more` says what it gets."""
    stream = stream_of(kernel, TWO)
    assert elsewhere(stream.take).value == b"a"
    stream.claim()
    assert elsewhere(stream.take) is None
    assert (stream.messages.position_offset, stream.ended) == (0, None)
    assert stream.take().value == b"b"


def test_it_does_not_read_what_is_not_there(kernel: ModuleType) -> None:
    """Without messages it fails; the compiled one reads no memory that is not theirs."""
    stream = stream_of(kernel, TWO)
    stream.messages = None
    assert (stream.take(), type(stream.damage), stream.busy) == (None, TypeError, False)


def test_an_interrupt_loses_no_message() -> None:
    """A signal handler that raises while the first message of a set is taken: the compiled loop has
    the message before it runs. (PyErr_SetInterrupt does what the arrival of SIGINT does. The twin
    is Python itself, and a handler may run in the middle of a message.)"""
    kernel = native_or_skip()
    interrupt = ctypes.pythonapi.PyErr_SetInterrupt
    interrupt.argtypes = [ctypes.py_object]
    keyed = message_set.encode([(b"k", b"b"), (None, b"c")], 0, 1)
    following = kernel.messages(keyed, "t", 0, 1, refuse, key_decoder=interrupt)

    def find_more(_: object) -> float:
        stream.messages = following
        return 0.0

    stream = stream_of(kernel, message_set.encode([(None, b"a")], 0, 0), find_more)
    seen = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (a loop has what it tests)
        for message in stream:
            seen.append(message.value)
    assert seen == [b"a", b"b"]
    assert next(stream).value == b"c"


def test_a_loop_keeps_its_owner(kernel: ModuleType) -> None:
    """A connector lives as long as somebody iterates one of its streams."""
    loop = kernel.StreamLoop(stream_of(kernel, TWO), (owner := object()))
    assert loop.owner is owner
    assert [message.value for message in loop] == [b"a", b"b"]
    assert iter(loop) is loop
