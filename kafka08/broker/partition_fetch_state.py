"""PartitionFetchState: one partition of a ReplicaFetcher, as in AbstractFetcherThread 0.10.2.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka08.broker.partition import Partition
    from kafka08.log.log import Log


@dataclass(slots=True, eq=False)
class PartitionFetchState:
    """A partition of a fetcher. Each `add` makes a new object, so that a response to a request from
    before it is recognised and dropped.

    max_bytes       fetch size; larger while one message needs it
    expected_bytes  expected size of its next response: that of the last one, `max_bytes` before
                    the first
    unsettled       offset from which on the log may differ from the leader's; at first the HW at
                    the time when this leader was announced. None: it does not differ
    paused_until    monotonic time until which it is skipped, after an error
    lag             messages below the leader's HW that were still missing after its last response
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
        """The next offset to fetch."""
        end = self.log.log_end_offset
        return end if self.unsettled is None else min(end, self.unsettled)

    def note_nothing(self, high_watermark: int) -> None:
        """The response had no messages, but may have a new HW."""
        end = self.log.log_end_offset
        self.partition.high_watermark = min(end, high_watermark)
        self.expected_bytes = 0
        self.lag = max(0, high_watermark - end)
