"""kafka08.cli.spinner: who waits sees for what, and nothing of it is left."""

from __future__ import annotations

import io
import threading

from kafka08.cli.spinner import ERASE_LINE, PLAIN_FRAMES, spinner


class Terminal(io.StringIO):
    """Says when something was written to it."""

    encoding = "ascii"

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def flush(self) -> None:
        self.written.set()


def test_a_long_wait_is_shown_and_wiped_away() -> None:
    """The sign, the text, and at the end an empty line. A terminal without UTF-8 gets ASCII."""
    terminal = Terminal()
    with spinner("Waiting for ZooKeeper at h:1", terminal, after_s=0):
        assert terminal.written.wait(10)
    shown = terminal.getvalue()
    assert shown.startswith(f"{ERASE_LINE}{PLAIN_FRAMES[0]} Waiting for ZooKeeper at h:1")
    assert shown.endswith(ERASE_LINE)


def test_a_short_wait_is_not_shown() -> None:
    """Every command waits for ZooKeeper for a moment."""
    terminal = Terminal()
    with spinner("Waiting", terminal, after_s=60):
        pass
    assert "" == terminal.getvalue()
