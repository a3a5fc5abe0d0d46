"""Transactions of producers, as `__transaction_state` has them (from 0.11 on).

Brokers of 0.11 to 2.8 have no request that lists transactions, so the topic is read: the last
record of each transactional id is its state. A transaction is aborted as a new producer of the same
id does it: InitProducerId fences the former producer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.errors import (
    NO_ERROR,
    AdminError,
    ConcurrentTransactions,
    RequestTimedOut,
    error_of,
)
from kafka08.hashing import transaction_partition
from kafka08.nearest import did_you_mean
from kafka08.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.transaction_records import (
    TransactionRecord,
    TransactionState,
    decode_key,
    decode_transaction,
)
from kafka08.runtime import Runtime
from kafka08.structs import TRANSACTIONS_TOPIC, TopicPartition

OPEN: Final = frozenset(
    {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    }
)
"""The states in which a transaction has no end in its partitions yet."""
ABORT_S: Final = 30.0
PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class FoundTransaction:
    """A transactional id: its last record, and the broker that leads its partition."""

    transactional_id: str
    record: TransactionRecord
    coordinator: int

    @property
    def is_open(self) -> bool:
        return self.record.state in OPEN


def transactions(cluster: ClusterClient, runtime: Runtime) -> list[FoundTransaction]:
    """All transactional ids, in order; [] if no producer has ever had one. ProtocolError for a
    record that cannot be read."""
    found: list[FoundTransaction] = []
    for info in partitions_of(cluster):
        tp = TopicPartition(TRANSACTIONS_TOPIC, info)
        coordinator = cluster.leader(tp).id
        newest = {decode_key(key): value for key, value in _records(cluster, tp, runtime)}
        found += [
            FoundTransaction(name, decode_transaction(value), coordinator)
            for name, value in newest.items()
            if value is not None
        ]
    return sorted(found, key=lambda one: one.transactional_id)


def find_transaction(
    cluster: ClusterClient, transactional_id: str, runtime: Runtime
) -> FoundTransaction:
    """One transactional id. AdminError if there is none."""
    found = transactions(cluster, runtime)
    for one in found:
        if one.transactional_id == transactional_id:
            return one
    names = [one.transactional_id for one in found]
    raise AdminError(
        f"There is no transactional id {transactional_id!r}{did_you_mean(transactional_id, names)}"
    )


def abort_transaction(cluster: ClusterClient, found: FoundTransaction, runtime: Runtime) -> None:
    """Abort an open transaction, and fence its producer. AdminError if it has no end in time."""
    count = len(partitions_of(cluster))
    partition = transaction_partition(found.transactional_id, count)
    tp = TopicPartition(TRANSACTIONS_TOPIC, partition)
    request = InitProducerIdRequest(found.transactional_id, found.record.timeout_ms)
    deadline = runtime.monotonic() + ABORT_S
    code = ConcurrentTransactions.code
    while runtime.monotonic() < deadline:
        response = cluster.at_leader(tp, lambda connection: connection.send(request))
        assert isinstance(response, InitProducerIdResponse)
        code = response.error_code
        if code == NO_ERROR:
            return
        error = error_of(code)
        if error is not None and not error.retriable:
            raise AdminError(f"Transactional id {found.transactional_id!r}: {error}")
        runtime.sleep(PAUSE_S)
    raise AdminError(
        f"The transaction of {found.transactional_id!r} has no end after {ABORT_S:.0f} s "
        f"({error_of(code) or RequestTimedOut()}); kafka08 transaction describe shows its state"
    )


def partitions_of(cluster: ClusterClient) -> list[int]:
    """The partitions of `__transaction_state`; [] if it does not exist."""
    if TRANSACTIONS_TOPIC not in cluster.refresh().topics:
        return []
    return [one.partition for one in cluster.partitions(TRANSACTIONS_TOPIC)]


def _records(
    cluster: ClusterClient, tp: TopicPartition, runtime: Runtime
) -> Iterator[tuple[bytes, bytes | None]]:
    start, end = log_starts(cluster, [tp])[tp], log_ends(cluster, [tp])[tp]
    reader = PartitionReader(cluster, tp, start, clock=runtime)
    while (before := reader.position) < end:
        for batch in reader.poll(BatchLimits()):
            for key, value in zip(batch.keys(), batch.values(), strict=True):
                if key is not None:
                    yield bytes(key), None if value is None else bytes(value)
        if reader.position == before:
            return
