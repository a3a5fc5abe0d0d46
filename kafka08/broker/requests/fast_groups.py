"""FastGroups: JoinGroup 1, SyncGroup and Heartbeat for groups that are loaded here, without message
objects.

The handlers answer all other requests: those of new members, of unknown groups, of groups that may
not be used now, and those with a bad session timeout. In both cases Group decides.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from kafka08.broker.groups.group_events import NO_MEMBER_ID, Join, JoinResult
from kafka08.broker.requests.call import answering
from kafka08.broker.requests.fallback import FALL_BACK, Fallback
from kafka08.kernel import pack_fields, unpack_fields
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.layout import form_of
from kafka08.protocol.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from kafka08.broker.requests.context import BrokerContext
    from kafka08.network.server_connection import RequestConnection

CORRELATION_ID: Final = 4
"""Its position in a request."""
HEADER: Final = b"iS"
"""From there on: the correlation id, and the client id."""
JOIN: Final = HEADER + form_of(JoinGroupRequest)
SYNC: Final = HEADER + form_of(SyncGroupRequest)
HEARTBEAT: Final = HEADER + form_of(HeartbeatRequest)
JOINED: Final = b"i" + form_of(JoinGroupResponse)
AT_ONCE_BYTES: Final = 256 << 10
"""A larger request is decoded with its bounds, in a thread."""
SIZE_BYTES: Final = 4
SYNC_RESPONSE: Final = Struct(">iihi")
"""Size of the frame, correlation id, error code, size of the assignment, which follows."""
HEARTBEAT_RESPONSE: Final = Struct(">iih")
"""Size of the frame, correlation id, error code."""


class FastGroups:
    """Handles payloads of these requests. Never switches."""

    def __init__(self, broker: BrokerContext) -> None:
        self._coordinator = broker.group_coordinator

    def join(self, payload: memoryview, link: RequestConnection) -> Fallback | None:
        """JoinGroup of a member. Its response follows, maybe at once."""
        if len(payload) > AT_ONCE_BYTES:
            return FALL_BACK
        fields = unpack_fields(payload, JOIN, CORRELATION_ID)
        if fields is None:
            return FALL_BACK
        (
            correlation_id,
            _,
            name,
            session_ms,
            rebalance_ms,
            member_id,
            protocol_type,
            protocols,
        ) = fields
        if len(protocols) > JoinGroupRequest.ITEMS_MAX:
            return FALL_BACK  # which refuses it
        coordinator = self._coordinator
        found = coordinator.loaded(name)
        if (
            found is None
            or member_id not in found.group.members
            or session_ms not in coordinator.session_timeouts_ms
        ):
            return FALL_BACK
        reply = answering(link, partial(respond_to_join, link, correlation_id))
        # What is left empty here is used of new members alone.
        found.join(
            Join(
                member_id,
                NO_MEMBER_ID,
                "",
                "",
                rebalance_ms,
                session_ms,
                protocol_type,
                protocols,
                reply,
            )
        )
        return None

    def sync(self, payload: memoryview, link: RequestConnection) -> Fallback | None:
        """SyncGroup. Its response follows, maybe at once."""
        if len(payload) > AT_ONCE_BYTES:
            return FALL_BACK
        fields = unpack_fields(payload, SYNC, CORRELATION_ID)
        if fields is None:
            return FALL_BACK
        correlation_id, _, name, generation, member_id, assignments = fields
        found = self._coordinator.loaded(name)
        if found is None:
            return FALL_BACK
        reply = answering(link, partial(respond_to_sync, link, correlation_id))
        found.sync(member_id, generation, dict(assignments), reply)
        return None

    def heartbeat(self, payload: memoryview, _link: RequestConnection) -> bytes | Fallback:
        """Heartbeat: the response."""
        fields = unpack_fields(payload, HEARTBEAT, CORRELATION_ID)
        if fields is None:
            return FALL_BACK
        correlation_id, _, name, generation, member_id = fields
        found = self._coordinator.loaded(name)
        if found is None:
            return FALL_BACK
        error_code = found.heartbeat(member_id, generation)
        size = HEARTBEAT_RESPONSE.size - SIZE_BYTES
        return HEARTBEAT_RESPONSE.pack(size, correlation_id, error_code)


def respond_to_join(link: RequestConnection, correlation_id: int, result: JoinResult) -> None:
    """A response that does not fit its fields, which names of bytes that are no UTF-8 can make too
    long, closes the connection."""
    fields = (
        correlation_id,
        result.error_code,
        result.generation,
        result.protocol,
        result.leader_id,
        result.member_id,
        result.members,
    )
    try:
        frame = pack_fields(JOINED, fields, True)
    except (ValueError, OverflowError) as error:
        link.finish(f"the response to its request cannot be encoded: {error}")
    else:
        link.send_response(frame)


def respond_to_sync(
    link: RequestConnection, correlation_id: int, assignment: bytes, error_code: int
) -> None:
    size = SYNC_RESPONSE.size - SIZE_BYTES + len(assignment)
    head = SYNC_RESPONSE.pack(size, correlation_id, error_code, len(assignment))
    link.send_response(head + assignment)
