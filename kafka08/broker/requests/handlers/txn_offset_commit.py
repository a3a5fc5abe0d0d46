"""TxnOffsetCommit: offsets of a group that count once the producer's transaction is committed.

For each partition: 3 if it cannot exist, 12 for too long metadata, else what the group's
coordinator says, which does not check members. 47 for a producer that was fenced, 48 for a
transaction without the group, as far as this broker knows: see TransactionChecks. Source:
kafka.server.KafkaApis.handleTxnOffsetCommitRequest 0.11.0.2, which takes all offsets. Those of a
fenced producer are committed by the next transaction of its successor, others hang.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.broker.groups.offset_manager import Producer
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.handlers.offset_commit import may_exist
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailable,
    NotEnoughReplicas,
    UnknownTopicOrPartition,
)
from kafka08.format.batch import NO_PRODUCER
from kafka08.protocol.add_partitions_to_txn import results_of
from kafka08.protocol.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import OFFSETS_TOPIC, OffsetAndMetadata, TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def handle(
    broker: BrokerContext, request: TxnOffsetCommitRequest, call: Call
) -> TxnOffsetCommitResponse | NoResponse:
    offsets = offsets_of(request)
    return call.run_by_count(
        "TxnOffsetCommit", len(offsets), lambda: commit(broker, request, call, offsets)
    )


def commit(
    broker: BrokerContext, request: TxnOffsetCommitRequest, call: Call, offsets: Offsets
) -> TxnOffsetCommitResponse | NoResponse:
    """Switches if there are more than PARTITIONS_AT_ONCE offsets."""
    codes = {tp: UnknownTopicOrPartition.code for tp in offsets if not may_exist(broker, tp)}
    known = [tp for tp in offsets if tp not in codes]
    if code := refusal(broker, request):
        codes |= dict.fromkeys(known, code)
        known = []
    if not known:
        return TxnOffsetCommitResponse(0, results_of(codes))

    def done(some: Mapping[TopicPartition, int]) -> None:
        codes.update(some)
        if len(codes) == len(offsets):
            in_order = {tp: codes[tp] for tp in offsets}
            call.respond(TxnOffsetCommitResponse(0, results_of(in_order)))

    producer = Producer(request.producer_id, request.producer_epoch)
    for turn in yielding_batches(known, broker.runtime, PARTITIONS_AT_ONCE):
        some = {tp: offsets[tp] for tp in turn}
        broker.group_coordinator.commit_in_transaction(
            request.group, producer, some, call.answering(done)
        )
    return NoResponse.PARKED


def refusal(broker: BrokerContext, request: TxnOffsetCommitRequest) -> int:
    """The code for a producer that has no such transaction, from the group's coordinator."""
    coordinates = broker.group_coordinator.find(request.group)[0] == NO_ERROR
    if request.producer_id == NO_PRODUCER or not coordinates:
        return NO_ERROR
    number = broker.offset_manager.partition_for(request.group)
    error = broker.transaction_checks.error_of(
        request.transactional_id,
        TopicPartition(OFFSETS_TOPIC, number),
        request.producer_id,
        request.producer_epoch,
    )
    if isinstance(error, NotEnoughReplicas):
        return ConsumerCoordinatorNotAvailable.code
    return NO_ERROR if error is None else error.code


def offsets_of(request: TxnOffsetCommitRequest) -> Offsets:
    """The offsets with their partitions; of a duplicate partition the last one counts."""
    return {
        TopicPartition(topic.topic, one.partition): OffsetAndMetadata(one.offset, one.metadata)
        for topic in request.topics
        for one in topic.partitions
    }


def refuse(request: TxnOffsetCommitRequest, code: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(0, results_of(dict.fromkeys(offsets_of(request), code)))
