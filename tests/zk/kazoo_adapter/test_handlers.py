"""The handlers' `select`: which sockets are ready."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time

import pytest

from kafka08.zk.kazoo_adapter.handlers import ThreadHandler, ready


def test_those_that_can_be_read_and_written() -> None:
    """Each in its own list, as `select.select` returns them; also one whose peer has gone."""
    handler = ThreadHandler()
    left, right = socket.socketpair()
    with left, right:
        assert handler.select([left], [right], [], 5) == ([], [right], [])
        right.send(b"x")
        assert handler.select([left, right], [], [], 5) == ([left], [], [])
        left.recv(1)
        right.close()
        assert handler.select([left], [], [], None) == ([left], [], [])


@pytest.mark.parametrize("timeout", [0.02, 0, -1])
def test_none_in_time(timeout: float) -> None:
    """Without a ready one it returns after the timeout, at once for a negative one."""
    left, right = socket.socketpair()
    with left, right:
        began = time.monotonic()
        assert ready(select.poll(), [left], [], [], timeout) == ([], [], [])
        assert max(timeout, 0) <= time.monotonic() - began < 5


def test_a_closed_socket() -> None:
    """Is an error, which kazoo takes for a lost connection."""
    left, right = socket.socketpair()
    left.close()
    with right, pytest.raises(ValueError, match="negative"):
        ThreadHandler().select([left], [], [], 1)


GREEN = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent, socket, time
from kafka08.zk.kazoo_adapter.green_handler import GreenHandler

handler = GreenHandler()
left, right = socket.socketpair()
turns, is_over = 0, False

def count():
    global turns
    while not is_over:
        turns += 1
        gevent.sleep(0)

gevent.spawn(count)
right.send(b"x")
end = time.monotonic() + 0.1
while time.monotonic() < end:
    assert handler.select([left], [], [], 5) == ([left], [], [])
is_over = True
assert turns > 10
left.recv(1)
assert handler.select([left], [], [], 0.01) == ([], [], [])
gevent.spawn_later(0.01, right.send, b"y")
assert handler.select([left], [right], [], 5) == ([], [right], [])
assert handler.select([left], [], [], None) == ([left], [], [])
"""


def test_other_greenlets_have_their_turns() -> None:
    """Also while a session has one response after another; and they run while it waits."""
    subprocess.run([sys.executable, "-c", GREEN], check=True, timeout=60)
