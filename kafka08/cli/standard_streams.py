"""Standard streams as the parent process leaves them: closed, as `>&-` does, or in an encoding that
lacks characters."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, Final, NoReturn

STDIN: Final = 0
DESCRIPTORS: Final = (STDIN, 1, 2)


def open_closed_streams() -> None:
    """Make a closed stdout fail when something is written, as other programs do: Python drops the
    output, and the exit code would be 0. The three descriptors stay taken, for otherwise the next
    socket would become stdout or stderr. Source: stdopen of gnulib."""
    for descriptor in DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free descriptor is this one. Opened the wrong way round, it fails.
            os.open(os.devnull, os.O_WRONLY if descriptor == STDIN else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(ClosedOutput(), encoding="utf-8", write_through=True)


def escape_what_stdout_lacks() -> None:
    """Names of topics and groups may have letters that the encoding of a locale has not: escape
    them, as Python does on stderr, rather than end in a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


class ClosedOutput(io.RawIOBase):
    """The bytes of a closed stdout: each write is an OSError."""

    def writable(self) -> bool:
        return True

    def write(self, _: Any, /) -> NoReturn:
        raise closed_output()

    def fileno(self) -> NoReturn:
        raise closed_output()


def closed_output() -> OSError:
    return OSError(errno.EBADF, "standard output is closed")
