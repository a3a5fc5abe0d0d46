"""The clock of tests with a FakeRuntime."""

from __future__ import annotations

from tests.broker.fake_runtime import FakeRuntime


def test_what_is_due_happens_while_code_sleeps() -> None:
    """A wait for something that a timer brings ends in a test too, and the clock never goes back,
    though a timer sleeps itself."""
    runtime = FakeRuntime()
    begin, seen = runtime.now, []

    def due() -> None:
        runtime.sleep(5.0)
        seen.append(runtime.now - begin)

    runtime.call_later(1.0, due)
    runtime.sleep(2.0)
    assert seen == [6.0]
    assert runtime.now - begin == 6.0
