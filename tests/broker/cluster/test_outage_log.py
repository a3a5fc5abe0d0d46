"""While a broker has no ZooKeeper its log says why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.broker.cluster.outage_log import log_outage
from kafka08.zk.session import SessionState

NEVER = SessionState.NEW


def test_each_check_of_an_outage_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """Only while there is none: not before the first connection, nor if it is back by the time
    that the reason is known, nor after the end."""
    states = [SessionState.SUSPENDED] * 2 + [SessionState.GONE] * 2
    states += [SessionState.SUSPENDED, SessionState.CONNECTED, NEVER, SessionState.CLOSED]
    for _ in range(5):
        log_outage(7, store(states))
    log_outage(7, None)
    says = "[Kafka Server 7], no connection to ZooKeeper: h:2181: connection refused"
    assert [says] * 2 == [record.getMessage() for record in caplog.records]
    assert states == []


def store(states: list[SessionState]) -> Any:
    """A store whose session has these states, one at each look."""

    class Session:
        @property
        def state(self) -> SessionState:
            return states.pop(0)

        def why_unreachable(self) -> str:
            return "h:2181: connection refused"

    return SimpleNamespace(zk=Session())
