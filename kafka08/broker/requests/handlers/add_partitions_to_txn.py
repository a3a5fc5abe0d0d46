"""AddPartitionsToTxn: all partitions or none.

If one does not exist (3), or is of an internal topic, the others, and that of the internal topic,
have 55; that is found before the coordinator is asked. Else its code is that of all. Source:
kafka.server.KafkaApis.handleAddPartitionToTxnRequest 0.11.0.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import OperationNotAttempted, UnknownTopicOrPartition
from kafka08.protocol.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    partitions_of,
    results_of,
)
from kafka08.structs import INTERNAL_TOPICS


def handle(
    broker: BrokerContext, request: AddPartitionsToTxnRequest, call: Call
) -> AddPartitionsToTxnResponse | NoResponse:
    count = sum(len(topic.partitions) for topic in request.topics)
    return call.run_by_count("AddPartitionsToTxn", count, lambda: add(broker, request, call))


def add(
    broker: BrokerContext, request: AddPartitionsToTxnRequest, call: Call
) -> AddPartitionsToTxnResponse | NoResponse:
    partitions = partitions_of(request.topics)
    cache = broker.metadata_cache
    unknown = {tp for tp in partitions if cache.partition_state(tp) is None}
    if unknown or any(topic.topic in INTERNAL_TOPICS for topic in request.topics):
        codes = dict.fromkeys(partitions, OperationNotAttempted.code)
        codes.update(dict.fromkeys(unknown, UnknownTopicOrPartition.code))
        return AddPartitionsToTxnResponse(0, results_of(codes))
    broker.transactions.add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        partitions,
        call.answering(lambda outcome: call.respond(refuse(request, outcome.code))),
    )
    return NoResponse.PARKED


def refuse(request: AddPartitionsToTxnRequest, code: int) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        0, results_of(dict.fromkeys(partitions_of(request.topics), code))
    )
