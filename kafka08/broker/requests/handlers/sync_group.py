"""SyncGroup: the response follows when the leader's assignment is stored; see Group.sync.

Source: kafka.server.KafkaApis.handleSyncGroupRequest 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.groups.group_events import NO_ASSIGNMENT
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.sync_group import SyncGroupRequest, SyncGroupResponse
from kafka08.protocol.types import Response


def handle(broker: BrokerContext, request: SyncGroupRequest, call: Call) -> NoResponse:
    def reply(assignment: bytes, error_code: int) -> None:
        call.respond(SyncGroupResponse(error_code, assignment))

    broker.group_coordinator.sync(request, call.answering(reply))
    return NoResponse.PARKED


def refuse(request: SyncGroupRequest, code: int) -> Response:
    return SyncGroupResponse(code, NO_ASSIGNMENT)
