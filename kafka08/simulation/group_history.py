"""GroupHistory: what the members of a group with a coordinator were handed and have committed, and
the rules for it. Pure: events come in the order in which they happened.

1. A member is handed messages of partitions that it has, by its own callbacks.
2. Between `assigned` and `revoked` the messages of a partition come one after the other: none is
   left out and none comes twice.
3. An assignment begins no later than behind what somebody was handed, and not before an offset
   whose commit was acknowledged when it was made.
4. Nobody commits an offset behind messages that nobody was handed.

Rules 2 to 4 hold where the logs lose nothing. That every message is processed in the end is for the
caller to ask, by `missing`. A message is processed when its work is done: a member that is killed
in between has not done it, and somebody else must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kafka08.structs import TopicPartition


class GroupEvents(Protocol):
    """Told by a member what happens to it. `member` names one KafkaConsumer."""

    def assigned(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        """In on_assigned."""

    def revoked(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        """In on_revoked, or before it unsubscribes or closes."""

    def handed(self, member: str, tp: TopicPartition, offset: int) -> None: ...

    def processed(self, tp: TopicPartition, offset: int) -> None: ...

    def committed(self, member: str, offsets: Mapping[TopicPartition, int]) -> None:
        """The commit was acknowledged; `offsets` are those of the next messages."""


class GroupHistory:
    """See the module.

    wrong    told of a rule that was broken, in a sentence
    is_safe  whether the logs lose nothing
    """

    def __init__(self, wrong: Callable[[str], object], *, is_safe: bool) -> None:
        self._wrong = wrong
        self._is_safe = is_safe
        self._next: dict[str, dict[TopicPartition, int | None]] = {}
        """member → what it has → the next offset; None: nothing was handed yet."""
        self._floors: dict[str, dict[TopicPartition, int]] = {}
        """member → what it has → what was committed when it was assigned."""
        self._processed: dict[TopicPartition, set[int]] = {}
        self._ends: dict[TopicPartition, int] = {}
        """Behind the last message that anybody was handed."""
        self._committed: dict[TopicPartition, int] = {}
        self.repetitions = 0
        """How many messages were processed again."""

    def assigned(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        has = self._next.setdefault(member, {})
        floors = self._floors.setdefault(member, {})
        for tp in partitions:
            has[tp] = None
            floors[tp] = self._committed.get(tp, 0)

    def revoked(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._next.get(member, {}).pop(tp, None)

    def handed(self, member: str, tp: TopicPartition, offset: int) -> None:
        has = self._next.get(member, {})
        if tp not in has:
            self._wrong(f"{member} was handed {tp} offset {offset}, which it has not")
            return
        if self._is_safe:
            self._check_order(member, tp, offset, has[tp])
        has[tp] = offset + 1
        self._ends[tp] = max(self._ends.get(tp, 0), offset + 1)

    def _check_order(self, member: str, tp: TopicPartition, offset: int, due: int | None) -> None:
        floor, end = self._floors[member][tp], self._ends.get(tp, 0)
        if due is not None and offset != due:
            self._wrong(f"{member} was handed {tp} offset {offset} instead of {due}")
        elif offset < floor:
            self._wrong(f"{member} begins {tp} at {offset}, though {floor} was committed")
        elif offset > end:
            self._wrong(f"{member} begins {tp} at {offset}, and nobody was handed {end}")

    def processed(self, tp: TopicPartition, offset: int) -> None:
        done = self._processed.setdefault(tp, set())
        self.repetitions += offset in done
        done.add(offset)

    def committed(self, member: str, offsets: Mapping[TopicPartition, int]) -> None:
        for tp, offset in offsets.items():
            if self._is_safe and offset > self._ends.get(tp, 0):
                self._wrong(f"{member} committed {tp} offset {offset}, which nobody was handed")
            self._committed[tp] = max(self._committed.get(tp, 0), offset)

    def missing(self, tp: TopicPartition, offsets: set[int]) -> int:
        """How many of these nobody has processed."""
        return len(offsets - self._processed.get(tp, set()))

    @property
    def count(self) -> int:
        """How many messages were processed."""
        return sum(map(len, self._processed.values()))
