"""The records of __consumer_offsets against segments that 0.8.2.2, 0.9.0.1 and 0.10.2.2 wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol.offset_records import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_offset_value,
    encode_key,
    encode_value,
)
from kafka08.structs import OffsetAndMetadata

DATA = Path(__file__).parents[1] / "data"
FILES = (
    "logs-0.8.2.2.json",
    "sandbox-logs-0.8.2.2.json",
    "logs-0.9.0.1.json",
    "logs-0.10.2.2.json",
)


def captured() -> Iterator[Any]:
    for name in FILES:
        segments = json.loads((DATA / name).read_text(encoding="utf-8"))["consumer_offsets"]
        for segment, content in segments.items():
            for record in content["decoded"]:
                yield pytest.param(record, id=f"{name}-{segment[:20]}-{record['log_offset']}")


@pytest.mark.parametrize("record", list(captured()))
def test_every_captured_record_decodes_as_recorded(record: dict[str, Any]) -> None:
    """Keys and values of offsets decode as recorded and encode back the same; of a group of 0.9+
    only the key is tested here (test_group_records)."""
    key_bytes = bytes.fromhex(record["key_hex"])
    key = decode_key(key_bytes)
    wanted = record["key"]
    if record["key_version"] == 2:
        assert key == GroupKey(wanted["group"])
    else:
        assert key == OffsetKey(wanted["group"], wanted["topic"], wanted["part"])
    if record["value_hex"] is None or isinstance(key, GroupKey):
        return
    value_bytes = bytes.fromhex(record["value_hex"])
    value = decode_offset_value(value_bytes)
    check_offset(value, record["value_version"], record["value"])
    assert encode_key(key, record["key_version"]) == key_bytes
    assert encode_value(value.committed, expire_ms=value.expire_ms) == value_bytes


def check_offset(value: OffsetValue, version: int, wanted: dict[str, Any]) -> None:
    timestamp = wanted["ts"] if version == 0 else wanted["commit_ts"]
    assert value.committed == OffsetAndMetadata(wanted["offset"], wanted["meta"], timestamp)
    assert value.expire_ms == (-1 if version == 0 else wanted["expire_ts"])


def test_captured_records_cover_every_version() -> None:
    """Keys 0, 1 and 2 and a tombstone are among the captured ones."""
    records = [param.values[0] for param in captured()]
    assert {r["key_version"] for r in records} == {0, 1, 2}
    assert any(r["value_hex"] is None for r in records)


def test_null_metadata_is_written_as_an_empty_text() -> None:
    """The captured commit of ref-g1 for partition 1 had null metadata (api-0.8.2.2.json,
    offset-commit-v1), and its record has a length of 0. 0.8.2.2 cannot read a length of -1."""
    segments = json.loads((DATA / "logs-0.8.2.2.json").read_text(encoding="utf-8"))
    (segment,) = segments["consumer_offsets"].values()
    record = segment["decoded"][1]
    written = encode_value(OffsetAndMetadata(0, None, record["value"]["ts"]))
    assert written.hex() == record["value_hex"]


@given(
    group=st.text(max_size=20),
    topic=st.text(max_size=20),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(-1, 2**63 - 1),
    metadata=st.none() | st.text(max_size=30),
    timestamp=st.integers(-(2**63), 2**63 - 1),
)
def test_offset_records_round_trip(
    group: str, topic: str, partition: int, offset: int, metadata: str | None, timestamp: int
) -> None:
    """Every record round-trips, except that null metadata becomes ""."""
    key = OffsetKey(group, topic, partition)
    committed = OffsetAndMetadata(offset, metadata, timestamp)
    stored = OffsetAndMetadata(offset, metadata or "", timestamp)
    assert decode_key(encode_key(key)) == key
    assert decode_offset_value(encode_value(committed)) == OffsetValue(stored)


@given(st.binary(max_size=60))
def test_garbage_is_a_protocol_error_or_a_record(data: bytes) -> None:
    """Any bytes decode or raise ProtocolError."""
    for decode in (decode_key, decode_offset_value):
        try:
            decode(data)
        except ProtocolError:
            continue
