"""LeaveGroup: see Group.leave.

Source: kafka.server.KafkaApis.handleLeaveGroupRequest 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafka08.protocol.types import Response


def handle(broker: BrokerContext, request: LeaveGroupRequest, call: Call) -> Response:
    return LeaveGroupResponse(broker.group_coordinator.leave(request.group, request.member_id))


def refuse(request: LeaveGroupRequest, code: int) -> Response:
    return LeaveGroupResponse(code)
