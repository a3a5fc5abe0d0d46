"""Heartbeat as 0.8.2.2 has it: it can be parsed, but nothing handles it, so it is answered -1.

Source: kafka.api.HeartbeatRequest.handleError 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.call import Call
from kafka08.broker.context import BrokerContext
from kafka08.errors import UnknownError
from kafka08.protocol.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(broker: BrokerContext, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    return refuse(request, UnknownError.code)


def refuse(request: HeartbeatRequest, code: int) -> HeartbeatResponse:
    return HeartbeatResponse(code)
