"""The records of `__transaction_state`, one for each change of a transactional id.

    key      version:i16=0  transactional_id:string
    value    version:i16=0  producer_id:i64 epoch:i16 timeout_ms:i32 state:i8
                            topics:[topic:string partitions:[i32]]? last_update_ms:i64 start_ms:i64

A null value deletes the transactional id. The topics are null in the state EMPTY and none in both
COMPLETE states. Brokers from 4.0 on write version 1 of the value, which is flexible (its tagged
fields are of no use here): tools read it, brokers of ours write version 0. Source:
kafka.coordinator.transaction.TransactionLog 0.11.0.2, TransactionLogValue 4.4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol.add_partitions_to_txn import TxnTopic
from kafka08.protocol.codec import decode_body, encode_body
from kafka08.protocol.types import Buffer, Int8, Int16, Int32, Int64, Request, String
from kafka08.structs import TopicPartition

VERSION: Final = 0
FLEXIBLE_VERSION: Final = 1
VERSION_BYTES: Final = 2
NO_START: Final = -1


class TransactionState(enum.IntEnum):
    """The state of a transactional id, as its records have it."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


class TransactionRecord(NamedTuple):
    """A transactional id between two changes."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    last_update_ms: int
    start_ms: int = NO_START
    """Of the transaction; NO_START in EMPTY."""


@dataclass(slots=True)
class _Key:
    version: Int16
    transactional_id: String


@dataclass(slots=True)
class _Value:
    ITEMS_MAX = Request.ITEMS_MAX

    version: Int16
    producer_id: Int64
    producer_epoch: Int16
    timeout_ms: Int32
    state: Int8
    topics: list[TxnTopic] | None
    last_update_ms: Int64
    start_ms: Int64


def encode_key(transactional_id: str) -> bytes:
    """ProtocolError for an id that is too long."""
    return encode_body(_Key(VERSION, transactional_id))


def decode_key(data: Buffer) -> str:
    """The transactional id. ProtocolError."""
    key, _ = decode_body(_Key, data)
    if key.version != VERSION:
        raise ProtocolError(f"transaction log: unknown key version {key.version}")
    return key.transactional_id


def encode_transaction(record: TransactionRecord) -> bytes:
    """ProtocolError if a value does not fit its field."""
    topics = None if record.state is TransactionState.EMPTY else topics_of(record.partitions)
    return encode_body(
        _Value(
            VERSION,
            record.producer_id,
            record.producer_epoch,
            record.timeout_ms,
            record.state,
            topics,
            record.last_update_ms,
            record.start_ms,
        )
    )


def decode_transaction(data: Buffer, *, of_any_broker: bool = False) -> TransactionRecord:
    """ProtocolError for an unknown version or state, or malformed bytes. `of_any_broker`: also as
    brokers from 4.0 on write it."""
    version = int.from_bytes(data[:VERSION_BYTES])
    is_flexible = of_any_broker and version == FLEXIBLE_VERSION
    value, _ = decode_body(_Value, data, is_flexible=is_flexible)
    if not is_flexible and version != VERSION:
        raise ProtocolError(f"transaction log: unknown value version {version}")
    try:
        state = TransactionState(value.state)
    except ValueError:
        raise ProtocolError(f"transaction log: unknown state {value.state}") from None
    partitions = frozenset(
        TopicPartition(one.topic, number) for one in value.topics or () for number in one.partitions
    )
    return TransactionRecord(
        value.producer_id,
        value.producer_epoch,
        value.timeout_ms,
        state,
        partitions,
        value.last_update_ms,
        value.start_ms,
    )


def topics_of(partitions: Iterable[TopicPartition]) -> list[TxnTopic]:
    """The partitions by topic, in order."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return [TxnTopic(*item) for item in topics.items()]
