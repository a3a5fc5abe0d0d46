"""TransactionChecks: whether a transaction is open before its first batch in a partition is taken.

    the batch is of an open transaction here            taken: see Producers
    this broker coordinates the transactional id        taken if the partition is in its transaction
                                                        with that producer and epoch. Else 47 for a
                                                        producer that was fenced, 48 for others
    it is about to coordinate it                        19, so that the producer tries again
    another broker coordinates it                       taken

So are offsets of groups that are committed in a transaction, where 19 is 15. 0.11.0.3 takes all of
them. One that comes after the marker opens a transaction that nobody ends: no
reader of committed messages gets past it (KAFKA-12671).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.broker.purgatory.delayed_produce import AppendResult, AppendResults
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.transactions.transaction import ONGOING
from kafka08.broker.transactions.transaction_coordinator import TransactionCoordinator
from kafka08.errors import (
    NO_ERROR,
    ApiError,
    InvalidProducerEpoch,
    InvalidTxnState,
    NotCoordinatorForConsumer,
    NotEnoughReplicas,
    Refusal,
)
from kafka08.format.v2 import transactional_producer
from kafka08.protocol.transaction_records import TransactionRecord
from kafka08.protocol.types import Buffer
from kafka08.structs import NO_OFFSET, TopicPartition


class TransactionChecks:
    """The checks of one broker. Never switches."""

    def __init__(
        self, replica_manager: ReplicaManager, coordinator: TransactionCoordinator
    ) -> None:
        self._replica_manager = replica_manager
        self._coordinator = coordinator

    def begin(self, transactional_id: str, sets: Mapping[TopicPartition, Buffer]) -> AppendResults:
        """Let the logs take the sets of a Produce request, each one batch; returns the results of
        those that must not be appended."""
        refused: AppendResults = {}
        known: tuple[int, TransactionRecord | None] | None = None
        for tp, data in sets.items():
            producer = transactional_producer(data)
            partition = self._replica_manager.find(tp)
            if producer is None or partition is None or partition.log is None:
                continue  # in no transaction, or refused when it is appended
            producers = partition.log.records.producers
            if producers.has_begun(*producer):
                continue
            if known is None:
                known = self._coordinator.record_of(transactional_id)
            error = _error_of(transactional_id, *known, tp, *producer)
            if error is None:
                producers.begin_transaction(*producer)
            else:
                refused[tp] = AppendResult(NO_OFFSET, NO_OFFSET, Refusal.of(error))
        return refused

    def error_of(
        self, transactional_id: str, tp: TopicPartition, producer_id: int, epoch: int
    ) -> ApiError | None:
        """Why a partition must not get a message in the transaction of a producer; None if it may,
        or if this broker does not know."""
        return _error_of(
            transactional_id, *self._coordinator.record_of(transactional_id), tp, producer_id, epoch
        )


def _error_of(
    transactional_id: str,
    code: int,
    record: TransactionRecord | None,
    tp: TopicPartition,
    producer_id: int,
    epoch: int,
) -> ApiError | None:
    """The same, by what the coordinator says of the transactional id."""
    if code == NotCoordinatorForConsumer.code:
        return None
    if code != NO_ERROR:
        return NotEnoughReplicas(f"the transactions of {transactional_id!r} are not loaded yet")
    if record is None or record.producer_id != producer_id:
        return InvalidTxnState(f"{transactional_id!r} has no producer {producer_id}")
    if epoch < record.producer_epoch:
        return InvalidProducerEpoch(
            f"producer {producer_id}: epoch {epoch} is below {record.producer_epoch}"
        )
    is_open = record.state is ONGOING and epoch == record.producer_epoch
    if not is_open or tp not in record.partitions:
        return InvalidTxnState(f"no transaction of {transactional_id!r} has {tp}")
    return None
