"""StartFinder: finds the positions of partitions that have none yet.

An explicit reset (`seek_to_beginning`, `seek_to_end`) comes first, then the group's committed
offset, then auto.offset.reset. The search runs in its own task, so a poll that needs it ends in
time even if no broker responds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import offsets_or_errors
from kafka08.client.retry import RetryPolicy
from kafka08.consumer.polling.committer import fetch_committed
from kafka08.consumer.polling.partitions import Start
from kafka08.errors import KafkaError, NoOffsetForPartition
from kafka08.listing import some_of
from kafka08.runtime import ClientRuntime
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

TIMES: Final = {Start.EARLIEST: EARLIEST_OFFSET, Start.LATEST: LATEST_OFFSET}
POLICY: Final = RetryPolicy(tries=2)


@dataclass(slots=True)
class Found:
    """The result of a search.

    asked       the partitions and how to find each
    epoch       of their assignment (Partitions.epoch)
    positions   partition → its position, where it was found
    without     partitions without a committed offset, while auto.offset.reset is none
    failures    partition → why its position could not be found
    """

    asked: Mapping[TopicPartition, Start]
    epoch: int
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    without: list[TopicPartition] = field(default_factory=list)
    failures: dict[TopicPartition, KafkaError] = field(default_factory=dict)

    def error(self, missing: Mapping[TopicPartition, Start]) -> NoOffsetForPartition | None:
        """The error that the reader raises for those `without` that it still looks for: it may have
        sought to an offset during the search."""
        without = [tp for tp in self.without if missing.get(tp) is self.asked[tp]]
        if not without:
            return None
        return NoOffsetForPartition(
            f"no committed offset for {some_of(without)}, and auto.offset.reset is none. "
            "Seek to an offset, or set auto.offset.reset"
        )


class StartFinder:
    """See the module. One search at a time; only the user's thread calls `begin` and `take`.

    group     "": there are no committed offsets
    reset     auto.offset.reset; None: none
    on_found  called in the task of the search when it ends
    """

    def __init__(
        self,
        cluster: ClusterClient,
        group: str,
        reset: Start | None,
        *,
        on_found: Callable[[], None],
        backoff_s: float,
        runtime: ClientRuntime,
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._reset = reset
        self._on_found = on_found
        self._backoff_s = backoff_s
        self._runtime = runtime
        self._found: Found | None = None
        self._is_searching = False

    def begin(self, wanted: Mapping[TopicPartition, Start], epoch: int) -> None:
        """Search for these, unless a search is in progress. Never blocks."""
        if not self._is_searching:
            self._is_searching = True
            self._runtime.spawn(self._run, Found(wanted, epoch), name="kafka08-positions")

    def has_found(self) -> bool:
        """Whether `take` has a result."""
        return self._found is not None

    def take(self) -> Found | None:
        """The result of a search, returned once; None without one."""
        found = self._found
        if found is not None:  # a search that ends at this moment is not to be overwritten
            self._found = None
        return found

    def _run(self, found: Found) -> None:
        try:
            self._search(found)
        except KafkaError as error:
            self._fail(found, error)
        except Exception as error:
            # The root of a task: the reader waits for its end.
            logger.exception("Uncaught error in the search for positions")
            self._fail(found, KafkaError(f"uncaught error in the search for positions: {error!r}"))
        if found.failures:
            self._runtime.sleep(self._backoff_s)
        self._found = found
        self._is_searching = False
        self._on_found()

    def _search(self, found: Found) -> None:
        times: dict[TopicPartition, int] = {}
        committed = []
        for tp, start in found.asked.items():
            if start is Start.COMMITTED:
                committed.append(tp)
            else:
                times[tp] = TIMES[start]
        for tp in self._without_commit(committed, found):
            if self._reset is None:
                found.without.append(tp)
            else:
                times[tp] = TIMES[self._reset]
        if not times:
            return
        for tp, outcome in offsets_or_errors(self._cluster, times).items():
            if isinstance(outcome, KafkaError):
                found.failures[tp] = outcome
            elif not outcome:
                found.failures[tp] = KafkaError(f"{tp}: its leader returned no log start offset")
            else:
                found.positions[tp] = outcome[0]

    def _without_commit(
        self, partitions: list[TopicPartition], found: Found
    ) -> list[TopicPartition]:
        if not partitions or not self._group:
            return partitions
        committed = fetch_committed(self._cluster, self._group, partitions, POLICY, search_tries=1)
        found.positions.update((tp, one.offset) for tp, one in committed.items() if one is not None)
        return [tp for tp, one in committed.items() if one is None]

    def _fail(self, found: Found, error: KafkaError) -> None:
        known = {*found.positions, *found.without}
        found.failures = {tp: error for tp in found.asked if tp not in known}
