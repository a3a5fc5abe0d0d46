"""UpdateMetadata: the controller updates this broker's metadata cache.

0, or -1 (not 11) for an old controller. Source: KafkaApis.handleUpdateMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import UnknownError
from kafka08.protocol.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kafka08.structs import LEADER_DURING_DELETE, TopicPartition


def handle(
    broker: BrokerContext, request: UpdateMetadataRequest, call: Call
) -> UpdateMetadataResponse:
    call.check_controller(request.controller_epoch)
    broker.deleted_topics.controller_speaks(request.controller_epoch)
    with broker.unconfirmed_leaderships.hearing(request.partition_states, call.connection):
        broker.replica_manager.update_metadata(request)
    broker.group_coordinator.forget_partitions(
        TopicPartition(state.topic, state.partition)
        for state in request.partition_states
        if state.leader == LEADER_DURING_DELETE
    )
    for topic in dict.fromkeys(state.topic for state in request.partition_states):
        broker.topic_waits.topic_updated(topic)
    return UpdateMetadataResponse(0)


def refuse_by_code(request: UpdateMetadataRequest, code: int) -> UpdateMetadataResponse:
    """Code 11 for an old controller, as from 0.9 on."""
    return UpdateMetadataResponse(code)


def refuse(request: UpdateMetadataRequest, code: int) -> UpdateMetadataResponse:
    # 0.8: the response to any error is -1.
    return UpdateMetadataResponse(UnknownError.code)
