"""ConsumerMetadata: the leader of the group's partition of `__consumer_offsets`; in version 1 also
that of a transactional id's partition of `__transaction_state`.

Creates the topic if it is unknown. 15 with id -1, host "" and port -1 until that partition has a
live leader; from 0.11 on also while there are fewer brokers than the topic has replicas. Source:
kafka.server.KafkaApis 0.8.2.2, which after an unexpected error responds with correlation id 0;
here the response has the request's id.
"""

from __future__ import annotations

import logging

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import NO_ERROR, AdminError, ConsumerCoordinatorNotAvailable
from kafka08.protocol.consumer_metadata import (
    GROUP,
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
)
from kafka08.protocol.types import NULL_NAME, Response
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

logger = logging.getLogger(__name__)


def handle(
    broker: BrokerContext, request: ConsumerMetadataRequest, call: Call
) -> Response | NoResponse:
    if request.group is NULL_NAME:
        return not_available()
    is_group = request.coordinator_type == GROUP
    topic = OFFSETS_TOPIC if is_group else TRANSACTIONS_TOPIC
    if topic in broker.metadata_cache:
        owner = broker.offset_manager if is_group else broker.transactions
        return coordinator_of(broker, TopicPartition(topic, owner.partition_for(request.group)))

    def create() -> Response:
        try:
            broker.topics.create([topic])
        except AdminError as error:
            logger.warning("Cannot create %s yet: %s", topic, error, extra=call.cause)
        return not_available()

    return call.run_in_greenlet(f"creation of {topic}", create)


def refuse(request: ConsumerMetadataRequest, code: int) -> Response:
    return not_available()


def coordinator_of(broker: BrokerContext, partition: TopicPartition) -> ConsumerMetadataResponse:
    """The live leader of a partition, according to the metadata cache."""
    cache = broker.metadata_cache
    state = cache.partition_state(partition)
    leader = None if state is None else cache.broker(state.leader, broker.listener)
    if leader is None:
        return not_available()
    return ConsumerMetadataResponse(NO_ERROR, leader.id, leader.host, leader.port)


def not_available() -> ConsumerMetadataResponse:
    return ConsumerMetadataResponse(ConsumerCoordinatorNotAvailable.code, -1, "", -1)
