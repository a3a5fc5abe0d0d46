"""The records of groups against segments that 0.9.0.1 and 0.10.2.2 wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol import consumer_protocol
from kafka08.protocol.consumer_protocol import AssignedTopic, Assignment, Subscription
from kafka08.protocol.group_records import (
    LAYOUTS,
    StoredGroup,
    decode_group,
    encode_group,
)
from kafka08.protocol.offset_records import GroupKey, decode_key, encode_key
from kafka08.protocol.types import Form
from tests.strategies import messages

DATA = Path(__file__).parents[1] / "data"
FILES = ("logs-0.9.0.1.json", "logs-0.10.2.2.json", "0.10-consumer-offsets.json")


def captured() -> Iterator[dict[str, Any]]:
    """Every group record that has a value."""
    for name in FILES:
        content = json.loads((DATA / name).read_text(encoding="utf-8"))
        for segment in content.get("consumer_offsets", content).values():
            for record in segment["decoded"]:
                if record["key_version"] == 2 and record["value_hex"] is not None:
                    yield record


RECORDS = list(captured())


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['key']['group']}-{r['log_offset']}")
def test_every_captured_record_decodes_as_recorded(record: dict[str, Any]) -> None:
    """Key and value decode as recorded, and encode to the same bytes in their version."""
    key = decode_key(bytes.fromhex(record["key_hex"]))
    assert GroupKey(record["key"]["group"]) == key
    assert record["key_hex"] == encode_key(key).hex()
    group = decode_group(bytes.fromhex(record["value_hex"]))
    wanted = record["value"]
    assert wanted["ptype"] == group.protocol_type
    assert wanted["generation"] == group.generation
    assert (wanted["protocol"], wanted["leader"]) == (group.protocol, group.leader)
    assert [
        (m["member"], m["client"], m["host"], m.get("rebalance", m["session"]), m["session"])
        for m in wanted["members"]
    ] == [
        (m.member_id, m.client_id, m.client_host, m.rebalance_timeout_ms, m.session_timeout_ms)
        for m in group.members
    ]
    assert record["value_hex"] == encode_group(group, record["value_version"]).hex()


def test_both_versions_were_captured() -> None:
    """The captures have version 0 of 0.9.0.1 and 1 of 0.10.2.2."""
    assert set(LAYOUTS) == {record["value_version"] for record in RECORDS}


def test_an_unknown_version_is_named() -> None:
    """The error has the version of the value."""
    with pytest.raises(ProtocolError, match="group value version 7"):
        decode_group(b"\x00\x07")


@given(group=messages(Form(StoredGroup)))
def test_any_group_reads_back(group: StoredGroup) -> None:
    """Version 1, which has all fields, round-trips."""
    assert group == decode_group(encode_group(group, 1))


@pytest.mark.parametrize("version", LAYOUTS)
def test_a_record_cut_anywhere_is_a_protocol_error(version: int) -> None:
    """Each byte of a value is needed: every shorter value is refused."""
    value = next(r["value_hex"] for r in RECORDS if r["value_version"] == version)
    data = bytes.fromhex(value)
    for end in range(len(data)):
        with pytest.raises(ProtocolError):
            decode_group(data[:end])


def test_captured_members_hold_the_consumer_protocol() -> None:
    """Their bytes decode to subscription and assignment of the Java consumer's protocol."""
    record = next(r for r in RECORDS if r["key"]["group"] == "grt" and r["value"]["members"])
    (member,) = decode_group(bytes.fromhex(record["value_hex"])).members
    subscription = consumer_protocol.decode(Subscription, member.subscription)
    assert ["b-plain"] == subscription.topics
    assignment = consumer_protocol.decode(Assignment, member.assignment)
    assert Assignment([AssignedTopic("b-plain", [0])], None) == assignment
    assert bytes(member.assignment) == consumer_protocol.encode(assignment)


def test_later_versions_are_read_as_version_0() -> None:
    """Fields that they append are ignored; a negative version and empty bytes are refused."""
    data = consumer_protocol.encode(Subscription(["t"], None))
    newer = b"\x00\x03" + data[2:] + b"more"
    assert Subscription(["t"], None) == consumer_protocol.decode(Subscription, newer)
    for bad in (b"", b"\x00", b"\xff\xff" + data[2:], data[:-1]):
        with pytest.raises(ProtocolError):
            consumer_protocol.decode(Subscription, bad)


@given(st.binary(max_size=60))
def test_garbage_is_a_protocol_error_or_a_message(data: bytes) -> None:
    """Any bytes decode or raise ProtocolError."""
    for decode in (
        decode_group,
        lambda data: consumer_protocol.decode(Subscription, data),
        lambda data: consumer_protocol.decode(Assignment, data),
    ):
        try:
            decode(data)
        except ProtocolError:
            continue
