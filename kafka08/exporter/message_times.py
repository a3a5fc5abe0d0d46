"""MessageTimes: when the messages were written that groups read next.

Pure but for the question that the caller passes. What is known of an offset is not asked again, so
a group that stands still costs nothing; nor is a topic whose messages have no timestamps, for a
while.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kafka08.structs import TopicPartition

ROUNDS_MAX: Final = 20
"""Offsets of a partition that are asked for in one look: the lowest, of the latest groups."""
UNTIMED_LOOKS: Final = 100
"""A partition whose messages had no timestamp is asked again after so many looks."""

Position = tuple[TopicPartition, int]
Ask = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]


class MessageTimes:
    """Remembers the times of one look for the next."""

    def __init__(self) -> None:
        self._known: dict[Position, int] = {}
        self._untimed: dict[TopicPartition, int] = {}

    def look_up(
        self, wanted: Mapping[TopicPartition, Collection[int]], ask: Ask
    ) -> dict[Position, int]:
        """(partition, offset) → time in ms, of those of `wanted` that have one. What is not among
        them is forgotten.

        ask   partition → offset, one of each: their times, None for no timestamp; left out is what
              had no answer. Called ROUNDS_MAX times at most
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
