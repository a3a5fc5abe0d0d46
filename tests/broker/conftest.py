"""Fixtures of the broker's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def no_bug(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails the test if a handler raised an exception that is not one of the protocol's errors."""
    yield
    bugs = [record for record in caplog.get_records("call") if record.exc_info]
    assert [] == [f"{bug.getMessage()}: {bug.exc_info}" for bug in bugs]
