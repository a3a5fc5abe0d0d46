"""Transaction: the state machine of one transactional id. Pure: no I/O, no clock.

    EMPTY ──add──▶ ONGOING ──end(commit)──▶ PREPARE_COMMIT ──all markers──▶ COMPLETE_COMMIT
                      │
                      └──end(abort), fence, timeout──▶ PREPARE_ABORT ──▶ COMPLETE_ABORT

From both COMPLETE states `add` begins the next transaction, and `init` makes the id EMPTY again.
A PREPARE state may get EPOCH_FENCED (`raise_epoch`), with which its markers are taken everywhere.

Each request returns an error code, or the Change whose record is to be appended. The state changes
when the record is acknowledged (`appended`); until then every further request is 51. A request is
checked in this order:

    another producer id (49), another epoch (47), a change that is not acknowledged (51), the state

0.11.0.3 departs: it takes a larger epoch in EndTxn and is stuck after that, and its fence raises
the epoch before the append, so that each try costs one although nothing is stored. Source:
kafka.coordinator.transaction.TransactionCoordinator, TransactionMetadata 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kafka08.errors import (
    NO_ERROR,
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
)
from kafka08.protocol.transaction_records import NO_START, TransactionRecord, TransactionState
from kafka08.structs import TopicPartition

EPOCH_MAX: Final = 2**15 - 2
"""The last epoch that a producer gets; EPOCH_FENCED, above it, only fences that one."""
EPOCH_FENCED: Final = EPOCH_MAX + 1
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState
PREPARED: Final = {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
IDLE: Final = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
PARTITIONS_MAX: Final = 50_000
"""Of a transaction: a record lists all of them, and must be readable."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change whose record is to be appended. `record` None: the id is forgotten."""

    record: TransactionRecord | None


