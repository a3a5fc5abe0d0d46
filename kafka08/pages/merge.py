"""Messages of several partitions in one order: by their timestamps. Pure.

A message is the JSON that the console shows. In a partition messages keep the order of their
offsets; one without a timestamp counts as written with the one before it. Where no message has a
timestamp, partitions take turns.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

Message: TypeAlias = dict[str, Any]

UNKNOWN: Final = -1
"""The time of a message without a timestamp, and without one before it in its partition."""


def merge(
    sources: Mapping[int, Iterator[Message]], limit: int
) -> tuple[list[Message], dict[int, Message]]:
    """(the first `limit` messages by time, partition → the next one, which was read but not taken).

    sources   partition → its messages; read one message further than taken, but not after the last
    """
    taken: list[Message] = []
    heads: dict[int, Message] = {}
    heap: list[tuple[int, int, int]] = []

    def advance(partition: int, before: int, turn: int) -> None:
        head = next(sources[partition], None)
        if head is not None:
            heads[partition] = head
            heapq.heappush(heap, (time_of(head, before), turn, partition))

    for partition in sources:
        advance(partition, UNKNOWN, 0)
    while heap and len(taken) < limit:
        time_ms, turn, partition = heapq.heappop(heap)
        taken.append(heads.pop(partition))
        if len(taken) < limit:
            advance(partition, time_ms, turn + 1)
    return taken, heads


def newest(partitions: Mapping[int, Sequence[Message]], limit: int) -> dict[int, list[Message]]:
    """partition → those of its messages that are among the `limit` newest of all."""
    ranked: list[tuple[int, int, int]] = []
    for partition, messages in partitions.items():
        for index, time_ms in enumerate(times_of(messages)):
            ranked.append((time_ms, index - len(messages), partition))
    chosen: dict[int, list[int]] = {}
    for _, index, partition in heapq.nlargest(limit, ranked):
        chosen.setdefault(partition, []).append(index)
    return {p: [partitions[p][index] for index in sorted(found)] for p, found in chosen.items()}


def in_order(messages: list[Message]) -> tuple[list[Message], str]:
    """(the messages as they are shown, their order: "time" or "partition")."""
    if any(message["time_ms"] is not None for message in messages):
        return messages, "time"
    return sorted(messages, key=lambda m: (m["partition"], m["offset"])), "partition"


def times_of(messages: Iterable[Message]) -> Iterator[int]:
    before = UNKNOWN
    for message in messages:
        before = time_of(message, before)
        yield before


def time_of(message: Message, before: int) -> int:
    """Its timestamp; without one, that of the message before it."""
    time_ms = message["time_ms"]
    return before if time_ms is None else int(time_ms)
