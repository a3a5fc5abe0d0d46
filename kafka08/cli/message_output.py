"""The descriptor to which a command prints messages; it knows how much of a pipe was read."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import struct
import sys
import termios
from typing import TYPE_CHECKING, Final

from kafka08.errors import KafkaError

if TYPE_CHECKING:
    from kafka08.runtime import Event

SHORTEST_PAUSE_S: Final = 0.0001
LONGEST_PAUSE_S: Final = 0.05
SINGLE_MESSAGES: Final = 100
"""This many messages are written one by one: a reader that reads one and ends has used it."""
EARLY_MESSAGES: Final = 1000
"""A reader like `head` rarely reads more than this before it ends."""
EARLY_GRACE_MS: Final = 5
"""How long such a reader may take to end after it has read everything."""
STALLED_MS: Final = 1000
"""After a stop, a reader that reads nothing for so long is not waited for."""


class OutputStalled(KafkaError):
    """The reader of the pipe does not read, and the command was stopped."""


class MessageOutput:
    """A file descriptor for messages. Not thread-safe.

    Data written to a pipe is not yet read: `kafka08 consume t | head -2` would fill it with
    messages that no program sees. So the first writes have one message each, and each write waits
    until the reader has read it: then the read messages are known when the reader ends.
    """

    def __init__(self, descriptor: int, at_once: int) -> None:
        """`at_once`: the most messages in one write while the reader keeps up."""
        self._descriptor = descriptor
        self._is_pipe = is_pipe(descriptor)
        self._most = at_once
        self._count = 0
        self.at_once = 1 if self._is_pipe else at_once
        """The number of messages for the next write: single ones first, then doubled each time."""

    def write(self, data: bytes, count: int, stopping: Event) -> None:
        """Write every byte of `count` messages, without buffering. To a pipe: return when its
        reader has read them or `stopping` is set. BrokenPipeError if it ended before;
        OutputStalled, OSError."""
        write_all(self._descriptor, data, stopping)
        self._count += count
        if self._is_pipe:
            self._await_reader(stopping)
            if self._count >= SINGLE_MESSAGES:
                self.at_once = min(2 * self.at_once, self._most)

    def check_reader(self, timeout_ms: int = 0) -> None:
        """BrokenPipeError if the reader is gone, so that `| head` ends also in a quiet topic."""
        check_reader(self._descriptor, timeout_ms)

    def _await_reader(self, stopping: Event) -> None:
        pause_s = SHORTEST_PAUSE_S
        while unread_bytes(self._descriptor):
            self.check_reader()
            if stopping.wait(pause_s):
                self.check_reader(EARLY_GRACE_MS)  # Ctrl-C may have stopped it too
                return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        is_early = SINGLE_MESSAGES < self._count <= EARLY_MESSAGES
        self.check_reader(EARLY_GRACE_MS if is_early else 0)


def output_descriptor() -> int:
    """The descriptor of stdout, without Python's buffers. Raises OSError if it is closed."""
    return sys.stdout.fileno()


def check_reader(descriptor: int, timeout_ms: int = 0) -> None:
    """BrokenPipeError if the reader of this end's pipe is gone, or goes in the next
    `timeout_ms`."""
    poll = select.poll()
    poll.register(descriptor, 0)
    if any(event & select.POLLERR for _, event in poll.poll(timeout_ms)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def write_all(descriptor: int, data: bytes, stopping: Event) -> None:
    """Write every byte of `data`, without buffering. OutputStalled if it is a full pipe, its reader
    reads nothing and `stopping` is set; OSError."""
    rest = memoryview(data)
    if not is_pipe(descriptor):
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    size = _pipe_bytes(descriptor)
    while rest:
        was_stopping, unread = stopping.is_set(), unread_bytes(descriptor)
        if not poll.poll(STALLED_MS):
            # A pipe has room only once a page of it was read.
            if was_stopping and unread_bytes(descriptor) == unread:
                raise OutputStalled(
                    "stopped, and the reader of the output reads nothing: the last messages are "
                    "not written completely, and count as not consumed"
                )
            continue
        # So much fits without waiting, if the pipe was empty, or has room at all.
        room = select.PIPE_BUF if unread else size
        rest = rest[os.write(descriptor, rest[:room]) :]


def is_pipe(descriptor: int) -> bool:
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)


def _pipe_bytes(descriptor: int) -> int:
    """How much a pipe holds, as far as the system tells."""
    get_size = getattr(fcntl, "F_GETPIPE_SZ", None)  # Linux alone
    return select.PIPE_BUF if get_size is None else fcntl.fcntl(descriptor, get_size)


def unread_bytes(descriptor: int) -> int:
    """The number of unread bytes in the pipe."""
    found = fcntl.ioctl(descriptor, termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", found)[0])
