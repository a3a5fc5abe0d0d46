"""Which errors a client retries, how often, and how long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kafka08 import waiting
from kafka08.clock import Clock
from kafka08.errors import (
    ApiError,
    ConnectionFailed,
    InvalidMessage,
    KafkaError,
    NoBrokersAvailable,
    RequestTimeout,
    UnknownError,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

PASSING = (ConnectionFailed, RequestTimeout, NoBrokersAvailable)
"""Errors that clients raise themselves and that a retry may cure."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Up to `tries` attempts in all (at least 1), with `backoff_ms` between them. The last begins
    `within_s` after the first at the latest, or as long as all the backoffs take.

    Tries bound errors that come at once, such as that of a partition without a leader. They bound
    no time: an attempt may wait for each of many silent brokers.
    """

    tries: int = 4
    backoff_ms: int = 100
    within_s: float = 10.0

    def __post_init__(self) -> None:
        assert self.tries >= 1
        assert self.backoff_ms >= 0

    @property
    def longest_s(self) -> float:
        """The time in which attempts begin."""
        return max(self.within_s, self.tries * self.backoff_ms / 1000)


def is_retriable(error: KafkaError) -> bool:
    """Whether the same request may succeed later."""
    return error.retriable if isinstance(error, ApiError) else isinstance(error, PASSING)


def may_be_stored_later(error: KafkaError) -> bool:
    """As `is_retriable`, for a Produce request: a set that was damaged on its way can be sent
    again. Source: CorruptRecordException."""
    return is_retriable(error) or isinstance(error, InvalidMessage)


def needs_metadata(error: KafkaError) -> bool:
    """Whether to look up the leader before the next attempt. An unreachable broker counts: its
    partitions may have moved."""
    return error.refresh_metadata if isinstance(error, ApiError) else isinstance(error, PASSING)


def is_retriable_at_leader(error: KafkaError) -> bool:
    """As `is_retriable`, for a Fetch or an Offsets request.

    # 0.8: KafkaApis.fetchOffsetsBefore reads the segments more than once, and returns UnknownError
    # if one was rolled in between. A fetch between the high watermark and the log end, as just
    # after a leader change, also returns it.
    """
    return is_retriable(error) or isinstance(error, UnknownError)


def is_retriable_at_coordinator(error: KafkaError) -> bool:
    """Like `is_retriable`, for responses about committed offsets: there an unknown partition, or
    one led elsewhere, is an error of the request, and a retry does not change it."""
    return is_retriable(error) and not (isinstance(error, ApiError) and error.refresh_metadata)


def retry(
    attempt: Callable[[], T],
    policy: RetryPolicy,
    clock: Clock,
    *,
    what: str,
    passes: Callable[[KafkaError], bool] = is_retriable,
    before_next: Callable[[KafkaError], None] = lambda _: None,
    give_up_at: float | None = None,
) -> T:
    """The result of the first attempt that succeeds; the error of the last one otherwise.

    Only an error that `passes` is retried. `before_next` runs before each retry, after the backoff:
    forget a leader, refresh metadata. An error that it raises counts as that attempt's error. No
    retry begins after `give_up_at` (monotonic seconds; None: as the policy says), nor after that of
    `giving_up_at`.
    """
    if give_up_at is None:
        give_up_at = clock.monotonic() + policy.longest_s
    give_up_at = min(give_up_at, waiting.give_up_at())
    failed: KafkaError | None = None
    backoff_s = policy.backoff_ms / 1000
    for tries_left in range(policy.tries - 1, -1, -1):
        try:
            if failed is not None:
                before_next(failed)
            return attempt()
        except KafkaError as error:
            if not passes(error) or tries_left == 0:
                raise
            if clock.monotonic() + backoff_s > give_up_at:
                raise
            logger.info("%s: %s; %d tries left", what, error, tries_left)
            failed = error
            clock.sleep(backoff_s)
    raise AssertionError("the last try returns or raises")
