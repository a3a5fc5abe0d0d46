"""Runs a call in a process forked from the test's, as gunicorn and multiprocessing do."""

from __future__ import annotations

import os
import select
import signal
import warnings
from collections.abc import Callable

SECONDS = 20


def in_child(call: Callable[[], object]) -> str:
    """What `call` returned in a forked process, or "<error>: <its text>"; "hangs" after SECONDS."""
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: that is what is tested
        pid = os.fork()
    if pid == 0:
        try:
            text = str(call())
        except BaseException as error:  # noqa: BLE001 - the child must not become a second test run
            text = f"{type(error).__name__}: {error}"
        os.write(writes, text.encode()[:4000])
        os._exit(0)
    os.close(writes)
    try:
        poll = select.poll()  # select() takes no descriptor above 1,023
        poll.register(reads)
        if not poll.poll(SECONDS * 1000):
            os.kill(pid, signal.SIGKILL)
            return "hangs"
        return os.read(reads, 4000).decode()
    finally:
        os.close(reads)
        os.waitpid(pid, 0)
