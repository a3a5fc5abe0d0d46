"""FastGroups: JoinGroup 1, SyncGroup and Heartbeat for groups that are loaded here, without message
objects.

The handlers answer all other requests: those of new members, of unknown groups, of groups that may
not be used now, and those with a bad session timeout. In both cases Group decides.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final

from kafka08.broker.call import send
from kafka08.broker.coordinator.group_events import NO_MEMBER_ID, Join, JoinResult
from kafka08.broker.fallback import FALL_BACK, Fallback
from kafka08.protocol.codec import REQUEST_HEADER, encode_frame
from kafka08.protocol.compiler import TUPLE_DECODERS, TUPLE_ENCODERS, Decode
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from kafka08.broker.context import BrokerContext
    from kafka08.network.server_connection import ServerConnection

HEADER_BYTES: Final = REQUEST_HEADER.size
"""Of a request, without the client id."""
SIZE_BYTES: Final = 4
SYNC_RESPONSE: Final = Struct(">iihi")
"""Size of the frame, correlation id, error code, size of the assignment, which follows."""
HEARTBEAT_RESPONSE: Final = Struct(">iih")
"""Size of the frame, correlation id, error code."""

read_join: Final = TUPLE_DECODERS[JoinGroupRequest]
read_sync: Final = TUPLE_DECODERS[SyncGroupRequest]
read_heartbeat: Final = TUPLE_DECODERS[HeartbeatRequest]
write_joined: Final = TUPLE_ENCODERS[JoinGroupResponse]


class FastGroups:
    """Handles payloads of these requests. Never switches."""

    def __init__(self, broker: BrokerContext) -> None:
        self._coordinator = broker.group_coordinator

    def join(self, payload: memoryview, link: ServerConnection) -> Fallback | None:
        """JoinGroup of a member. Its response follows, maybe at once."""
        try:
            correlation_id, fields = decode(payload, read_join)
        except struct_error:
            return FALL_BACK
        name, session_ms, rebalance_ms, member_id, protocol_type, protocols = fields
        coordinator = self._coordinator
        found = coordinator.loaded(name)
        if (
            found is None
            or member_id not in found.group.members
            or session_ms not in coordinator.session_timeouts_ms
        ):
            return FALL_BACK
        reply = partial(respond_to_join, link, correlation_id)
        found.join(
            Join(
                member_id,
                NO_MEMBER_ID,
                "",
                "",
                rebalance_ms,
                session_ms,
                protocol_type,
                tuple(protocols),
                reply,
            )
        )
        return None

    def sync(self, payload: memoryview, link: ServerConnection) -> Fallback | None:
        """SyncGroup. Its response follows, maybe at once."""
        try:
            correlation_id, fields = decode(payload, read_sync)
        except struct_error:
            return FALL_BACK
        name, generation, member_id, assignments = fields
        found = self._coordinator.loaded(name)
        if found is None:
            return FALL_BACK
        reply = partial(respond_to_sync, link, correlation_id)
        found.sync(member_id, generation, dict(assignments), reply)
        return None

    def heartbeat(self, payload: memoryview, _link: ServerConnection) -> bytes | Fallback:
        """Heartbeat: the response."""
        try:
            correlation_id, fields = decode(payload, read_heartbeat)
        except struct_error:
            return FALL_BACK
        name, generation, member_id = fields
        found = self._coordinator.loaded(name)
        if found is None:
            return FALL_BACK
        error_code = found.heartbeat(member_id, generation)
        size = HEARTBEAT_RESPONSE.size - SIZE_BYTES
        return HEARTBEAT_RESPONSE.pack(size, correlation_id, error_code)


def decode(payload: memoryview, read: Decode) -> tuple[int, Any]:
    """The correlation id of a request, and its fields; struct.error if it is malformed. A bytes
    copy is quicker to read, and what is kept of it need not be copied again."""
    _, _, correlation_id, client = REQUEST_HEADER.unpack_from(payload)
    fields, _ = read(bytes(payload), HEADER_BYTES + max(client, 0))
    return correlation_id, fields


def respond_to_join(link: ServerConnection, correlation_id: int, result: JoinResult) -> None:
    fields = (
        result.error_code,
        result.generation,
        result.protocol,
        result.leader_id,
        result.member_id,
        result.members,
    )
    send(link, encode_frame, write_joined, fields, correlation_id)


def respond_to_sync(
    link: ServerConnection, correlation_id: int, assignment: bytes, error_code: int
) -> None:
    size = SYNC_RESPONSE.size - SIZE_BYTES + len(assignment)
    head = SYNC_RESPONSE.pack(size, correlation_id, error_code, len(assignment))
    link.send_response(head + assignment)
