"""Ends of transactions (from 0.11 on), for operators.

A transaction is aborted as a new producer of the same id does it: InitProducerId fences the former
producer. In one partition it can be ended by hand, with a marker as a coordinator writes it. That
is for a transaction that no coordinator ends: a message that came behind the marker has opened it,
or its transactional id has expired, or its coordinator has given up (0.11.0.3 does, until another
broker coordinates the id).

A marker has the epoch of a coordinator, which no request of 0.11 tells. It is that of the newest
record in the id's partition of `__transaction_state`; an id that is not there comes never again.
"""

from __future__ import annotations

from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import log_ends
from kafka08.errors import (
    NO_ERROR,
    AdminError,
    ConcurrentTransactions,
    KafkaError,
    RequestTimedOut,
    check,
    error_of,
)
from kafka08.hashing import transaction_partition
from kafka08.nearest import did_you_mean
from kafka08.network.connection import Connection
from kafka08.observe.transactions import (
    FoundTransaction,
    WaitingPartition,
    batches_from,
    partitions_of,
    transactions,
)
from kafka08.protocol.add_partitions_to_txn import TxnTopic
from kafka08.protocol.grouping import by_partition
from kafka08.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.transaction_records import TransactionState
from kafka08.protocol.write_txn_markers import (
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka08.runtime import Runtime
from kafka08.structs import TRANSACTIONS_TOPIC, TopicPartition

ABORT_S: Final = 30.0
PAUSE_S: Final = 0.1
COORDINATOR_EPOCH_MAX: Final = 2**31 - 1


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
        "; kafka08 transaction list shows all"
    )


def abort_transaction(cluster: ClusterClient, found: FoundTransaction, runtime: Runtime) -> None:
    """Abort an open transaction, and fence its producer. AdminError if it has no end in time, and
    for one whose end is decided: its coordinator writes the markers."""
    if found.record.state is not TransactionState.ONGOING:
        what = "committed" if found.record.state is TransactionState.PREPARE_COMMIT else "aborted"
        raise AdminError(
            f"The transaction of {found.transactional_id!r} is being {what}, which cannot be "
            "changed any more: broker "
            f"{found.coordinator} writes its markers. `kafka08 transaction hanging` shows the "
            "partitions that have none yet: each needs a leader and min.insync.replicas. `abort "
            "--partition` writes one by hand"
        )
    tp = _partition_of(cluster, found)
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


def end_by_hand(cluster: ClusterClient, waiting: WaitingPartition) -> bool:
    """Write the marker that ends the transaction in this partition, and return whether it commits:
    as its coordinator has decided, else it aborts. AdminError for a transaction that its
    coordinator can end, and for a marker that the leader refuses."""
    tp, found = waiting.partition, waiting.transaction
    state = found.record.state if found is not None and waiting.is_known else None
    if found is not None and state is TransactionState.ONGOING:
        raise AdminError(
            f"{tp}: transactional id {found.transactional_id!r} has its transaction open: "
            f"kafka08 transaction abort {found.transactional_id}"
        )
    commits = state is TransactionState.PREPARE_COMMIT
    epoch = waiting.epoch if state is None or found is None else found.record.producer_epoch
    marker = TxnMarker(
        waiting.producer_id,
        max(epoch, waiting.epoch),
        commits,
        [TxnTopic(tp.topic, [tp.partition])],
        COORDINATOR_EPOCH_MAX if found is None else _coordinator_epoch(cluster, found),
    )

    def ask(connection: Connection) -> None:
        response = connection.send(WriteTxnMarkersRequest([marker]))
        assert isinstance(response, WriteTxnMarkersResponse)
        for one in response.markers:
            code = by_partition(one.topics)[tp].error_code
            check(code, f"the marker for {tp} at {connection}")

    try:
        cluster.at_leader(tp, ask)
    except KafkaError as error:
        raise AdminError(f"{tp}: the transaction was not ended: {error}") from error
    return commits


def _coordinator_epoch(cluster: ClusterClient, found: FoundTransaction) -> int:
    """The leader epoch of the newest record beside the id's."""
    tp = _partition_of(cluster, found)
    end = log_ends(cluster, [tp])[tp]
    newest = cluster.at_leader(tp, lambda connection: batches_from(connection, tp, end - 1))
    return max((one.leader_epoch for one in newest), default=0)


def _partition_of(cluster: ClusterClient, found: FoundTransaction) -> TopicPartition:
    number = transaction_partition(found.transactional_id, len(partitions_of(cluster)))
    return TopicPartition(TRANSACTIONS_TOPIC, number)
