"""AddPartitionsToTxn (key 24): a producer announces the partitions that it will write to.

The first request after the last transaction's end begins the next one. All partitions or none:
with an error of one (3, 17, 29) the others have 55. Error codes of all: 14, 15, 16, 42, 47, 49, 51.
Source: kafka.coordinator.transaction.TransactionCoordinator 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Int64, Request, Response, String
from kafka08.structs import TopicPartition


@dataclass(slots=True)
class TxnTopic:
    """Partitions of one topic (also in WriteTxnMarkers)."""

    topic: String
    partitions: list[Int32]


@dataclass(slots=True)
class TxnPartitionResult:
    partition: Int32
    error_code: Int16


@dataclass(slots=True)
class TxnTopicResult:
    """Results of one topic (also in WriteTxnMarkers and TxnOffsetCommit)."""

    topic: String
    partitions: list[TxnPartitionResult]


@dataclass(slots=True)
class AddPartitionsToTxnResponse(Response):
    throttle_ms: Int32
    topics: list[TxnTopicResult]


@dataclass(slots=True)
class AddPartitionsToTxnRequest(Request):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TxnTopic]


API = Api(
    24,
    "AddPartitionsToTxn",
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    (ApiVersion(0, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, since=Level.V0_11_0),),
)


def partitions_of(topics: Iterable[TxnTopic]) -> list[TopicPartition]:
    """The partitions of some topics, each once."""
    found = (TopicPartition(topic.topic, n) for topic in topics for n in topic.partitions)
    return list(dict.fromkeys(found))


def results_of(codes: Mapping[TopicPartition, int]) -> list[TxnTopicResult]:
    """The codes of partitions by topic."""
    topics: dict[str, list[TxnPartitionResult]] = {}
    for (topic, number), code in codes.items():
        topics.setdefault(topic, []).append(TxnPartitionResult(number, code))
    return [TxnTopicResult(*item) for item in topics.items()]
