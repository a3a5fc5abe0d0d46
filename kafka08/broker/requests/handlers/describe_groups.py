"""DescribeGroups: state, protocol and members of groups that this broker coordinates.

An unknown group is Dead, without an error. Protocol, metadata and assignments are returned only in
the state Stable. Source: kafka.server.KafkaApis.handleDescribeGroupRequest,
kafka.coordinator.GroupMetadata.summary 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.groups.group import Group
from kafka08.broker.groups.group_state import GroupState
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import NO_ERROR
from kafka08.protocol.describe_groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka08.protocol.types import Response
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches


def handle(
    broker: BrokerContext, request: DescribeGroupsRequest, call: Call
) -> Response | NoResponse:
    return call.run_by_count(
        "DescribeGroups", len(request.groups), lambda: respond(broker, request), is_large=True
    )


def respond(broker: BrokerContext, request: DescribeGroupsRequest) -> Response:
    """Switches if there are more than PARTITIONS_AT_ONCE groups."""
    names = dict.fromkeys(request.groups)
    groups: list[DescribedGroup] = []
    for turn in yielding_batches(names, broker.runtime, PARTITIONS_AT_ONCE):
        groups += [describe(name, *broker.group_coordinator.find(name)) for name in turn]
    return DescribeGroupsResponse(groups)


def refuse(request: DescribeGroupsRequest, code: int) -> Response:
    return DescribeGroupsResponse([describe(name, code, None) for name in request.groups])


def describe(name: str, error_code: int, group: Group | None) -> DescribedGroup:
    """A group in the form of the response."""
    if error_code or group is None:
        state = "" if error_code else GroupState.DEAD.value
        return DescribedGroup(error_code, name, state, "", "", [])
    stable = group.state is GroupState.STABLE
    protocol = group.protocol or "" if stable else ""
    members = [
        DescribedMember(
            member.member_id,
            member.client_id,
            member.client_host,
            member.metadata(protocol) if stable else b"",
            member.assignment if stable else b"",
        )
        for member in group.members.values()
    ]
    return DescribedGroup(NO_ERROR, name, group.state.value, group.protocol_type, protocol, members)
