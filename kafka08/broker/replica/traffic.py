"""Traffic: what partitions have counted, together."""

from __future__ import annotations

from collections.abc import Collection
from operator import add, attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition


class Traffic(NamedTuple):
    """The counts of a Partition, under its names."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_rejected: int = 0
    produce_requests: int = 0
    failed_produce_requests: int = 0
    fetch_requests: int = 0
    failed_fetch_requests: int = 0

    def plus(self, other: Traffic) -> Traffic:
        return Traffic(*map(add, self, other))


_counts = tuple(map(attrgetter, Traffic._fields))


def traffic_of(partitions: Collection[Partition]) -> Traffic:
    """The sums over partitions; there may be ten thousand, and a broker's loop waits."""
    return Traffic(*[sum(map(count, partitions)) for count in _counts])
