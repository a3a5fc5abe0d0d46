"""Fixtures of the broker's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.errors import ProtocolError


@pytest.fixture
def no_bug(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails the test if a handler raised an exception that is not one of the protocol's errors."""
    yield
    raised = [(record, record.exc_info) for record in caplog.get_records("call") if record.exc_info]
    bugs = [(bug, info) for bug, info in raised if not isinstance(info[1], ProtocolError)]
    assert [] == [f"{bug.getMessage()}: {info}" for bug, info in bugs]
