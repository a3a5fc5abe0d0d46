"""AddOffsetsToTxn: the group's partition of `__consumer_offsets` becomes one of the transaction.

Any group, also without a name. Source: kafka.server.KafkaApis.handleAddOffsetsToTxnRequest
0.11.0.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka08.structs import OFFSETS_TOPIC, TopicPartition


def handle(broker: BrokerContext, request: AddOffsetsToTxnRequest, call: Call) -> NoResponse:
    partition = TopicPartition(OFFSETS_TOPIC, broker.offset_manager.partition_for(request.group))
    broker.transactions.add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [partition],
        call.answering(lambda outcome: call.respond(refuse(request, outcome.code))),
    )
    return NoResponse.PARKED


def refuse(request: AddOffsetsToTxnRequest, code: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(0, code)
