"""GreenStream: what a Stream promises, on gevent's loop, with one alarm for all waits."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import gevent
import gevent.socket
import pytest

from kafka08.runtime.green_stream import GreenStream

LONG = 30.0
"""Seconds; no test waits so long."""
SHORT = 0.02

Ends = tuple[GreenStream, gevent.socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = gevent.socket.socketpair()
    stream = GreenStream(ours)
    stream.settimeout(LONG)
    yield stream, theirs
    stream.close()
    theirs.close()


def received_by(stream: GreenStream) -> bytes:
    """The bytes that come next, one at most."""
    buffer = bytearray(1)
    return bytes(buffer[: stream.recv_into(buffer)])


def test_a_call_waits_for_bytes_and_the_end(ends: Ends) -> None:
    """Other greenlets run while a call waits."""
    stream, theirs = ends
    gevent.spawn_later(SHORT, theirs.sendall, b"abc")
    buffer = bytearray(2)
    assert (2, b"ab") == (stream.recv_into(buffer), bytes(buffer))
    assert (True, b"c") == (stream.peek(), received_by(stream))
    gevent.spawn_later(SHORT, theirs.shutdown, socket.SHUT_WR)
    assert not stream.peek()
    assert b"" == received_by(stream)


def test_a_wait_ends_with_its_own_timeout(ends: Ends) -> None:
    """An alarm that was set for an earlier wait ends no later one that may take longer, and one for
    a longer wait does not keep a shorter one waiting; afterwards the stream is as before."""
    stream, theirs = ends
    stream.settimeout(SHORT)
    gevent.spawn(theirs.sendall, b"a")
    assert b"a" == received_by(stream)
    stream.settimeout(LONG)
    gevent.spawn_later(5 * SHORT, theirs.sendall, b"b")
    assert b"b" == received_by(stream)
    stream.settimeout(SHORT)
    for _ in range(2):
        with gevent.Timeout(LONG / 2), pytest.raises(TimeoutError):
            received_by(stream)
    theirs.sendall(b"c")
    assert b"c" == received_by(stream)


def test_a_timeout_of_zero_does_not_wait(ends: Ends) -> None:
    """The call does not switch either."""
    stream, _ = ends
    stream.settimeout(0)
    ran: list[int] = []
    gevent.spawn(ran.append, 1)
    with pytest.raises(BlockingIOError):
        received_by(stream)
    assert not ran


def test_an_abort_wakes_a_greenlet_that_waits(ends: Ends) -> None:
    """It wakes one without a timeout too."""
    stream, _ = ends
    stream.settimeout(None)
    gevent.spawn(stream.abort)
    with gevent.Timeout(LONG):
        assert b"" == received_by(stream)


def test_all_is_sent_or_the_time_is_over(ends: Ends) -> None:
    """More than the sockets hold, with and without a reader."""
    stream, theirs = ends
    data = bytes(range(256)) * 40_000
    sending = gevent.spawn(stream.sendall, data)
    received = bytearray()
    while len(received) < len(data):
        received += theirs.recv(1 << 20)
    sending.get(timeout=LONG)
    assert data == received
    stream.settimeout(SHORT)
    with gevent.Timeout(LONG), pytest.raises(TimeoutError):
        stream.sendall(data)


def test_a_killed_greenlet_waits_no_more(ends: Ends) -> None:
    """The timeout of its wait raises in no greenlet, and another one can read."""
    stream, theirs = ends
    stream.settimeout(SHORT)
    waiting = gevent.spawn(received_by, stream)
    gevent.sleep(0)
    waiting.kill()
    gevent.sleep(5 * SHORT)
    stream.settimeout(LONG)
    gevent.spawn(theirs.sendall, b"a")
    assert b"a" == received_by(stream)
