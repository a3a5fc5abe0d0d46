"""ListGroups: the groups that this broker coordinates, in any state.

Source: kafka.server.KafkaApis.handleListGroupsRequest 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.call import Call
from kafka08.broker.context import BrokerContext
from kafka08.protocol.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.types import Response


def handle(broker: BrokerContext, request: ListGroupsRequest, call: Call) -> Response:
    error_code, groups = broker.group_coordinator.all_groups()
    return ListGroupsResponse(
        error_code, [ListedGroup(group.name, group.protocol_type) for group in groups]
    )


def refuse(request: ListGroupsRequest, code: int) -> Response:
    return ListGroupsResponse(code, [])
