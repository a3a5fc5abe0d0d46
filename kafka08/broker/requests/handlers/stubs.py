"""JoinGroup and Heartbeat of 0.8.2.2: parsed, but not handled, so the response is -1.

0.9's JoinGroup of the same key and version has another layout and closes the connection. Source:
kafka.api.JoinGroupRequest.handleError, kafka.api.HeartbeatRequest.handleError 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import UnknownError
from kafka08.protocol.stubs import (
    HeartbeatStubRequest,
    HeartbeatStubResponse,
    JoinGroupStubRequest,
    JoinGroupStubResponse,
)
from kafka08.protocol.types import Response

Stub = JoinGroupStubRequest | HeartbeatStubRequest


def handle(broker: BrokerContext, request: Stub, call: Call) -> Response:
    return refuse(request, UnknownError.code)


def refuse(request: Stub, code: int) -> Response:
    if isinstance(request, JoinGroupStubRequest):
        return JoinGroupStubResponse(code, -1, "", [])
    return HeartbeatStubResponse(code)
