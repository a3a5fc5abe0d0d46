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
    """Around what starts processes: KafkaError for an OSError of ADVICE, and without memory."""
    try:
        yield
    except MemoryError as error:
        raise _without_memory("no memory is left") from error
    except RuntimeError as error:
        # Python says no more: its stack found no room, or the user has no process left.
        if str(error) != "can't start new thread":
            raise
        raise _without_memory("no thread can be started") from error
    except OSError as error:
        advice = ADVICE.get(error.errno or 0)
        if advice is None:
            raise
        raise KafkaError(f"the cluster cannot start: {reason_of(error)}: {advice}") from error


def _without_memory(reason: str) -> KafkaError:
    advice = "end programs, or raise the limits of memory and of processes (ulimit -v, ulimit -u)"
    return KafkaError(f"the cluster cannot start: {reason}: {advice}")
