"""Heartbeat: see Group.heartbeat.

Source: kafka.server.KafkaApis.handleHeartbeatRequest 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka08.protocol.types import Response


def handle(broker: BrokerContext, request: HeartbeatRequest, call: Call) -> Response:
    return HeartbeatResponse(
        broker.group_coordinator.heartbeat(request.group, request.member_id, request.generation)
    )


def refuse(request: HeartbeatRequest, code: int) -> Response:
    return HeartbeatResponse(code)
