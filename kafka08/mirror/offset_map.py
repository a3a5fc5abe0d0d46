"""OffsetMap: which offset at the target each message of the source has. Pure.

A move writes a `Copied` for each stretch of messages that it copies, in the transaction that has
the messages. They make a topic at the target, in which they are never deleted: from it come the
positions where a move goes on, and the offsets of groups at the target.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka08.errors import ConfigError
from kafka08.structs import NO_LEADER_EPOCH, TopicPartition


class Run(NamedTuple):
    """Messages without a gap between their offsets on either side."""

    source: int
    length: int
    target: int

    @property
    def end(self) -> int:
        """The source's offset behind its last message."""
        return self.source + self.length


class Copied(NamedTuple):
    """A stretch of messages of one partition, in order; or a beginning (`beginning`).

    process       the id of the process that begins; "": this is a stretch
    leader_epoch  of the leader of the source that appended its last message, or of a later one that
                  had it; NO_LEADER_EPOCH: not known
    """

    topic_partition: TopicPartition
    runs: tuple[Run, ...]
    process: str = ""
    leader_epoch: int = NO_LEADER_EPOCH

    def encode(self) -> bytes:
        topic, partition = self.topic_partition
        fields: dict[str, Any] = {"topic": topic, "partition": partition, "runs": self.runs}
        if self.process:
            fields["process"] = self.process
        if self.leader_epoch != NO_LEADER_EPOCH:
            fields["epoch"] = self.leader_epoch
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, text: bytes | None) -> Copied:
        """ConfigError for a record that no move has written."""
        try:
            found = json.loads(text or b"")
            runs = tuple(Run(*map(int, run)) for run in found["runs"])
            tp = TopicPartition(str(found["topic"]), int(found["partition"]))
            epoch = int(found.get("epoch", NO_LEADER_EPOCH))
            return cls(tp, runs, str(found.get("process", "")), epoch)
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{text!r:.60} is no record of a move: {error}") from error


def beginning(process: str) -> Copied:
    """The record with which a process of the move begins, and begins again after an error."""
    return Copied(TopicPartition("", 0), (), process)


def runs_of(offsets: Sequence[int], stored: Sequence[tuple[Sequence[int], int]]) -> tuple[Run, ...]:
    """The runs of messages with these offsets at the source. `stored`: indexes of some of them, and
    the target's offset of the first; in order."""
    found: list[Run] = []

    def add(source: int, count: int, target: int) -> None:
        last = found[-1] if found else None
        if last is not None and (last.end, last.target + last.length) == (source, target):
            found[-1] = last._replace(length=last.length + count)
        else:
            found.append(Run(source, count, target))

    for places, target in stored:
        first, count = offsets[places[0]], len(places)
        if offsets[places[-1]] - first == count - 1:
            add(first, count, target)
        else:
            for n, place in enumerate(places):
                add(offsets[place], 1, target + n)
    return tuple(found)


class OffsetMap:
    """The messages that a move has copied, by partition.

    next_record   offset of the first record that was not added yet
    """

    def __init__(self) -> None:
        self.next_record = 0
        self._runs: dict[TopicPartition, list[Run]] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._processes: list[str] = []
        """In the order in which they began first."""

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._runs

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._runs)

    def add(self, copied: Copied) -> None:
        """In the order in which they were written."""
        if copied.process and copied.process not in self._processes:
            self._processes.append(copied.process)
        if copied.runs:
            self._runs.setdefault(copied.topic_partition, []).extend(copied.runs)
            self._epochs[copied.topic_partition] = copied.leader_epoch

    def has_later_than(self, process: str) -> bool:
        """Whether another process has begun after this one, which must copy no more."""
        return process in self._processes[:-1]

    def position(self, tp: TopicPartition) -> int | None:
        """The source's offset from which the move goes on; None before the first message."""
        runs = self._runs.get(tp)
        return runs[-1].end if runs else None

    def epoch(self, tp: TopicPartition) -> int:
        """The leader epoch of the last message that was copied; NO_LEADER_EPOCH: not known."""
        return self._epochs.get(tp, NO_LEADER_EPOCH)

    def first(self, tp: TopicPartition) -> int | None:
        """The source's offset of the first message that was copied."""
        runs = self._runs.get(tp)
        return runs[0].source if runs else None

    def translated(self, tp: TopicPartition, offset: int) -> int | None:
        """The target's offset of the first message at or behind this one of the source; behind the
        last message the offset behind it. None if nothing of the partition was copied."""
        runs = self._runs.get(tp)
        if not runs:
            return None
        number = bisect_right(runs, offset, key=lambda run: run.source) - 1
        if number < 0:
            return runs[0].target
        run = runs[number]
        if offset < run.end:
            return run.target + offset - run.source
        if number + 1 < len(runs):
            return runs[number + 1].target
        return run.target + run.length
