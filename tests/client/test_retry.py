"""retry: how often, after which errors, and what happens in between."""

from __future__ import annotations

import pytest

from kafka08.client.retry import (
    RetryPolicy,
    is_retriable,
    is_retriable_at_coordinator,
    needs_metadata,
    retry,
)
from kafka08.errors import (
    ConnectionFailed,
    KafkaError,
    NotCoordinatorForConsumer,
    NotLeaderForPartition,
    OffsetOutOfRange,
    OffsetsLoadInProgress,
    ProtocolError,
    RequestTimedOut,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from tests.mock_clock import MockClock


class Attempts:
    """An operation that raises these errors, one a call, and then returns how often it ran."""

    def __init__(self, *errors: KafkaError) -> None:
        self.errors = list(errors)
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.count


def test_success_ends_it() -> None:
    """No wait before the first try, the backoff before each further one."""
    clock = MockClock()
    attempts = Attempts(ConnectionFailed(), RequestTimeout())
    assert retry(attempts, RetryPolicy(4, 250), clock, what="x") == 3
    assert clock.slept == [0.25, 0.25]


def test_the_last_error_is_raised_when_tries_are_used_up() -> None:
    """`tries` counts all attempts; after the last there is no wait."""
    clock = MockClock()
    attempts = Attempts(ConnectionFailed("1"), ConnectionFailed("2"), ConnectionFailed("3"))
    with pytest.raises(ConnectionFailed, match="2"):
        retry(attempts, RetryPolicy(2, 100), clock, what="x")
    assert clock.slept == [0.1]


def test_no_retry_begins_after_the_time_to_give_up() -> None:
    """The backoff before it counts; one that would begin at that time is made."""
    clock = MockClock()
    attempts = Attempts(*[ConnectionFailed()] * 9)
    with pytest.raises(ConnectionFailed):
        retry(attempts, RetryPolicy(9, 250), clock, what="x", give_up_at=clock.monotonic() + 0.5)
    assert 3 == attempts.count
    assert clock.slept == [0.25, 0.25]


@pytest.mark.parametrize(("policy", "longest_s"), [((9, 100), 10.0), ((100, 250), 25.0)])
def test_tries_begin_for_a_limited_time(policy: tuple[int, int], longest_s: float) -> None:
    """However long each takes: as long as all the backoffs, and 10 s if those take less."""
    clock = MockClock()
    began = clock.monotonic()

    def fail() -> None:
        clock.advance(4.0)
        raise RequestTimeout

    with pytest.raises(RequestTimeout):
        retry(fail, RetryPolicy(*policy), clock, what="x")
    assert longest_s - 4.3 < clock.monotonic() - began < longest_s + 4.0


def test_an_error_that_does_not_pass_is_raised_at_once() -> None:
    """OffsetOutOfRange will not go away by asking again."""
    attempts = Attempts(OffsetOutOfRange())
    with pytest.raises(OffsetOutOfRange):
        retry(attempts, RetryPolicy(), MockClock(), what="x")
    assert attempts.count == 1


def test_before_next_sees_the_error_and_its_own_failure_counts_as_the_try() -> None:
    """When not even the metadata can be had, the attempt is over."""
    attempts = Attempts(NotLeaderForPartition(), NotLeaderForPartition())
    seen: list[KafkaError] = []

    def refresh(error: KafkaError) -> None:
        seen.append(error)
        if len(seen) == 1:
            raise ConnectionFailed("no metadata")

    assert retry(attempts, RetryPolicy(4), MockClock(), what="x", before_next=refresh) == 3
    assert [type(error) for error in seen] == [
        NotLeaderForPartition,
        ConnectionFailed,
        NotLeaderForPartition,
    ]


def test_which_errors_pass() -> None:
    """The table of errors decides for codes; connections may come back, bad bytes do not."""
    assert is_retriable(RequestTimedOut())
    assert not is_retriable(ProtocolError())
    assert needs_metadata(NotLeaderForPartition())
    assert needs_metadata(ConnectionFailed())
    assert not needs_metadata(RequestTimedOut())
    assert is_retriable_at_coordinator(NotCoordinatorForConsumer())
    assert is_retriable_at_coordinator(OffsetsLoadInProgress())
    assert not is_retriable_at_coordinator(UnknownTopicOrPartition())
