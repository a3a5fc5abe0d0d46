"""InitProducerId: any broker gives a new producer id; with a transactional id its coordinator gives
the id of that one's last producer with the next epoch.

15 while ZooKeeper gives no new ids, so that the producer asks again (0.11.0.3: -1, which ends it).
Source: kafka.server.KafkaApis.handleInitProducerIdRequest 0.11.0.2.
"""

from __future__ import annotations

import logging

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.transactions.transactional_ids import Outcome
from kafka08.errors import NO_ERROR, ConsumerCoordinatorNotAvailable, ZooKeeperError
from kafka08.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

logger = logging.getLogger(__name__)


def handle(broker: BrokerContext, request: InitProducerIdRequest, call: Call) -> NoResponse:
    def init() -> InitProducerIdResponse | NoResponse:
        transactional_id = request.transactional_id
        try:
            if transactional_id is None:
                return respond(Outcome(NO_ERROR, broker.producer_ids.next_id(), 0))
            broker.transactions.init(
                transactional_id,
                request.transaction_timeout_ms,
                call.answering(lambda outcome: call.respond(respond(outcome))),
            )
        except ZooKeeperError as error:
            logger.warning("No producer id for %s: %s", call.peer, error, extra=call.cause)
            return refuse(request, ConsumerCoordinatorNotAvailable.code)
        return NoResponse.PARKED

    return call.run_in_greenlet("InitProducerId", init)


def respond(outcome: Outcome) -> InitProducerIdResponse:
    return InitProducerIdResponse(0, *outcome)


def refuse(request: InitProducerIdRequest, code: int) -> InitProducerIdResponse:
    return respond(Outcome(code))
