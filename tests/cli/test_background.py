"""Work in a background thread, and the wait for it."""

from __future__ import annotations

import threading

from kafka08.cli.background import Background


def test_the_result_is_there_when_the_end_is_told() -> None:
    """Who is told of the end needs no time to take the result, although the thread still runs."""
    told, taken = threading.Event(), threading.Event()

    def tell() -> None:
        told.set()
        taken.wait()

    work = Background(lambda: 7, name="work", on_end=tell)
    told.wait()
    try:
        assert 7 == work.result(0)
    finally:
        taken.set()
