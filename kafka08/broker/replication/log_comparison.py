"""Compares a follower's messages with a fetched response, and decides where to compare next."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.format import codec_of, format_of, magic_of
from kafka08.format.types import ENTRY_HEADER, RECORDS_MAGIC
from kafka08.protocol.message_set import NO_LIMIT
from kafka08.protocol.types import Buffer

if TYPE_CHECKING:
    from kafka08.log.log import Log


WINDOW: Final = 1000
"""The offsets of the first window of a DivergenceSearch."""


class Difference(Enum):
    """How a follower's log goes on behind the entries that it has in common with its leader's."""

    NONE = "it does not differ"
    CERTAIN = "at the same offset the leader has another message, or none because its log ends"
    UNCERTAIN = "one lacks an offset, or a set that cleaners write again is another one"


class DivergenceSearch:
    """Searches backwards for the offset from which on a follower's log differs from its leader's.

    The leader has proved that it never had the follower's HW: it was elected without messages that
    were acknowledged before. What it has accepted since may lie at the same offsets, far below its
    log end. So windows of offsets are compared, each twice as long as the one above it, until one
    is the same in both logs, or begins at `lowest`.

    leader_end     the leader's log end when the search began
    differs_from   from this offset on the logs differ, as far as is known
    lowest         the higher of both log starts: nothing below can be compared
    start, end     the present window, half-open; empty once everything is compared
    """

    __slots__ = ("differs_from", "end", "leader_end", "lowest", "start")

    def __init__(self, leader_end: int, lowest: int) -> None:
        self.leader_end = self.differs_from = self.end = leader_end
        self.lowest = min(lowest, leader_end)
        self.start = max(self.lowest, leader_end - WINDOW)

    @property
    def is_done(self) -> bool:
        """Whether the log is to be truncated to `differs_from` now."""
        return self.start >= self.end

    def advance(self, equal_end: int, *, differs: bool) -> None:
        """The logs are equal from where the comparison was continued up to `equal_end`, and
        `differs` says whether they are not behind that."""
        # A whole window without a difference: the logs are the same below it too.
        if equal_end >= self.end:
            self.start = self.end
        elif differs:
            # Without a difference the response ended in the window, and the next one continues it.
            self.differs_from = equal_end
            self.end, length = self.start, 2 * (self.end - self.start)
            self.start = max(self.lowest, self.end - length)


def same_entries(
    log: Log, offset: int, message_set: Buffer
) -> tuple[kernel.SetSummary, Difference]:
    """(the complete entries from `offset` on that the log and a fetched set have in common, what
    the log has behind them). An empty set differs: the leader's log ends there. CorruptLog if the
    common entries are damaged."""
    # A log that starts above `offset` counts as different: there is nothing to compare.
    begins_later = offset < log.log_start_offset
    own = b"" if begins_later else log.read(offset, len(message_set)).bytes()
    fetched = memoryview(message_set)
    equal = _common_length(own, fetched)
    try:
        same = kernel.validate(own[:equal], NO_LIMIT)
    except ValueError as error:
        raise CorruptLog(f"{log.name} from offset {offset} on: {error}") from error
    if own and equal == len(own):
        return same, Difference.NONE
    heads = [_plain_offset(data[same.size :]) for data in (memoryview(own), fetched)]
    is_certain = not fetched or (None not in heads and heads[0] == heads[1])
    return same, Difference.CERTAIN if is_certain else Difference.UNCERTAIN


def _plain_offset(entries: memoryview) -> int | None:
    """The offset of the first entry, if it is one message: neither compressed nor a batch."""
    magic = magic_of(entries)
    if magic is None or magic >= RECORDS_MAGIC:
        return None
    if len(entries) <= format_of(magic).codec_position or codec_of(entries):
        return None
    return int(ENTRY_HEADER.unpack_from(entries)[0])


def _common_length(one: bytes, other: memoryview) -> int:
    """How many bytes at the beginning are equal."""
    equal, end = 0, min(len(one), len(other))
    if one[:end] == other[:end]:
        return end
    # Halving compares slices, in C: a loop over the bytes of a large set would block the hub.
    while end - equal > 1:
        middle = (equal + end) // 2
        if one[equal:middle] == other[equal:middle]:
            equal = middle
        else:
            end = middle
    return equal
