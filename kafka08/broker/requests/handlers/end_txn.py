"""EndTxn: answered once the decision is stored; the markers follow.

Source: kafka.server.KafkaApis.handleEndTxnRequest 0.11.0.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.end_txn import EndTxnRequest, EndTxnResponse


def handle(broker: BrokerContext, request: EndTxnRequest, call: Call) -> NoResponse:
    broker.transactions.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.commits,
        call.answering(lambda outcome: call.respond(refuse(request, outcome.code))),
    )
    return NoResponse.PARKED


def refuse(request: EndTxnRequest, code: int) -> EndTxnResponse:
    return EndTxnResponse(0, code)
