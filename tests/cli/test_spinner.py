"""kafka08.cli.spinner shows the peer of a long wait, and removes the text afterwards."""

from __future__ import annotations

import io
import math
import socket
import threading
import time
from contextlib import nullcontext
from typing import Any

import pytest

from kafka08 import waiting
from kafka08.cli.spinner import ERASE_LINE, PLAIN_FRAMES, PlainWaits, Spinner
from kafka08.errors import ConnectionFailed, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest
from kafka08.zk.client import ZkClient


class Terminal(io.StringIO):
    """A terminal that signals each write."""

    encoding = "ascii"

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()
        self.erased = threading.Event()

    def write(self, text: str) -> int:
        done = super().write(text)
        if text == ERASE_LINE:
            self.erased.set()
        return done

    def flush(self) -> None:
        self.written.set()


def test_a_long_wait_is_shown_and_wiped_away() -> None:
    """A long wait shows a sign and the text, and leaves an empty line. A terminal without UTF-8
    gets ASCII."""
    terminal = Terminal()
    spinner = Spinner(terminal, after_s=0.01)
    with spinner.wait_for("ZooKeeper at h:1"):
        assert terminal.written.wait(60)
    assert terminal.erased.wait(60)
    shown = terminal.getvalue()
    assert shown.startswith(f"{ERASE_LINE}{PLAIN_FRAMES[0]} Waiting for ZooKeeper at h:1")
    assert shown.endswith(ERASE_LINE)


def test_many_short_waits_are_not_shown() -> None:
    """Many short waits, as every command has for ZooKeeper, are not shown. The next long one is."""
    terminal = Terminal()
    spinner = Spinner(terminal, after_s=0.3)
    longest_s = 0.0  # None is long, unless this thread gets no turn meanwhile.
    for _ in range(1000):
        began = time.monotonic()
        with spinner.wait_for("ZooKeeper"):
            pass
        longest_s = max(longest_s, time.monotonic() - began)
    with spinner.wait_for("broker h:2"):
        assert terminal.written.wait(60)
    assert "ZooKeeper" not in terminal.getvalue() or longest_s >= 0.3
    assert "Waiting for broker h:2" in terminal.getvalue()


@pytest.mark.parametrize("negotiates", [False, True])
def test_a_silent_broker_and_a_silent_zookeeper_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, zk: ZkClient, negotiates: bool
) -> None:
    """The spinner appears while a broker or a ZooKeeper does not respond, not only while the client
    connects; also where the first question is for the broker's versions."""
    waits: list[str] = []

    def announce(who: Any) -> Any:
        waits.append(str(who))
        return nullcontext()

    monkeypatch.setattr(waiting, "_announce", announce)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        connection = Connection("127.0.0.1", port, timeout_ms=100, negotiates=negotiates)
        with pytest.raises((RequestTimeout, ConnectionFailed)), connection:
            connection.send(MetadataRequest([]))
    assert [f"broker 127.0.0.1:{port}"] * 2 == waits
    waits.clear()
    zk.exists("/")
    assert [f"ZooKeeper at {zk.hosts}"] == waits


def test_in_a_pipe_silence_is_broken_by_lines() -> None:
    """Short waits that follow each other are as silent as a long one: after a while a line has the
    peer of that moment, then another one."""
    pipe = Terminal()
    waits = PlainWaits(pipe, silence_s=0.05)
    while "h:2" not in pipe.getvalue():
        with waits.wait_for("h:1"):
            time.sleep(0.03)
        with waits.wait_for("h:2"):
            time.sleep(0.06)
    assert all(line.startswith("Waiting for h:") for line in pipe.getvalue().splitlines())


def test_a_command_that_computes_says_that_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without any wait, but not while it writes lines of its own, and not before the end of a
    command that answers at once."""
    pipe, now, said_at = Terminal(), 0.0, -math.inf
    monkeypatch.setattr("kafka08.cli.spinner.last_said", lambda: said_at)
    waits = PlainWaits(pipe, silence_s=1.5, working_s=2.0, monotonic=lambda: now)

    def shown(at_s: float) -> list[str]:
        nonlocal now
        now = at_s
        waits._turn()
        return pipe.getvalue().splitlines()

    assert [] == shown(1.9)
    assert ["Working (2 s)"] == shown(2.1)
    said_at = 3.0
    assert 1 == len(shown(4.9))
    with waits.wait_for("h:1"):
        assert "Working (5 s)" == shown(5.1)[-1]
        assert "Waiting for h:1 (7 s)" == shown(6.7)[-1]
    waits.end()


def test_lines_end_with_the_command() -> None:
    """Or where it begins to serve: then the thread ends, too."""
    pipe = Terminal()
    waits = PlainWaits(pipe, silence_s=0.01, working_s=0.01)
    waits.start()
    assert pipe.written.wait(60)
    waits.end()
    assert waits._thread is not None
    waits._thread.join(60)
    assert not waits._thread.is_alive()
