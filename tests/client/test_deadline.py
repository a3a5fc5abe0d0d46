"""giving_up_at: one deadline for all requests, retries and waits of a piece of work."""

from __future__ import annotations

from math import inf

import pytest

from kafka08.client.retry import RetryPolicy, retry
from kafka08.client.run_concurrently import run_concurrently
from kafka08.errors import ConnectionFailed, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest
from kafka08.runtime.threads import THREADS
from kafka08.waiting import give_up_at, giving_up_at
from tests.mock_clock import MockClock
from tests.network.scripted import ScriptedNetwork


def test_the_earliest_deadline_counts() -> None:
    """A block inside another one cannot take longer, and the next block begins anew."""
    with giving_up_at(10):
        with giving_up_at(20):
            assert give_up_at() == 10
        with giving_up_at(5):
            assert give_up_at() == 5
        assert give_up_at() == 10
    assert give_up_at() == inf


def test_it_holds_in_calls_side_by_side() -> None:
    """They run in tasks of their own."""
    with giving_up_at(7):
        assert run_concurrently([give_up_at] * 3, THREADS, "test") == [7, 7, 7]


def test_no_retry_begins_behind_it() -> None:
    """However many tries are left."""
    clock = MockClock()

    def fail() -> None:
        clock.sleep(1.0)
        raise ConnectionFailed("gone")

    policy = RetryPolicy(tries=1000, backoff_ms=100)
    with giving_up_at(clock.monotonic() + 10), pytest.raises(ConnectionFailed):
        retry(fail, policy, clock, what="test")
    assert sum(clock.slept) == pytest.approx(10, abs=1.1)


def test_a_response_is_awaited_until_then() -> None:
    """Not for the connection's timeout, if that is longer."""
    network = ScriptedNetwork()
    network.broker("b1", 9092, lambda _: None)
    clock = MockClock()
    connection = Connection("b1", 9092, timeout_ms=30_000, runtime=network.runtime(clock))
    with (
        giving_up_at(clock.monotonic() + 2),
        pytest.raises(RequestTimeout, match="within 2000 ms"),
    ):
        connection.send(MetadataRequest(None))
    with pytest.raises(RequestTimeout, match="within 30000 ms"):
        connection.send(MetadataRequest(None))
