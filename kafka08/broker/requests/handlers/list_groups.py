"""ListGroups: the groups that this broker coordinates, in any state.

Source: kafka.server.KafkaApis.handleListGroupsRequest 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.protocol.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.types import Response
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches


def handle(broker: BrokerContext, request: ListGroupsRequest, call: Call) -> Response | NoResponse:
    error_code, groups = broker.group_coordinator.all_groups()

    def respond() -> Response:
        """Switches if there are more than PARTITIONS_AT_ONCE groups."""
        turns = yielding_batches(groups, broker.runtime, PARTITIONS_AT_ONCE)
        listed = [ListedGroup(one.name, one.protocol_type) for turn in turns for one in turn]
        return ListGroupsResponse(error_code, listed)

    return call.run_by_count("ListGroups", len(groups), respond, is_large=True)


def refuse(request: ListGroupsRequest, code: int) -> Response:
    return ListGroupsResponse(code, [])
