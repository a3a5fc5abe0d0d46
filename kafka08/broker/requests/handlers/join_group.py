"""JoinGroup: the response follows when all members have joined; see Group.join.

Source: kafka.server.KafkaApis.handleJoinGroupRequest 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.groups.group_events import JoinResult
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.join_group import JoinGroupMember, JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.types import Response


def handle(broker: BrokerContext, request: JoinGroupRequest, call: Call) -> NoResponse:
    coordinator = broker.group_coordinator

    reply = call.answering(lambda result: call.respond(respond(result)))
    if not request.member_id:
        call.when_closed(lambda: coordinator.abandon_join(request.group, reply))
    client_host = "" if request.member_id else f"/{call.peer.rpartition(':')[0]}"
    coordinator.join(request, call.header.client_id or "", client_host, reply)
    return NoResponse.PARKED


def refuse(request: JoinGroupRequest, code: int) -> Response:
    # As captured from 0.10.2.2, whose error response has no members.
    return JoinGroupResponse(code, -1, "", "", "", [])


def respond(result: JoinResult) -> JoinGroupResponse:
    return JoinGroupResponse(
        result.error_code,
        result.generation,
        result.protocol,
        result.leader_id,
        result.member_id,
        [JoinGroupMember(member_id, metadata) for member_id, metadata in result.members],
    )
