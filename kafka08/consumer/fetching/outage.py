"""Outage: a retriable failure, from its first error to the next success."""

from __future__ import annotations

from math import inf
from typing import Final

from kafka08.errors import ConsumerCoordinatorNotAvailable, KafkaError, UnstableOffsetCommit

QUIET_S: Final = 5.0
"""How long a coordinator may be missing, or a transaction open, without a warning: the first search
for a coordinator creates the offsets topic."""


class Outage:
    """Belongs to what fails: a partition's fetches, a member's requests, a search for positions.

    error   the last error; None: there is no outage
    since   when the first error after a success came (monotonic seconds); inf: there is no outage
    """

    __slots__ = ("error", "since")

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.since = inf

    def failed(self, error: KafkaError, now: float) -> bool:
        """Note an error. True if it begins an outage."""
        begins = self.error is None
        if begins:
            self.since = now
        self.error = error
        return begins

    def end(self) -> None:
        """Note a success."""
        self.error = None
        self.since = inf

    def lasting(self, seconds: float, now: float) -> KafkaError | None:
        """The last error of an outage of at least `seconds`."""
        return self.error if now - self.since >= seconds else None


def deserves_warning(outage: Outage, now: float) -> bool:
    """Whether to log an outage now: a coordinator that is only about to exist needs no warning, nor
    does a transaction that is about to end."""
    return now - outage.since >= QUIET_S or not isinstance(
        outage.error, ConsumerCoordinatorNotAvailable | UnstableOffsetCommit
    )
