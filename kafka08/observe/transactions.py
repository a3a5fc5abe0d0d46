"""Transactions of producers (from 0.11 on): their ids, and the partitions whose readers wait.

Brokers of 0.11 to 2.8 have no request that lists transactions, so `__transaction_state` is read:
the last record of each transactional id is its state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import log_ends, log_starts, offsets_or_errors
from kafka08.client.requests import fetch_request, fetch_results
from kafka08.errors import KafkaError, check
from kafka08.format import Batch, batches
from kafka08.network.connection import Connection
from kafka08.observe.internal_topics import records_of
from kafka08.protocol.fetch import (
    MAGIC_2_VERSION,
    RACK_VERSION,
    READ_COMMITTED,
    FetchRequest,
    FetchResponse,
)
from kafka08.protocol.transaction_records import (
    TransactionRecord,
    TransactionState,
    decode_key,
    decode_transaction,
)
from kafka08.runtime import Runtime
from kafka08.structs import LATEST_OFFSET, TRANSACTIONS_TOPIC, TopicPartition

OPEN: Final = frozenset(
    {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    }
)
"""The states in which a transaction has no end in its partitions yet."""
LOOK_BYTES: Final = 1 << 20
TIMEOUT_MAX_MS: Final = 900_000
"""The default of transaction.max.timeout.ms."""
CHECKED_EVERY_MS: Final = 60_000
"""Coordinators look that seldom for transactions that have timed out."""


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
    partitions = [TopicPartition(TRANSACTIONS_TOPIC, number) for number in partitions_of(cluster)]
    starts, ends = log_starts(cluster, partitions), log_ends(cluster, partitions)
    for tp in partitions:
        coordinator = cluster.leader(tp).id
        records = records_of(cluster, tp, starts[tp], ends[tp], runtime)
        newest = {decode_key(key): value for key, value in records}
        found += [
            FoundTransaction(name, decode_transaction(value, of_any_broker=True), coordinator)
            for name, value in newest.items()
            if value is not None
        ]
    return sorted(found, key=lambda one: one.transactional_id)


def partitions_of(cluster: ClusterClient) -> list[int]:
    """The partitions of `__transaction_state`; [] if it does not exist."""
    if TRANSACTIONS_TOPIC not in cluster.refresh().topics:
        return []
    return [one.partition for one in cluster.partitions(TRANSACTIONS_TOPIC)]


@dataclass(frozen=True, slots=True)
class WaitingPartition:
    """A partition whose readers of committed messages wait.

    offset        where they wait: the first message of the oldest open transaction
    end           where others are: the high watermark
    producer_id   of that transaction, with its `epoch`
    since_ms      timestamp of that message
    transaction   the transactional id with that producer id; None: there is none any more
    """

    partition: TopicPartition
    offset: int
    end: int
    producer_id: int
    epoch: int
    since_ms: int
    transaction: FoundTransaction | None = None

    @property
    def is_known(self) -> bool:
        """Whether a coordinator has this partition in a transaction that it will end."""
        found = self.transaction
        return (
            found is not None
            and found.record.state in OPEN
            and self.partition in found.record.partitions
            and found.record.producer_epoch >= self.epoch
        )

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it is open for longer than brokers allow, and a minute more."""
        found = self.transaction
        limit_ms = TIMEOUT_MAX_MS if found is None else found.record.timeout_ms
        since_ms = self.since_ms
        if found is not None and self.is_known:
            since_ms = max(since_ms, found.record.start_ms)
        return since_ms + limit_ms + 2 * CHECKED_EVERY_MS < now_ms


def waiting_partitions(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], runtime: Runtime
) -> list[WaitingPartition]:
    """Those of `partitions` in which readers of committed messages wait, in order; [] where no
    producer has ever had a transaction. One whose leader does not respond is left out."""
    if not partitions_of(cluster):
        return []
    wanted = dict.fromkeys(sorted(partitions), LATEST_OFFSET)
    stable = offsets_or_errors(cluster, wanted, isolation=READ_COMMITTED)
    ends = offsets_or_errors(cluster, wanted)
    found: list[WaitingPartition] = []
    for tp in wanted:
        offset, end = stable.get(tp), ends.get(tp)
        if isinstance(offset, list) and isinstance(end, list) and offset and end:
            found += _open_at(cluster, tp, offset[0], end[0])
    if not found:
        return []
    by_producer = {one.record.producer_id: one for one in transactions(cluster, runtime)}
    return [replace(one, transaction=by_producer.get(one.producer_id)) for one in found]


def _open_at(
    cluster: ClusterClient, tp: TopicPartition, offset: int, end: int
) -> list[WaitingPartition]:
    """The transaction that begins at the last stable offset; [] for one that has just ended."""
    if offset >= end:
        return []
    try:
        sets = cluster.at_leader(tp, lambda connection: batches_from(connection, tp, offset))
    except KafkaError:
        return []
    for one in sets:
        if one.last_offset >= offset and one.is_transactional and not one.is_control:
            epochs = [b.producer_epoch for b in sets if b.producer_id == one.producer_id]
            time_ms = one.max_timestamp_ms
            return [WaitingPartition(tp, offset, end, one.producer_id, max(epochs), time_ms)]
    return []


def batches_from(connection: Connection, tp: TopicPartition, offset: int) -> list[Batch]:
    """The record batches from an offset on, up to LOOK_BYTES. UnsupportedVersion before 0.11."""
    version = connection.versions.lowest(FetchRequest, MAGIC_2_VERSION, RACK_VERSION)
    request = fetch_request({tp: (offset, LOOK_BYTES)}, max_wait_ms=0, min_bytes=0, version=version)
    response = connection.send(request)
    assert isinstance(response, FetchResponse)
    result = fetch_results(response)[tp]
    check(result.error_code, f"{tp} at {connection}")
    return list(batches(bytes(result.message_set)))
