"""ApiVersions: the served APIs, independent of inter.broker.protocol.version.

An unsupported version gets error 35, in the layout of version 0. Source:
KafkaApis.handleApiVersionsRequest 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka08.protocol.served import SERVED, api_versions


def handle(broker: BrokerContext, request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    return api_versions(SERVED[broker.config.level], call.header.version)


def refuse(request: ApiVersionsRequest, code: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(code, [])
