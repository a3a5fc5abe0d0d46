"""Deliveries to members of a migrating group, and its stored offsets: no message may be skipped.

    history = OffsetHistory()
    history.handed(tp, offset)                          in the order in which members got them
    history.committed(store, tp, offset)                a look at a store; None: nothing is there
    history.stopped({tp: offset})                       all members have stopped; what is committed
    history.problems(log_ends)                          `log_ends`: partition → offset to be reached

What must hold:

1. Skipped: every offset below the log's end was handed to somebody; and none before all smaller
   ones were, if events are noted in the order in which they happen (`ordered`).
2. Repeated: their number is given; its bound is the caller's.
3. Went back: a committed offset never becomes smaller.
4. Vanished: an offset that was there is there in the end. One that is gone for a moment is counted
   apart: brokers of 0.8.2.2 answer "none" while they load, and their members commit -1.
5. Again: after all have stopped, nobody is handed what was committed by then, whatever kind of
   members follows; and what is committed at one such moment is never less than at the last one.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping

from kafka08.structs import TopicPartition


class OffsetHistory:
    """Any thread may note an event; the order in which they are noted counts."""

    def __init__(self, *, ordered: bool = True) -> None:
        self._ordered = ordered
        self._lock = threading.Lock()
        self._handed: dict[TopicPartition, list[int]] = defaultdict(list)
        self._committed: dict[tuple[str, TopicPartition], list[int | None]] = defaultdict(list)
        self._stops: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        """At each stop: how many messages had been handed out, and what was committed."""

    def handed(self, tp: TopicPartition, offset: int) -> None:
        with self._lock:
            self._handed[tp].append(offset)

    def committed(self, store: str, tp: TopicPartition, offset: int | None) -> None:
        with self._lock:
            self._committed[store, tp].append(offset)

    def forget(self, store: str) -> None:
        """Its offsets so far were not the group's."""
        with self._lock:
            for (looked, _), looks in self._committed.items():
                if looked == store:
                    looks.clear()

    def stopped(self, committed: Mapping[TopicPartition, int]) -> None:
        with self._lock:
            for tp, offset in committed.items():
                self._stops[tp].append((len(self._handed[tp]), offset))

    @property
    def count(self) -> int:
        """Messages handed out, repetitions included."""
        return sum(len(offsets) for offsets in self._handed.values())

    @property
    def repetitions(self) -> int:
        return sum(len(offsets) - len(set(offsets)) for offsets in self._handed.values())

    @property
    def moments_without(self) -> int:
        """How often an offset that had been there was gone for a moment."""
        return sum(
            1
            for looks in self._committed.values()
            for n, look in enumerate(looks)
            if look is None and n and looks[n - 1] is not None
        )

    def problems(self, log_ends: Mapping[TopicPartition, int]) -> list[str]:
        return [*self._skips(log_ends), *self._steps_back(), *self._gone(), *self._again()]

    def _skips(self, log_ends: Mapping[TopicPartition, int]) -> Iterator[str]:
        for tp, end in sorted(log_ends.items()):
            reached = 0
            offsets = self._handed.get(tp, [])
            for offset in offsets if self._ordered else sorted(offsets):
                if offset > reached:
                    yield f"{tp}: {offset} was handed out, but {reached} never was before"
                    break
                reached = max(reached, offset + 1)
            else:
                if reached < end:
                    yield f"{tp}: {reached} to {end} were never handed out"

    def _steps_back(self) -> Iterator[str]:
        for (store, tp), looks in sorted(self._committed.items()):
            largest = -1
            for look in looks:
                if look is not None and look < largest:
                    yield f"{tp}: {store}'s offset went back from {largest} to {look}"
                    break
                largest = max(largest, -1 if look is None else look)

    def _gone(self) -> Iterator[str]:
        for (store, tp), looks in sorted(self._committed.items()):
            if looks and looks[-1] is None and any(look is not None for look in looks):
                yield f"{tp}: {store}'s offset is gone"

    def _again(self) -> Iterator[str]:
        for tp, stops in sorted(self._stops.items()):
            last = 0
            for count, committed in stops:
                if committed < last:
                    yield f"{tp}: {committed} was committed at a stop, after {last} before"
                last = committed
                lowest = min(self._handed[tp][count:], default=committed)
                if lowest < committed:
                    yield f"{tp}: {lowest} was handed out after a stop, with {committed} committed"
