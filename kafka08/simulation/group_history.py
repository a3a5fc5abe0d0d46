"""GroupHistory: the messages and commits of the members of a group, and the rules for them. Pure;
events are recorded in the order in which they happened.

1. A member receives messages only of partitions that it owns, by its own callbacks.
2. Between `assigned` and `revoked` a partition's messages are consecutive: none is skipped or
   repeated.
3. The first message of an assignment is at most the first one that no member has processed, and at
   least the last offset whose commit was acknowledged before the assignment.
4. A committed offset is at most the first message that no member has processed.

A commit that is acknowledged to a former owner does not count as committed: the next one may have
started before. Rules 2 to 4 hold where the logs lose no messages. The caller checks with `missing`
that every message is processed in the end. A message is processed when its work is done: if a
member is killed before, another member must process it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from kafka08.structs import TopicPartition


class GroupEvents(Protocol):
    """The events of a member. `member` names one KafkaConsumer."""

    def assigned(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        """Call it in on_assigned."""

    def revoked(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        """Call it in on_revoked, and before the consumer unsubscribes or closes."""

    def handed(self, member: str, tp: TopicPartition, offset: int) -> None: ...

    def processed(self, tp: TopicPartition, offset: int) -> None: ...

    def committed(self, member: str, offsets: Mapping[TopicPartition, int]) -> None:
        """The commit was acknowledged; `offsets` are those of the next messages."""


class GroupHistory:
    """See the module.

    on_violation   called with a sentence that describes a violation
    is_safe        whether the logs lose no messages
    """

    def __init__(self, on_violation: Callable[[str], object], *, is_safe: bool) -> None:
        self._on_violation = on_violation
        self._is_safe = is_safe
        self._next: dict[str, dict[TopicPartition, int | None]] = {}
        """member → its partitions → the next offset; None before the first message."""
        self._floors: dict[str, dict[TopicPartition, int]] = {}
        """member → its partitions → the committed offset at the time of the assignment."""
        self._processed: dict[TopicPartition, set[int]] = {}
        self._unfinished: dict[TopicPartition, int] = {}
        """The first offset that no member has processed."""
        self._owners: dict[TopicPartition, str] = {}
        """The member to which a partition was assigned last."""
        self.committed_offsets: dict[TopicPartition, int] = {}
        """The highest offset whose commit was acknowledged to the owner of its partition."""
        self._committers: dict[TopicPartition, str] = {}
        """The members that made these commits."""
        self.assignments = 0
        """The number of assignments to members, of all that there were."""
        self.repetitions = 0
        """The number of messages that were processed again."""

    def assigned(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        self.assignments += 1
        has = self._next.setdefault(member, {})
        floors = self._floors.setdefault(member, {})
        for tp in partitions:
            has[tp] = None
            floors[tp] = self.committed_offsets.get(tp, 0)
            self._owners[tp] = member

    def revoked(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._next.get(member, {}).pop(tp, None)

    def handed(self, member: str, tp: TopicPartition, offset: int) -> None:
        has = self._next.get(member, {})
        if tp not in has:
            self._on_violation(
                f"{member} was handed {tp} offset {offset} of a partition that it does not own"
            )
            return
        if self._is_safe:
            self._check_order(member, tp, offset, has[tp])
        has[tp] = offset + 1

    def _check_order(self, member: str, tp: TopicPartition, offset: int, due: int | None) -> None:
        floor = self._floors[member].pop(tp, None)  # of the first message alone
        end = self.unfinished(tp)
        if due is not None and offset != due:
            self._on_violation(f"{member} was handed {tp} offset {offset} instead of {due}")
        elif floor is not None and offset < floor:
            self._on_violation(
                f"{member} begins {tp} at {offset}, though {floor} was committed, "
                f"{self.last_commit(tp)}"
            )
        elif floor is not None and offset > end:
            self._on_violation(
                f"{member} begins {tp} at {offset}, but no member has processed {end}"
            )

    def processed(self, tp: TopicPartition, offset: int) -> None:
        done = self._processed.setdefault(tp, set())
        self.repetitions += offset in done
        done.add(offset)
        end = self.unfinished(tp)
        while end in done:
            end += 1
        self._unfinished[tp] = end

    def committed(self, member: str, offsets: Mapping[TopicPartition, int]) -> None:
        for tp, offset in offsets.items():
            self._check_commit(member, tp, offset)
            if self.owner(tp) == member and offset >= self.committed_offsets.get(tp, 0):
                self.committed_offsets[tp] = offset
                self._committers[tp] = member

    def _check_commit(self, member: str, tp: TopicPartition, offset: int) -> None:
        """Rule 4."""
        end = self.unfinished(tp)
        if self._is_safe and offset > end:
            self._on_violation(
                f"{member} committed {tp} offset {offset}, but no member has processed {end}"
            )

    def took_long(self, member: str, what: str, seconds: float, limit: float) -> None:
        """A call of a member's consumer has not ended in time."""
        self._on_violation(f"{member}: {what} took {seconds:.1f} s, but {limit:g} s are its limit")

    def partitions_of(self, member: str) -> list[TopicPartition]:
        """The partitions that a member owns, by its own callbacks."""
        return list(self._next.get(member, ()))

    def uneven(self, members: int, partitions: Sequence[TopicPartition]) -> str:
        """How unevenly so many members share the partitions; "" if none has more than one partition
        more than another."""
        counts = Counter(self._owners.get(tp) for tp in partitions)
        is_even = len(counts) == min(members, len(partitions)) and (
            max(counts.values()) - min(counts.values()) <= 1
        )
        return "" if is_even else f"{dict(counts)}"

    def owner(self, tp: TopicPartition) -> str | None:
        """The member to which a partition was assigned last."""
        return self._owners.get(tp)

    def missing(self, tp: TopicPartition, offsets: Collection[int]) -> set[int]:
        """Those of these messages that no member has processed."""
        return set(offsets) - self._processed.get(tp, set())

    def unfinished(self, tp: TopicPartition) -> int:
        """The first offset that no member has processed."""
        return self._unfinished.get(tp, 0)

    def last_commit(self, tp: TopicPartition) -> str:
        """Names of the member that made the commit of `committed_offsets`, and of the owner now."""
        return f"by {self._committers.get(tp)}; the partition belongs to {self.owner(tp)}"

    @property
    def count(self) -> int:
        """The number of processed messages."""
        return sum(map(len, self._processed.values()))
