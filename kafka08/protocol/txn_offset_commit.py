"""TxnOffsetCommit (key 28): a producer stores a group's offsets as part of its transaction.

They count once the transaction is committed. Error codes, one for each partition: 3, 12, 14, 15,
16, 47. Source: kafka.server.KafkaApis.handleTxnOffsetCommitRequest 0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.add_partitions_to_txn import TxnTopicResult
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.offset_commit import NO_GENERATION, NO_MEMBER
from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    NullableString,
    Request,
    Response,
    Since,
    String,
)
from kafka08.structs import NO_LEADER_EPOCH

GENERATION_VERSION: Final = 3
"""From this version on the coordinator refuses the offsets of a former generation: errors 22, 25
and 82."""


@dataclass(slots=True)
class TxnOffset:
    partition: Int32
    offset: Int64
    metadata: NullableString
    leader_epoch: Annotated[Int32, Since(2, before="metadata")] = NO_LEADER_EPOCH
    """That of the last message before the offset; -1: not known."""


@dataclass(slots=True)
class TxnOffsetTopic:
    topic: String
    partitions: list[TxnOffset]


@dataclass(slots=True)
class TxnOffsetCommitResponse(Response):
    throttle_ms: Int32
    topics: list[TxnTopicResult]


@dataclass(slots=True)
class TxnOffsetCommitRequest(Request):
    transactional_id: String
    group: String
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TxnOffsetTopic]
    generation: Annotated[Int32, Since(3, before="topics")] = NO_GENERATION
    """That of the member whose offsets these are; -1: of none, or not compared."""
    member: Annotated[String, Since(3, before="topics")] = NO_MEMBER
    instance_id: Annotated[NullableString, Since(3, before="topics")] = None
    """The name of a static member."""


API = Api(
    28,
    "TxnOffsetCommit",
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    (
        ApiVersion(0, TxnOffsetCommitRequest, TxnOffsetCommitResponse, since=Level.V0_11_0),
        ApiVersion(1, TxnOffsetCommitRequest, TxnOffsetCommitResponse, since=None),
        ApiVersion(2, TxnOffsetCommitRequest, TxnOffsetCommitResponse, since=None),
        ApiVersion(
            GENERATION_VERSION,
            TxnOffsetCommitRequest,
            TxnOffsetCommitResponse,
            since=None,
            is_flexible=True,
        ),
    ),
)
