"""A spinner on stderr while somebody else keeps the command waiting. On terminals only."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

AFTER_SECONDS: Final = 1.0
"""A wait that is shorter is not worth a word."""
STEP_SECONDS: Final = 0.1
FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_FRAMES: Final = "|/-\\"
ERASE_LINE: Final = "\r\x1b[K"


def show_waits_for_zookeeper() -> None:
    """Turn a spinner in every wait for ZooKeeper, if stderr is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        from kafka08.zk.waiting import announce_with

        announce_with(lambda hosts: spinner(f"Waiting for ZooKeeper at {hosts}", sys.stderr))


@contextmanager
def spinner(text: str, terminal: TextIO, after_s: float = AFTER_SECONDS) -> Iterator[None]:
    """Show `text` with a turning sign from `after_s` on; at the end the line is empty again."""
    done = threading.Event()
    turning = threading.Thread(
        target=_turn, args=(text, terminal, after_s, done), name="spinner", daemon=True
    )
    turning.start()
    try:
        yield
    finally:
        done.set()
        turning.join()


def _turn(text: str, terminal: TextIO, after_s: float, done: threading.Event) -> None:
    if done.wait(after_s):
        return
    unicode = (terminal.encoding or "").lower().startswith("utf")
    for frame in itertools.cycle(FRAMES if unicode else PLAIN_FRAMES):
        terminal.write(f"{ERASE_LINE}{frame} {text}")
        terminal.flush()
        if done.wait(STEP_SECONDS):
            break
    terminal.write(ERASE_LINE)
    terminal.flush()
