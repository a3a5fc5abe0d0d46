"""Followed: a partition in the care of a ReplicaFetcher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka08.broker.partition import Partition
    from kafka08.log.log import Log


@dataclass(slots=True, eq=False)
class Followed:
    """A partition in a fetcher's care. A new object each time it is added, so that an answer to a
    question of an earlier time is not taken for this one's.

    max_bytes       fetch size; larger while one message needs it
    expected_bytes  what its next answer is taken to bring: as much as the last one, `max_bytes`
                    while that is not known
    unsettled       offset from which on the log may differ from the leader's, at first the HW when
                    this leader was heard of. None: it does not
    paused_until    monotonic time before which it is left out, after an error
    lag             messages below the leader's HW that were still missing after its last answer
    """

    partition: Partition
    max_bytes: int
    expected_bytes: int
    unsettled: int | None
    paused_until: float = 0.0
    lag: int = 0

    @property
    def log(self) -> Log:
        assert self.partition.log is not None, f"{self.partition} is followed without a log"
        return self.partition.log

    @property
    def position(self) -> int:
        """The offset to ask for."""
        end = self.log.log_end_offset
        return end if self.unsettled is None else min(end, self.unsettled)

    def note_nothing(self, high_watermark: int) -> None:
        """The leader has nothing more than this replica, but maybe another HW."""
        end = self.log.log_end_offset
        self.partition.high_watermark = min(end, high_watermark)
        self.expected_bytes = 0
        self.lag = max(0, high_watermark - end)
