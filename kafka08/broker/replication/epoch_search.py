"""EpochSearch: up to where a follower's log is a beginning of its leader's, by leader epochs. Pure.

The records of one epoch come from one leader. So two logs that both have some of an epoch have the
same up to the earlier one of its two ends, and the same before it. The latest epoch that both have
is looked for from the follower's latest one backwards.

The leader's answer has no epoch, only the start of its next one, and says nothing of whether it has
the epoch itself: asked for the one before, it answers with the same offset if it has not. 0.11.0.3
asks once. After two changes of leaders it may take an offset of which its own records are of an
epoch that the leader never had: they stay, and differ (KAFKA-6361).
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka08.log.leader_epochs import NO_END_OFFSET, EpochStart


class EpochSearch:
    """The search for a log with these epochs, at least one, that ends at `log_end_offset`.

    is_done      whether there is nothing more to ask for
    common_end   from this offset on the logs differ, or one ends; None: they have no epoch in
                 common, or it is not known yet
    """

    __slots__ = ("_entries", "_leader_end", "_own_end", "common_end", "is_done")

    def __init__(self, entries: Sequence[EpochStart], log_end_offset: int) -> None:
        self._entries = list(entries)
        self._own_end = log_end_offset
        """Of the last of them."""
        self._leader_end: int | None = None
        """The leader's answer for that; then the epoch before is asked for."""
        self.common_end: int | None = None
        self.is_done = not entries

    @property
    def wanted(self) -> int:
        """The epoch to ask the leader for."""
        epoch = self._entries[-1].epoch
        return epoch if self._leader_end is None else epoch - 1

    def advance(self, end_offset: int) -> None:
        """Take the leader's answer for `wanted`."""
        if self._leader_end is None:
            if end_offset == NO_END_OFFSET:
                self._look_before()  # the leader's epochs are all earlier, or later
            else:
                self._leader_end = end_offset
        elif end_offset == NO_END_OFFSET or end_offset < self._leader_end:
            self.common_end = min(self._own_end, self._leader_end)
            self.is_done = True
        else:
            self._look_before()

    def _look_before(self) -> None:
        """The leader does not have the epoch."""
        self._own_end = self._entries.pop().start_offset
        self._leader_end = None
        self.is_done = not self._entries