class Transaction:
    """One transactional id.

    record             the acknowledged state; None before the first
    pending            the change whose record is not acknowledged yet
    unmarked           in a PREPARE state: the partitions that have no marker yet
    """

    def __init__(self, record: TransactionRecord | None = None) -> None:
        self.record = record
        self.pending: Change | None = None
        self.unmarked: set[TopicPartition] = set()
        if record is not None and record.state in PREPARED:
            self.unmarked = set(record.partitions)

    @property
    def needs_producer_id(self) -> bool:
        """Whether `init` has no epoch left to give, or no id at all."""
        return self.record is None or (
            self.record.state in IDLE and self.record.producer_epoch >= EPOCH_MAX
        )

    # Requests

    def init(self, timeout_ms: int, now_ms: int, new_id: int | None) -> int | Change:
        """InitProducerId. `new_id`: of a new producer, where `needs_producer_id`. In ONGOING the
        transaction is aborted first, and the client tries again: 51 follows the Change."""
        record = self.record
        if self.pending is not None:
            return ConcurrentTransactions.code
        if record is None or (record.state in IDLE and record.producer_epoch >= EPOCH_MAX):
            assert new_id is not None, "a new producer has no id"
            return self._change(
                TransactionRecord(new_id, 0, timeout_ms, EMPTY, frozenset(), now_ms)
            )
        if record.state in PREPARED:
            return ConcurrentTransactions.code
        if record.state is ONGOING:
            return self._fence(record, now_ms)
        return self._change(
            TransactionRecord(
                record.producer_id,
                record.producer_epoch + 1,
                timeout_ms,
                EMPTY,
                frozenset(),
                now_ms,
            )
        )

    def add(
        self, producer_id: int, epoch: int, partitions: Iterable[TopicPartition], now_ms: int
    ) -> int | Change:
        """AddPartitionsToTxn, AddOffsetsToTxn. 0 without a record if all are known."""
        record = self.record
        if code := self._refuse(producer_id, epoch):
            return code
        assert record is not None
        if record.state in PREPARED:
            return ConcurrentTransactions.code
        added = frozenset(partitions)
        if record.state is not ONGOING:
            return self._change(
                record._replace(
                    state=ONGOING,
                    partitions=added,
                    start_ms=now_ms,
                    last_update_ms=now_ms,
                )
            )
        if added <= record.partitions:
            return NO_ERROR
        if len(record.partitions | added) > PARTITIONS_MAX:
            return InvalidTxnState.code
        return self._change(
            record._replace(partitions=record.partitions | added, last_update_ms=now_ms)
        )

    def end(self, producer_id: int, epoch: int, commits: bool, now_ms: int) -> int | Change:
        """EndTxn. The same end again is 0 once the first is complete."""
        record = self.record
        if code := self._refuse(producer_id, epoch):
            return code
        assert record is not None
        if record.state in PREPARED:
            return ConcurrentTransactions.code
        if record.state is ONGOING:
            state = PREPARE_COMMIT if commits else PREPARE_ABORT
            return self._change(record._replace(state=state, last_update_ms=now_ms))
        complete = COMPLETE_COMMIT if commits else COMPLETE_ABORT
        return NO_ERROR if record.state is complete else InvalidTxnState.code

    def _refuse(self, producer_id: int, epoch: int) -> int:
        if self.record is None or self.record.producer_id != producer_id:
            return InvalidProducerIdMapping.code
        if self.record.producer_epoch != epoch:
            return InvalidProducerEpoch.code
        return NO_ERROR if self.pending is None else ConcurrentTransactions.code

    # Time

    def has_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction is open for longer than its producer allows. The clock goes on
        over a change of coordinator, since the start is in the log."""
        record = self.record
        return (
            self.pending is None
            and record is not None
            and record.state is ONGOING
            and record.start_ms + record.timeout_ms < now_ms
        )

    def abort_timed_out(self, now_ms: int) -> Change:
        """End a transaction that has timed out, and fence its producer."""
        assert self.has_timed_out(now_ms)
        assert self.record is not None
        return self._fence(self.record, now_ms)

    def expire(self, now_ms: int, after_ms: int) -> Change | None:
        """The change that forgets an id without a transaction, `after_ms` after its last change."""
        record = self.record
        if self.pending is not None or record is None or record.state not in IDLE:
            return None
        if record.last_update_ms > now_ms - after_ms:
            return None
        self.pending = Change(None)
        return self.pending

    # Markers

    def marked(self, partition: TopicPartition, now_ms: int) -> Change | None:
        """A partition has the marker, or is gone. The change that completes the transaction after
        the last one."""
        self.unmarked.discard(partition)
        return self.complete(now_ms)

    def complete(self, now_ms: int) -> Change | None:
        """The change that completes a transaction whose partitions all have their markers."""
        record = self.record
        if self.unmarked or self.pending is not None or record is None:
            return None
        if record.state not in PREPARED:
            return None
        return self._change(
            record._replace(
                state=PREPARED[record.state],
                partitions=frozenset(),
                last_update_ms=now_ms,
            )
        )

    def raise_epoch(self, now_ms: int) -> Change | None:
        """A leader knows a later epoch of the producer than its coordinator gave, and takes no
        marker with this one. The change to the epoch that every leader takes; None if it is made or
        another change is pending. The producer id is not used again."""
        record = self.record
        if self.pending is not None or record is None or record.state not in PREPARED:
            return None
        if record.producer_epoch == EPOCH_FENCED:
            return None
        return self._change(record._replace(producer_epoch=EPOCH_FENCED, last_update_ms=now_ms))

    # The log

    def appended(self, change: Change) -> None:
        """The record is acknowledged by the in-sync replicas: the state changes."""
        assert change is self.pending, "another change is pending"
        self.pending = None
        former, self.record = self.record, change.record
        if change.record is None or change.record.state not in PREPARED:
            return
        if former is None or former.state is not change.record.state:  # else markers are written
            self.unmarked = set(change.record.partitions)

    def not_appended(self, change: Change) -> None:
        """The record was refused: the state is as before."""
        assert change is self.pending, "another change is pending"
        self.pending = None

    def _fence(self, record: TransactionRecord, now_ms: int) -> Change:
        """Abort with the next epoch, which nobody gets: the old producer is refused everywhere."""
        return self._change(
            record._replace(
                # No producer has EPOCH_FENCED, but a record of another broker may.
                producer_epoch=min(record.producer_epoch + 1, EPOCH_FENCED),
                state=PREPARE_ABORT,
                last_update_ms=now_ms,
            )
        )

    def _change(self, record: TransactionRecord) -> Change:
        assert record.state is not EMPTY or record.start_ms == NO_START
        self.pending = Change(record)
        return self.pending
