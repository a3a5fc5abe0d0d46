"""LeaderEpochs: where each leader epoch begins in a log, and the text of its checkpoint. Pure.

The leader writes its epoch into every record batch. Each replica notes the first offset of each
epoch, so that a follower can ask a new leader where its own latest epoch ends, and truncate there.
An epoch under which nothing was appended has no entry. Source: kafka.server.epoch.
LeaderEpochFileCache, kafka.server.checkpoints.LeaderEpochCheckpointFile 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple, Self

from kafka08.errors import CorruptLog

NO_EPOCH: Final = -1
NO_END_OFFSET: Final = -1
VERSION: Final = 0
ENTRIES_MAX: Final = 1_000_000
"""Of a checkpoint file: as many elections as a partition has in 30 years with one each quarter of
an hour."""


class EpochStart(NamedTuple):
    """The first offset of an epoch."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one log; both numbers ascend."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries = list(entries)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, offset: int) -> bool:
        """A batch of `epoch` is appended at `offset`; returns whether it begins an epoch. A lower
        epoch, or one that begins below the latest, changes nothing: a follower may fetch batches of
        a leader that was never elected."""
        if epoch <= self.latest or (self._entries and offset < self._entries[-1].start_offset):
            return False
        self._entries.append(EpochStart(epoch, offset))
        return True

    def end_offset(self, epoch: int, log_end_offset: int) -> int:
        """The end of `epoch`: the LEO of the latest one, the start of the next known one, or
        NO_END_OFFSET for one that is unknown, later, or before the first."""
        if not self._entries or epoch == NO_EPOCH:
            return NO_END_OFFSET
        if epoch == self.latest:
            return log_end_offset
        later = [entry for entry in self._entries if entry.epoch > epoch]
        if not later or epoch < self._entries[0].epoch:
            return NO_END_OFFSET
        return later[0].start_offset

    def truncate(self, offset: int) -> bool:
        """The log ends at `offset` now: epochs that begin there or later go. Whether any did."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        changed = len(kept) < len(self._entries)
        self._entries = kept
        return changed

    def raise_start(self, offset: int) -> bool:
        """The log starts at `offset` now: earlier epochs go, but the last of them begins there if
        no other does. Returns whether anything changed."""
        earlier = [entry for entry in self._entries if entry.start_offset < offset]
        if not earlier:
            return False
        kept = self._entries[len(earlier) :]
        if not kept or kept[0].start_offset > offset:
            kept = [EpochStart(earlier[-1].epoch, offset), *kept]
        changed = kept != self._entries
        self._entries = kept
        return changed

    def encode(self) -> str:
        """The text of leader-epoch-checkpoint."""
        lines = [str(VERSION), str(len(self._entries))]
        lines += [f"{epoch} {offset}" for epoch, offset in self._entries]
        return "\n".join(lines) + "\n"

    @classmethod
    def decode(cls, text: str) -> Self:
        """CorruptLog for text that is not that of a checkpoint; an empty one, as a log has before
        its first record batch, is that of no epochs."""
        if not text:
            return cls()
        version, count, *lines = text.split("\n") if text.count("\n") > 1 else (text, "", "")
        if version != str(VERSION) or not _is_count(count) or int(count) > ENTRIES_MAX:
            raise CorruptLog(f"leader-epoch-checkpoint: version {version!r}, count {count!r}")
        if len(lines) != int(count) + 1 or lines[-1]:
            raise CorruptLog(
                f"leader-epoch-checkpoint: {len(lines) - 1} lines, but a count of {count}"
            )
        entries = [_entry(line) for line in lines[:-1]]
        for one, other in pairwise(entries):
            if not (one.epoch < other.epoch and one.start_offset <= other.start_offset):
                raise CorruptLog(f"leader-epoch-checkpoint: {tuple(other)} behind {tuple(one)}")
        return cls(entries)


def _entry(line: str) -> EpochStart:
    numbers = line.split(" ")
    if len(numbers) != 2 or not all(map(_is_count, numbers)):
        raise CorruptLog(f"leader-epoch-checkpoint: {line!r} is not an epoch and an offset")
    return EpochStart(*map(int, numbers))


def _is_count(text: str) -> bool:
    """Whether it is a number from 0 on, of at most 19 digits."""
    return text.isascii() and text.isdigit() and len(text) <= 19
