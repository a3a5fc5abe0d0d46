"""DescribeAcls, CreateAcls, DeleteAcls: refused with 54, since there is no authorizer.

Source: kafka.server.KafkaApis 0.11.0.2, whose two texts differ in a full stop.
"""

from __future__ import annotations

from typing import TypeAlias

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import SecurityDisabled
from kafka08.protocol.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from kafka08.protocol.delete_acls import AclFilterResult, DeleteAclsRequest, DeleteAclsResponse
from kafka08.protocol.describe_acls import DescribeAclsRequest, DescribeAclsResponse

AclRequest: TypeAlias = DescribeAclsRequest | CreateAclsRequest | DeleteAclsRequest
AclResponse: TypeAlias = DescribeAclsResponse | CreateAclsResponse | DeleteAclsResponse

TEXT = "No Authorizer is configured on the broker"


def handle(broker: BrokerContext, request: AclRequest, call: Call) -> AclResponse:
    return response(request, SecurityDisabled.code, TEXT)


def refuse(request: AclRequest, code: int) -> AclResponse:
    return response(request, code, None)


def response(request: AclRequest, code: int, text: str | None) -> AclResponse:
    if isinstance(request, DescribeAclsRequest):
        return DescribeAclsResponse(0, code, text, [])
    sentence = None if text is None else f"{text}."
    if isinstance(request, CreateAclsRequest):
        return CreateAclsResponse(0, [AclCreationResult(code, sentence) for _ in request.creations])
    return DeleteAclsResponse(0, [AclFilterResult(code, sentence, []) for _ in request.filters])
