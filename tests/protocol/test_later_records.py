"""The records of __consumer_offsets that 3.9.1 and 4.4.0 wrote: offsets of version 3 and 4, groups
of version 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import VERSION
from kafka08.protocol.group_records import StoredGroup, decode_group
from kafka08.protocol.offset_records import (
    NO_EXPIRY,
    GroupKey,
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_offset_value,
)

FILE: Final = Path(__file__).parents[1] / "data" / "modern-consumer-offsets.json"
RECORDS: Final = {
    release: [(bytes.fromhex(r["key_hex"]), bytes.fromhex(r["value_hex"])) for r in records]
    for release, records in json.loads(FILE.read_text(encoding="utf-8")).items()
}
OFFSETS: Final = {
    ("alone", 0): (3, "text", -1),
    ("members", 0): (4, "", 0),
    ("members", 1): (0, "", 0),
    ("static", 0): (4, "", 0),
    ("static", 1): (0, "", 0),
    ("transactional", 0): (2, "", -1),
}
"""(group, partition) → offset, metadata, leader epoch."""


def values_of(release: str) -> dict[OffsetKey | GroupKey, bytes]:
    """The last value of each key."""
    return {decode_key(key): value for key, value in RECORDS[release]}


@pytest.mark.parametrize(("release", "version"), [("3.9.1", 3), ("4.4.0", 4)])
def test_offsets_are_as_they_were_committed(release: str, version: int) -> None:
    """With their leader epochs; brokers from 2.1 on keep them while their group has members."""
    found = {}
    for key, value in values_of(release).items():
        if isinstance(key, OffsetKey):
            assert VERSION.unpack_from(value) == (version,)
            decoded = decode_offset_value(value)
            one = decoded.committed
            assert decoded == OffsetValue(one, NO_EXPIRY, is_kept=True)
            assert one.timestamp_ms // 10**9 == 1796  # of the day on which they were recorded
            found[key.group, key.partition] = (one.offset, one.metadata, one.leader_epoch)
    assert found == OFFSETS


@pytest.mark.parametrize("release", RECORDS)
def test_groups_have_their_state(release: str) -> None:
    """One whose member left is empty since then; a static member stays."""
    values = values_of(release)
    left = decode_group(values[GroupKey("members")])
    assert left == StoredGroup("consumer", 2, None, None, [], left.state_since_ms)
    assert left.state_since_ms // 10**9 == 1796
    static = decode_group(values[GroupKey("static")])
    (member,) = static.members
    assert member.instance_id == "seat-1"
    assert (member.member_id, static.generation) == (static.leader, 1)
    assert member.client_host == "/127.0.0.1"
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (300_000, 10_000)


@pytest.mark.parametrize("release", RECORDS)
def test_a_record_cut_anywhere_is_a_protocol_error(release: str) -> None:
    """Each byte of a value is needed."""
    for key, value in values_of(release).items():
        decode = decode_group if isinstance(key, GroupKey) else decode_offset_value
        for end in range(len(value)):
            with pytest.raises(ProtocolError):
                decode(value[:end])


def test_offsets_of_2_1_have_no_time_of_expiry() -> None:
    """Version 2 is version 1 without it. A version that is not known is named."""
    data = b"\0\x02" + (7).to_bytes(8) + b"\0\x01m" + (99).to_bytes(8)
    found = decode_offset_value(data)
    assert (found.committed.offset, found.committed.timestamp_ms, found.is_kept) == (7, 99, True)
    with pytest.raises(ProtocolError, match="offset value version 5"):
        decode_offset_value(b"\0\x05" + data[2:])
