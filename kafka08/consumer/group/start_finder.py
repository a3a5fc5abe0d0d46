"""StartFinder: finds the positions of partitions that have none yet.

An explicit reset (`seek_to_beginning`, `seek_to_end`) comes first, then the group's committed
offset, then auto.offset.reset. While an open transaction has a later offset of the group, a search
for the committed one fails. Searches run in their own tasks, so a poll that needs one ends in time
even if no broker responds. Each leader is asked in a search of its own: one that does not respond
holds up no partition of the others.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import starts_or_errors
from kafka08.client.retry import RetryPolicy
from kafka08.consumer.fetching.owned_partition import Position
from kafka08.consumer.group.committer import ask_committed
from kafka08.consumer.group.partitions import Start
from kafka08.errors import KafkaError, NoOffsetForPartition
from kafka08.listing import some_of
from kafka08.protocol.fetch import READ_UNCOMMITTED
from kafka08.runtime import ClientRuntime
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

TIMES: Final = {Start.EARLIEST: EARLIEST_OFFSET, Start.LATEST: LATEST_OFFSET}
POLICY: Final = RetryPolicy(tries=2)
Asked: TypeAlias = Mapping[TopicPartition, Start]
"""Partitions and how to find each."""


@dataclass(slots=True)
class Found:
    """The result of a search.

    asked       the partitions and how to find each
    epoch       of their assignment (Partitions.epoch)
    positions   partition → its position, where it was found
    without     partitions without a committed offset, while auto.offset.reset is none
    failures    partition → why its position could not be found
    """

    asked: Asked
    epoch: int
    positions: dict[TopicPartition, Position] = field(default_factory=dict)
    without: list[TopicPartition] = field(default_factory=list)
    failures: dict[TopicPartition, KafkaError] = field(default_factory=dict)

    def only(self, partitions: Iterable[TopicPartition]) -> Found:
        """The part of the result about these."""
        kept = set(partitions)
        return Found(
            {tp: start for tp, start in self.asked.items() if tp in kept},
            self.epoch,
            {tp: offset for tp, offset in self.positions.items() if tp in kept},
            [tp for tp in self.without if tp in kept],
            {tp: why for tp, why in self.failures.items() if tp in kept},
        )


def no_offset(partitions: Sequence[TopicPartition]) -> NoOffsetForPartition:
    """The error for partitions without a committed offset while auto.offset.reset is none."""
    return NoOffsetForPartition(
        f"no committed offset for {some_of(partitions)}, and auto.offset.reset is none. "
        "Seek to an offset, or set auto.offset.reset"
    )


class StartFinder:
    """See the module. A partition is in one search at a time. The public methods are for the
    user's thread.

    group     "": there are no committed offsets
    reset     auto.offset.reset; None: none
    isolation READ_COMMITTED: the log ends at its first open transaction
    on_found  called in the task of a search when it ends
    """

    def __init__(
        self,
        cluster: ClusterClient,
        group: str,
        reset: Start | None,
        *,
        isolation: int = READ_UNCOMMITTED,
        on_found: Callable[[], None],
        backoff_s: float,
        runtime: ClientRuntime,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._reset = reset
        self._isolation = isolation
        self._on_found = on_found
        self._backoff_s = backoff_s
        self._runtime = runtime
        self._found: deque[Found] = deque()
        self._searched: set[TopicPartition] = set()
        """The partitions of searches whose results were not taken yet."""
        self._forgotten: set[TopicPartition] = set()
        """Those of them whose results do not count."""
        self._closed = runtime.event()

    def begin(self, wanted: Asked, epoch: int) -> None:
        """Search for those of these that are in no search. Never blocks."""
        committed: list[TopicPartition] = []
        others: list[TopicPartition] = []
        for tp, start in wanted.items():
            if tp not in self._searched:
                is_in_group = self._group and start is Start.COMMITTED
                (committed if is_in_group else others).append(tp)
        for search, tps in ((self._find_committed, committed), (self._find_in_logs, others)):
            if tps:
                self._spawn(partial(self._run, search, _only(tps, wanted), epoch))
                self._searched.update(tps)  # not before: no thread, no search

    def searches(self, tp: TopicPartition) -> bool:
        """Whether `take` will return a result for this partition."""
        return tp in self._searched

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """The searches in progress may be older than what these are searched for now."""
        self._forgotten |= self._searched.intersection(partitions)

    def has_found(self) -> bool:
        """Whether `take` has a result."""
        return bool(self._found)

    def take(self) -> Found | None:
        """The result of a search, returned once; None without one."""
        if not self._found:
            return None
        found = self._found.popleft()
        self._searched.difference_update(found.asked)
        forgotten = self._forgotten.intersection(found.asked)
        self._forgotten -= forgotten
        return found.only(found.asked.keys() - forgotten) if forgotten else found

    def close(self) -> None:
        """End the pauses after failures. The requests in flight end with their connections."""
        self._closed.set()

    def _spawn(self, call: Callable[[], None]) -> None:
        self._runtime.spawn(call, name="kafka08-positions")

    def _run(self, search: Callable[[Asked, int], None], asked: Asked, epoch: int) -> None:
        """Each partition comes into one result, also if the search raises."""
        try:
            search(asked, epoch)
        except KafkaError as error:
            self._publish(Found(asked, epoch, failures=dict.fromkeys(asked, error)))
        except Exception as error:
            # The root of a task: the reader waits for its end.
            logger.exception("Uncaught error in the search for positions")
            failed = KafkaError(f"uncaught error in the search for positions: {error!r}")
            self._publish(Found(asked, epoch, failures=dict.fromkeys(asked, failed)))

    def _publish(self, found: Found) -> None:
        if found.failures:
            self._closed.wait(self._backoff_s)
        self._found.append(found)
        self._on_found()

    def _find_committed(self, asked: Asked, epoch: int) -> None:
        committed = self._cluster.ask_coordinator(
            self._group,
            lambda connection: ask_committed(connection, self._group, list(asked)),
            policy=POLICY,
            search_tries=1,
        )
        positions = {
            tp: Position(one.offset, one.leader_epoch)
            for tp, one in committed.offsets.items()
            if one is not None
        }
        if positions:
            self._publish(Found(_only(positions, asked), epoch, positions))
        if unstable := committed.unstable:
            found = Found(_only(unstable, asked), epoch, failures={**unstable})
            self._spawn(partial(self._publish, found))
        without = [tp for tp, one in committed.offsets.items() if one is None]
        if without:
            self._run(self._find_in_logs, _only(without, asked), epoch)

    def _find_in_logs(self, asked: Asked, epoch: int) -> None:
        """At the start or end of the log, by the leaders of the partitions."""
        times = {tp: time for tp, start in asked.items() if (time := self._time(start)) is not None}
        without = [tp for tp in asked if tp not in times]
        split, failures = self._cluster.by_leader(times) if times else ({}, {})
        searches = [
            partial(self._run, self._ask_leader, _only(part, asked), epoch)
            for part in split.values()
        ]
        if without:
            found = Found(_only(without, asked), epoch, without=without)
            searches.append(partial(self._publish, found))
        if failures:
            refresh = partial(self._refresh_leaders, failures)
            searches.append(partial(self._run, refresh, _only(failures, asked), epoch))
        for search in searches[:-1]:
            self._spawn(search)
        for search in searches[-1:]:
            search()

    def _refresh_leaders(
        self, failures: dict[TopicPartition, KafkaError], asked: Asked, epoch: int
    ) -> None:
        """Publish why these have no leader, after new metadata for the next search."""
        self._cluster.refresh({tp.topic for tp in asked})
        self._publish(Found(asked, epoch, failures=failures))

    def _ask_leader(self, asked: Asked, epoch: int) -> None:
        found = Found(asked, epoch)
        times = {tp: time for tp, start in asked.items() if (time := self._time(start)) is not None}
        starts = starts_or_errors(self._cluster, times, self._isolation)
        for tp, outcome in starts.items():
            if isinstance(outcome, KafkaError):
                found.failures[tp] = outcome
            elif outcome is None:
                found.failures[tp] = KafkaError(f"{tp}: its leader returned no log start offset")
            else:
                found.positions[tp] = Position(*outcome)
        self._publish(found)

    def _time(self, start: Start) -> int | None:
        """The time of an Offsets request; None: auto.offset.reset is none."""
        by_reset = self._reset if start is Start.COMMITTED else start
        return None if by_reset is None else TIMES[by_reset]


def _only(partitions: Iterable[TopicPartition], asked: Asked) -> Asked:
    return {tp: asked[tp] for tp in partitions}
