"""The records of groups in `__consumer_offsets`: the value of a GroupKey.

    value    version:i16  0   protocol_type:string generation:i32 protocol:string? leader:string?
                              members:[member_id client_id client_host:string session_ms:i32
                              subscription assignment:bytes]
                          1   the same, with rebalance_ms:i32 in front of session_ms
                          2   the same, with state_since_ms:i64 in front of the members
                          3   the same, with instance_id:string? behind each member_id
                          4   as 3, flexible

A null value deletes the group. Version 0 is 0.9's and 0.10.0's; 0.10.1 brought the rebalance
timeout. Those of 2.1 and later are read, as those of offsets, and never written. One record is
written when a generation is complete, and one when the group is empty.
Source: kafka.coordinator.GroupMetadataManager 0.9.0.1 and 0.10.2.2, GroupMetadataValue 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Final

from kafka08 import kernel
from kafka08.errors import ProtocolError
from kafka08.protocol.codec import VERSION, decode_body
from kafka08.protocol.layout import form_of, layout_of
from kafka08.protocol.types import (
    Buffer,
    Form,
    Int32,
    Int64,
    NotNullBytes,
    NullableString,
    Since,
    String,
    WireForm,
)


@dataclass(slots=True)
class StoredMember:
    """A member of a complete generation."""

    member_id: String
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32
    session_timeout_ms: Int32
    subscription: NotNullBytes
    """The member's subscription for the group's protocol."""
    assignment: NotNullBytes
    instance_id: Annotated[NullableString, Since(3, before="client_id")] = None
    """Brokers of our levels have no static members."""


@dataclass(slots=True)
class StoredGroup:
    """A group between two rebalances. `protocol` and `leader` are None while it is empty."""

    protocol_type: String
    generation: Int32
    protocol: NullableString
    leader: NullableString
    members: list[StoredMember]
    state_since_ms: Annotated[Int64, Since(2, before="members")] = -1
    """When it came into its state. Brokers of our levels have no use for it."""


class StoredMemberV0(WireForm, of=StoredMember):
    member_id: String
    client_id: String
    client_host: String
    session_timeout_ms: Int32
    subscription: NotNullBytes
    assignment: NotNullBytes

    @staticmethod
    def make(
        member_id: str,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        subscription: Buffer,
        assignment: Buffer,
    ) -> StoredMember:
        """Uses the session timeout as the rebalance timeout, too."""
        timeouts = session_timeout_ms, session_timeout_ms
        return StoredMember(member_id, client_id, client_host, *timeouts, subscription, assignment)


class StoredGroupV0(WireForm, of=StoredGroup):
    """0.9: members without a rebalance timeout."""

    protocol_type: String
    generation: Int32
    protocol: NullableString
    leader: NullableString
    members: list[StoredMemberV0]


LAYOUTS: Final[dict[int, type]] = {0: StoredGroupV0, 1: StoredGroup}
"""Version of a value that is written → its layout."""
FLEXIBLE_VERSION: Final = 4


VALUES: Final[dict[int, bytes]] = {n: b"h" + form_of(layout) for n, layout in LAYOUTS.items()}
"""Version of a value → its form, with the version."""
MEMBERS: Final[dict[int, Callable[[StoredMember], tuple[Any, ...]]]] = {
    n: attrgetter(*(name for name, _ in layout_of(Form(member)).fields))
    for n, member in ((0, StoredMemberV0), (1, StoredMember))
}
"""Version of a value → the fields of a member in it."""


def encode_group(group: StoredGroup, version: int) -> bytes:
    """The value of a group's record. KeyError for a version that is not in LAYOUTS. ProtocolError
    if a field is too large."""
    members = list(map(MEMBERS[version], group.members))
    fields = version, group.protocol_type, group.generation, group.protocol, group.leader, members
    try:
        return kernel.pack_fields(VALUES[version], fields)
    except (ValueError, OverflowError) as error:
        raise ProtocolError(f"the record of a group: {error}") from error


def decode_group(data: Buffer) -> StoredGroup:
    """The group in a record's value. ProtocolError for an unknown version or malformed bytes."""
    if len(data) < VERSION.size:
        raise ProtocolError(f"offsets topic: a group value of {len(data)} bytes")
    (version,) = VERSION.unpack_from(data)
    if not 0 <= version <= FLEXIBLE_VERSION:
        raise ProtocolError(f"offsets topic: unknown group value version {version}")
    cls, is_flexible = LAYOUTS.get(version, StoredGroup), version == FLEXIBLE_VERSION
    group: StoredGroup = decode_body(
        cls, data, VERSION.size, version=version, is_flexible=is_flexible
    )[0]
    return group
