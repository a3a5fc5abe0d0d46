"""MessageTimes: the timestamps of the messages that groups will read next.

Pure but for the function that the caller passes. Known offsets are not looked up again, so a
group without progress costs nothing. Partitions whose messages have no timestamp are skipped for a
while.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kafka08.structs import TopicPartition

ROUNDS_MAX: Final = 20
"""Offsets that one look-up asks for per partition: the lowest, of the groups furthest behind."""
UNTIMED_LOOKS: Final = 100
"""A partition whose messages had no timestamp is asked again after this many look-ups."""

Position = tuple[TopicPartition, int]
Ask = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]


class MessageTimes:
    """Caches the times of one look-up for the next."""

    def __init__(self) -> None:
        self._known: dict[Position, int] = {}
        self._untimed: dict[TopicPartition, int] = {}

    def look_up(
        self, wanted: Mapping[TopicPartition, Collection[int]], ask: Ask
    ) -> dict[Position, int]:
        """(partition, offset) → time in ms, for those of `wanted` that have one. Drops all others
        from the cache.

        ask   given partition → offset, returns partition → time, None without a timestamp; leaves
              out partitions without a response. Called at most ROUNDS_MAX times
        """
        self._untimed = {tp: looks - 1 for tp, looks in self._untimed.items() if looks > 1}
        found: dict[Position, int] = {}
        open_: dict[TopicPartition, list[int]] = {}
        for tp, offsets in wanted.items():
            for offset in offsets:
                time_ms = self._known.get((tp, offset))
                if time_ms is not None:
                    found[tp, offset] = time_ms
                elif tp not in self._untimed:
                    open_.setdefault(tp, []).append(offset)
        for offsets in open_.values():
            offsets.sort(reverse=True)
        for _ in range(ROUNDS_MAX):
            round_ = {tp: offsets.pop() for tp, offsets in open_.items() if offsets}
            if not round_:
                break
            for tp, time_ms in ask(round_).items():
                if time_ms is not None:
                    found[tp, round_[tp]] = time_ms
                else:
                    self._untimed[tp] = UNTIMED_LOOKS
                    open_.pop(tp, None)
        self._known = found
        return found
