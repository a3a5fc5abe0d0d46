"""kafka08.cli.message_output: how much of a pipe its reader has read."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafka08.cli import message_output
from kafka08.cli.message_output import SINGLE_MESSAGES, MessageOutput, OutputStalled, write_all


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass  # the test has closed it


def test_a_write_ends_when_the_reader_has_read_it(pipe: tuple[int, int]) -> None:
    """A write returns when the reader has read it. The first messages are written one by one; then
    each write may double, up to the limit."""
    reader, writer = pipe
    output = MessageOutput(writer, at_once=3)
    sizes = []
    for count in (1, SINGLE_MESSAGES - 1, 2, 3):
        sizes.append(output.at_once)
        read = threading.Timer(0.01, os.read, (reader, 10))
        read.start()
        output.write(b"line\n", count, threading.Event())
        assert not read.is_alive() or read.finished.is_set()
        read.join()
    assert [1, 1, 2, 3] == sizes


def test_a_reader_that_leaves_something_behind_is_noticed(pipe: tuple[int, int]) -> None:
    """A reader that ends with unread messages is noticed. It is unknown which of the read ones it
    used."""
    reader, writer = pipe
    output = MessageOutput(writer, at_once=3)

    def leave() -> None:
        os.read(reader, 2)
        os.close(reader)

    threading.Timer(0.01, leave).start()
    with pytest.raises(BrokenPipeError):
        output.write(b"line\n", 1, threading.Event())


def test_a_reader_that_ends_after_the_last_byte_is_noticed(pipe: tuple[int, int]) -> None:
    """A reader that ends after the last byte is noticed: `head -n 1` has read its line."""
    reader, writer = pipe
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        MessageOutput(writer, at_once=3).check_reader()


def test_a_stop_does_not_wait_for_a_slow_reader(pipe: tuple[int, int]) -> None:
    """A stop does not wait for a slow reader. A pager at its first page may read nothing for an
    hour."""
    stopping = threading.Event()
    stopping.set()
    MessageOutput(pipe[1], at_once=3).write(b"line\n", 1, stopping)


def test_a_stop_does_not_wait_for_room_in_a_full_pipe(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop ends a write that does not fit into the pipe of a reader that reads nothing, with an
    error: the messages are not printed."""
    monkeypatch.setattr(message_output, "STALLED_MS", 10)
    stopping = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_all, pipe[1], bytes(2_000_000), stopping)
        with pytest.raises(TimeoutError):
            writing.result(0.1)
        stopping.set()
        with pytest.raises(OutputStalled):
            writing.result(10)


def test_a_reader_that_reads_gets_everything_after_a_stop(pipe: tuple[int, int]) -> None:
    """A stop does not cut what a reader goes on reading."""
    reader, writer = pipe
    stopping = threading.Event()
    stopping.set()
    data = os.urandom(300_001)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_all, writer, data, stopping)
        with os.fdopen(reader, "rb", closefd=False) as read:
            assert read.read(len(data)) == data
        writing.result(10)


def test_a_slow_reader_gets_everything_after_a_stop(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe has room once a page of it was read, which takes a slow reader longer than a reader
    that reads nothing is waited for."""
    monkeypatch.setattr(message_output, "STALLED_MS", 50)
    reader, writer = pipe
    stopping = threading.Event()
    stopping.set()
    data = os.urandom(100_000)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_all, writer, data, stopping)
        read = bytearray()
        while len(read) < 5000:
            read += os.read(reader, 200)
            time.sleep(0.01)
        with os.fdopen(reader, "rb", closefd=False) as rest:
            read += rest.read(len(data) - len(read))
        writing.result(10)
    assert read == data


def test_a_system_that_does_not_tell_the_size_of_pipes(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Linux does."""
    monkeypatch.delattr(fcntl, "F_GETPIPE_SZ")
    write_all(pipe[1], b"x" * 10_000, threading.Event())
    assert b"x" * 10_000 == os.read(pipe[0], 20_000)


def test_a_file_is_written_at_once(tmp_path: Path) -> None:
    """A file is written at once, since no reader can leave."""
    with (tmp_path / "out").open("wb") as file:
        output = MessageOutput(file.fileno(), at_once=3)
        assert 3 == output.at_once
        output.write(b"line\n", 1, threading.Event())
    assert b"line\n" == (tmp_path / "out").read_bytes()
