"""GroupLags: the lag of a group in each partition that concerns it. Pure.

Where a group has committed nothing, it has the lag of every other such group. A thousand groups in
a thousand partitions have a million lags, most of them of this kind. So these are worked out once
for each topic, and a group costs as much as it has committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kafka08.observe.lag import Lag
from kafka08.structs import TopicPartition


@dataclass(slots=True)
class LagSum:
    """The lags of some partitions of a group.

    partitions   number of them
    known        of those whose lag is known, if only as a lower bound; `messages`: their sum
    unread       of those with a lag above 0
    inexact      of those whose lag is a lower bound, or unknown
    """

    partitions: int = 0
    known: int = 0
    messages: int = 0
    unread: int = 0
    inexact: int = 0

    def add(self, lag: Lag, times: int = 1) -> None:
        """Count this lag; -1: no longer."""
        self.partitions += times
        if not lag.is_exact:
            self.inexact += times
        if lag.messages is not None:
            self.known += times
            self.messages += times * lag.messages
            if lag.messages:
                self.unread += times

    def __add__(self, other: LagSum) -> LagSum:
        return LagSum(
            self.partitions + other.partitions,
            self.known + other.known,
            self.messages + other.messages,
            self.unread + other.unread,
            self.inexact + other.inexact,
        )

    @property
    def lag(self) -> int | None:
        """None if it is known of no partition: unknown is not 0."""
        return self.messages if self.known else None


@dataclass(slots=True)
class Uncommitted:
    """A topic for groups that have committed nothing in it: partition → lag."""

    lags: Mapping[TopicPartition, Lag]
    sum: LagSum = field(init=False)

    def __post_init__(self) -> None:
        self.sum = sum_of(self.lags.values())

    def known(self) -> dict[TopicPartition, int]:
        """partition → messages, where the lag is known."""
        return {tp: at.messages for tp, at in self.lags.items() if at.messages is not None}


class GroupLags(Mapping[TopicPartition, Lag]):
    """own           partition → lag, where the group has an offset, or its lag is like no other's
    uncommitted   topic → its lags, for all that concern it, and so for all of `own`, which
                  replaces some of them
    """

    __slots__ = ("own", "uncommitted")

    def __init__(
        self, own: Mapping[TopicPartition, Lag], uncommitted: Mapping[str, Uncommitted]
    ) -> None:
        self.own = own
        self.uncommitted = uncommitted

    def __getitem__(self, tp: TopicPartition) -> Lag:
        lag = self.own.get(tp)
        return self.uncommitted[tp.topic].lags[tp] if lag is None else lag

    def __iter__(self) -> Iterator[TopicPartition]:
        yield from self.own
        for one in self.uncommitted.values():
            yield from (tp for tp in one.lags if tp not in self.own)

    def __len__(self) -> int:
        return sum(one.partitions for one in self.by_topic().values())

    def rest(self) -> dict[str, LagSum]:
        """topic → the lags of its partitions that are not in `own`."""
        found = {topic: one.sum + LagSum() for topic, one in self.uncommitted.items()}
        for tp in self.own:
            lag = self.uncommitted[tp.topic].lags.get(tp)
            if lag is not None:  # the partition exists
                found[tp.topic].add(lag, -1)
        return found

    def by_topic(self) -> dict[str, LagSum]:
        """topic → the lags of all its partitions that concern the group."""
        found = self.rest()
        for tp, lag in self.own.items():
            found[tp.topic].add(lag)
        return found

    def total(self) -> LagSum:
        return sum(self.by_topic().values(), LagSum())


def sum_of(lags: Iterable[Lag]) -> LagSum:
    found = LagSum()
    for lag in lags:
        found.add(lag)
    return found
