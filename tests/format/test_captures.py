"""Formats, and the kernel's walks over them, held against the logs of a live 0.11.0.3."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from kafka08.format import FORMATS, Message, RecordFormat, batches, format_of
from kafka08.protocol import message_set
from tests.format.captures import LOGS
from tests.kernel.conftest import kernel

__all__ = ["kernel"]

each_log = pytest.mark.parametrize("name", LOGS)
V2 = FORMATS[2]
assert isinstance(V2, RecordFormat)


def records_of(name: str) -> list[list[Message]]:
    """The records of each batch of magic 2."""
    assert isinstance(V2, RecordFormat)
    view = memoryview(LOGS[name][0])
    return [
        list(V2.records(view, batch, message_set.unpack))
        for batch in batches(view)
        if batch.magic == 2
    ]


@each_log
def test_batches_are_those_of_the_capture(name: str) -> None:
    """Each entry says what the capture's own reader found, and its CRC is right."""
    data, decoded = LOGS[name]
    for batch, expected in zip(batches(data), decoded, strict=True):
        format_of(batch.magic).check_crc(memoryview(data), batch)
        assert batch.magic == expected["magic"]
        if batch.magic == 2:
            assert expected["base_offset"] == batch.base_offset
            assert expected["last_offset_delta"] == batch.last_offset - batch.base_offset
            assert expected["leader_epoch"] == batch.leader_epoch
            assert expected["attributes"] & 7 == batch.codec
            assert expected["max_timestamp"] == batch.max_timestamp_ms
            assert expected["producer_id"] == batch.producer_id
            assert expected["producer_epoch"] == batch.producer_epoch
            assert expected["base_sequence"] == batch.base_sequence
            assert bool(expected["attributes"] & 0x20) == batch.is_control


def hex_of(field: memoryview | bytes | None) -> dict[str, str] | None:
    return None if field is None else {"hex": bytes(field).hex()}


@each_log
def test_records_are_those_of_the_capture(name: str) -> None:
    """Keys, values, headers and offsets of all records, compressed or not."""
    expected = [one for one in LOGS[name][1] if one["magic"] == 2]
    for batch, records in zip(expected, records_of(name), strict=True):
        assert [one["key"] for one in batch["records"]] == [hex_of(r.key) for r in records]
        assert [one["value"] for one in batch["records"]] == [hex_of(r.value) for r in records]
        assert [len(one["headers"]) for one in batch["records"]] == [
            len(record.headers) for record in records
        ]
        assert [batch["base_offset"] + one["offset_delta"] for one in batch["records"]] == [
            record.offset for record in records
        ]


ODD = {"v-misc2-0/00000000000000000000.log"}
"""Has batches that 0.11.0.3 takes from a producer, but no producer writes."""


@pytest.mark.parametrize("name", sorted(LOGS.keys() - ODD))
def test_plain_batches_are_built_byte_for_byte(name: str) -> None:
    """A plain batch of the same records, in the place of the captured one, has its bytes."""
    assert isinstance(V2, RecordFormat)
    data, _ = LOGS[name]
    view = memoryview(data)
    for batch in batches(data):
        if batch.magic == 2 and not batch.codec and not batch.has_append_time:
            records = V2.records(view, batch, message_set.unpack)
            built = V2.build(records, 0, lambda codec, data: data, like=batch)
            assert data[batch.position : batch.end] == built


@each_log
def test_consumers_read_the_records(kernel: ModuleType, name: str) -> None:
    """Both kernels return the messages of all batches, with their headers, without the markers of
    transactions; the next offset is behind the last batch."""
    data, decoded = LOGS[name]
    if any(one["magic"] != 2 for one in decoded):
        return
    control = [bool(one["attributes"] & 0x20) for one in decoded]
    expected = [
        (r.offset, r.timestamp_ms, r.timestamp_type, r.headers, r.value and bytes(r.value))
        for records, is_control in zip(records_of(name), control, strict=True)
        for r in records
        if not is_control
    ]
    first = expected[0][0] if expected else 0
    found = kernel.messages(data, "t", 0, first, message_set.unpack)
    rows: list[Any] = [(m.offset, m.timestamp, m.timestamp_type, m.headers, m.value) for m in found]
    last = decoded[-1]["base_offset"] + decoded[-1]["last_offset_delta"]
    if name not in ODD:  # its offsets overlap
        assert expected == rows
        assert last + 1 == found.next_offset


@each_log
def test_a_segment_recovers_whole(kernel: ModuleType, name: str) -> None:
    """Recovery finds every entry of a captured segment, and the last offset inside."""
    data, decoded = LOGS[name]
    found = kernel.recover(data, 1 << 30, 0)
    assert (len(data), len(decoded), None) == (found.valid_bytes, found.count, found.error)
    if decoded[-1]["magic"] == 2:
        last = decoded[-1]["base_offset"] + decoded[-1]["last_offset_delta"]
        assert last == found.last_offset


def test_a_middle_offset_leads_to_its_batch(kernel: ModuleType) -> None:
    """An offset between the first and the last of a batch is found in it."""
    data, decoded = LOGS["v-plain-0/00000000000000000000.log"]
    at = [one["pos"] for one in decoded]
    found = [kernel.find_offset(data, offset)[0] for offset in range(7)]
    assert [at[0]] * 3 + [at[1]] * 3 + [at[2]] == found


def test_crc32c(kernel: ModuleType) -> None:
    """The check value of the polynomial; lengths around the limits of the loops; continued."""
    assert kernel.crc32c(b"123456789") == 0xE3069283
    table = format_of(2)
    for size in (0, 1, 7, 8, 9, 3071, 3072, 3073, 9000):
        data = bytes(at * 7 & 0xFF for at in range(size))
        assert table.checksum(data) == kernel.crc32c(data), size
        assert kernel.crc32c(data) == kernel.crc32c(
            data[size // 2 :], kernel.crc32c(data[: size // 2])
        )
