"""JoinGroup as 0.8.2.2 has it: it can be parsed, but nothing handles it, so it is answered -1.

0.9's request of the same key and version has another layout and closes the connection. Source:
kafka.api.JoinGroupRequest.handleError 0.8.2.2.
"""

from __future__ import annotations

from kafka08.broker.call import Call
from kafka08.broker.context import BrokerContext
from kafka08.errors import UnknownError
from kafka08.protocol.join_group import JoinGroupRequest, JoinGroupResponse


def handle(broker: BrokerContext, request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    return refuse(request, UnknownError.code)


def refuse(request: JoinGroupRequest, code: int) -> JoinGroupResponse:
    return JoinGroupResponse(code, -1, "", [])
