"""Errors of a system that has nothing left, with what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka08.errors import KafkaError
from kafka08.listing import reason_of

ADVICE: Final = {
    errno.EMFILE: "raise this process's limit of open files (ulimit -n)",
    errno.ENFILE: "end programs, or raise the system's limit of open files (fs.file-max)",
    errno.ENOMEM: "end programs, or raise this process's limit of memory (ulimit -v)",
    errno.EAGAIN: "end programs, or raise this user's limit of processes (ulimit -u)",
    errno.ENOSPC: "make room in the directory of temporary files, or choose another one (TMPDIR)",
}


@contextmanager
def says_what_lacks() -> Iterator[None]:
    """Around what starts processes: KafkaError for an OSError of ADVICE."""
    try:
        yield
    except OSError as error:
        advice = ADVICE.get(error.errno or 0)
        if advice is None:
            raise
        raise KafkaError(f"the cluster cannot start: {reason_of(error)}: {advice}") from error
