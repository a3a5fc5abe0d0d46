"""PartitionFetchState: a partition that a ReplicaFetcher fetches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka08.broker.replica.replica_state import FollowerState
from kafka08.broker.replication.epoch_search import EpochSearch
from kafka08.broker.replication.log_comparison import DivergenceSearch
from kafka08.errors import FileRefused
from kafka08.protocol.fetch import NO_LOG_START_OFFSET

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.log.log import Log
    from kafka08.structs import TopicPartition


class PartitionFetchState(FollowerState):
    """A partition of a fetcher. Each `add` makes a new object, so that a response to a request from
    before it is recognised and dropped. `append_fetched` changes some of the fields.

    is_followed     False once it was removed, or replaced by a later `add`
    max_bytes       fetch size; larger while one message needs it, smaller for a probe
    expected_bytes  expected size of its next response: that of the last one, or `max_bytes` if more
                    may come
    unsettled       offset from which on the log may differ from the leader's: the HW when this
                    leader was announced, and again after each lost connection and each error of
                    the leader. None: it does not differ
    search          the search for the offset from which on it differs, instead: from `unsettled` on
                    the present window is to be compared
    epochs          the search for the same by leader epochs, before anything is fetched; None where
                    the leader is not asked for them, or the log has none
    paused_until    monotonic time until which it is skipped, after an error
    leader_start    the leader's log start offset that is known here; -1 at first
    lag             messages below the leader's HW that were still missing after its last response
    """

    __slots__ = ("_asks_for_epochs", "epochs", "paused_until", "search", "topic_partition")

    partition: Partition

    def __init__(
        self, partition: Partition, max_bytes: int, *, asks_for_epochs: bool = False
    ) -> None:
        self.partition = partition
        self._asks_for_epochs = asks_for_epochs
        self.topic_partition: TopicPartition = partition.topic_partition
        self.is_followed = True
        self.ask_for(max_bytes)
        self.unsettle()
        self.paused_until = 0.0
        self.lag = 0
        self.leader_start = NO_LOG_START_OFFSET

    def ask_for(self, max_bytes: int) -> None:
        """Set the fetch size; the next response may be as large."""
        self.max_bytes = self.expected_bytes = max_bytes

    def unsettle(self) -> None:
        """Compare the log with the leader's again: by epochs, or its messages from the HW on."""
        self.search: DivergenceSearch | None = None
        self.unsettled = self.partition.high_watermark
        self.epochs: EpochSearch | None = None
        entries = self.log.records.epochs.entries if self._asks_for_epochs else ()
        if entries:
            self.epochs = EpochSearch(entries, self.log.log_end_offset)

    def compare_from(self, offset: int) -> None:
        """Go on with the comparison there: what lies below is known to be the leader's."""
        self.search, self.unsettled = None, offset

    def settle(self) -> None:
        """The log is a beginning of the leader's."""
        self.search = self.unsettled = self.epochs = None

    def flush_owed(self, run_native: Callable[[Callable[[], None]], object]) -> None:
        """Sync what flush.messages requires, which the next fetch acknowledges. FileRefused: the
        log is compared again before that. Switches."""
        try:
            flush = self.log.owed_flush()
            if flush is not None:
                run_native(flush.sync)
                flush.complete()
        except FileRefused:
            self.unsettle()
            raise

    @property
    def is_unsettled(self) -> bool:
        """Whether there is something to compare."""
        return self.unsettled is not None and self.unsettled < self.log.log_end_offset

    @property
    def log(self) -> Log:
        """The local replica's log, which every followed partition has."""
        assert self.partition.log is not None, f"{self.partition} is followed without a log"
        return self.partition.log

    @property
    def position(self) -> int:
        """The next offset to fetch: the log end, or less while the log may differ above it."""
        log = self.partition.log
        assert log is not None, f"{self.partition} is followed without a log"
        end = log.active_segment.end_offset
        return end if self.unsettled is None else min(end, self.unsettled)
