"""Arrow batches: the same rows as the plain iterator, only the columns asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import kernel
from kafka08.arrow.batches import BATCH_BYTES, BatchBuilder
from kafka08.arrow.checked_set import CheckedSet
from kafka08.arrow.large_message import LARGE_BYTES
from kafka08.arrow.ranges import OffsetRange
from kafka08.errors import ConfigError, InvalidMessage
from kafka08.format import Message
from kafka08.format.v2 import V2, crc32c
from kafka08.kernel.types import CREATE_TIME, NO_TIMESTAMP_TYPE
from kafka08.protocol import compression, message_set
from kafka08.protocol.header_columns import HEADERS
from tests.arrow.logs import T0
from tests.strategies import pairs

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)


def fetched(data: bytes | bytearray, offset: int = 0) -> CheckedSet:
    return CheckedSet(T0, offset, data, 1 << 20, "b1:9092")


def built(schema: Any, wanted: OffsetRange, *sets: CheckedSet) -> list[dict[str, Any]]:
    return [
        row for batch in BatchBuilder(schema, wanted).batches(sets) for row in batch.to_pylist()
    ]


@given(st.lists(st.tuples(pairs, st.integers(0, 3)), max_size=5), st.data())
def test_rows_are_those_of_the_messages(
    sets: list[tuple[list[tuple[bytes | None, bytes | None]], int]], data: st.DataObject
) -> None:
    """Over sets of all codecs and any range, batches hold exactly what decoding yields."""
    log, end = b"", 0
    for messages, codec in sets:
        log += message_set.encode(messages, codec, end)
        end += len(messages)
    start = data.draw(st.integers(0, end))
    until = data.draw(st.integers(start, end))
    wanted = OffsetRange("t", 0, start, until)
    rows = built(SCHEMA, wanted, fetched(log, start))
    expected = [
        {
            "key": m.key,
            "value": m.value,
            "topic": "t",
            "partition": 0,
            "offset": m.offset,
            "timestamp": None,
            "timestampType": -1,
        }
        for m in message_set.decode(log, start)
        if m.offset < until
    ]
    assert rows == expected


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("codec", [compression.NONE, compression.SNAPPY])
def test_timestamps_of_magic_1(codec: int, unit: str) -> None:
    """Each message's own, null where the producer gave none or the message has magic 0; the type is
    that of its magic."""
    old = message_set.encode([(None, b"old")])
    new = message_set.encode([(None, b"new")] * 2, codec, 1, 1, [-1, 1_500_000_000_123])
    columns = {"timestamp": pa.timestamp(unit, tz="UTC"), "timestampType": pa.int32()}
    rows = built(pa.schema(list(columns.items())), OffsetRange("t", 0, 0, 3), fetched(old + new))
    time = datetime(2017, 7, 14, 2, 40, 0, 123_000, tzinfo=UTC)
    assert [row["timestamp"] for row in rows] == [None, None, time]
    assert [row["timestampType"] for row in rows] == [NO_TIMESTAMP_TYPE, CREATE_TIME, CREATE_TIME]


def test_a_timestamp_that_no_column_holds() -> None:
    """Nanoseconds given as milliseconds, for one, do not fit into Spark's microseconds."""
    data = message_set.encode([(None, b"v")] * 2, 0, 5, 1, [0, 1_500_000_000_123_000_000])
    with pytest.raises(
        InvalidMessage, match=r"\[t,0\], at offset 5 or behind it: .*1500000000123000"
    ):
        built(SCHEMA, OffsetRange("t", 0, 5, 7), fetched(data, 5))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"key"])
def test_a_large_message_is_not_copied(magic: int, key: bytes | None) -> None:
    """Its value is a column where it was received. The row is that of any message; below the
    range's start there is none."""
    value = bytes(range(256)) * (LARGE_BYTES // 256) + b"!"
    data = message_set.encode([(key, value)], 0, 7, magic)
    checked = replace(fetched(data, 7), has_wrappers=False)
    [batch] = BatchBuilder(SCHEMA, OffsetRange("t", 0, 7, 8)).batches([checked])
    [row] = batch.to_pylist()
    assert (row["key"], row["offset"], row["partition"]) == (key, 7, 0)
    assert row["value"] == value
    start = pa.py_buffer(data).address
    assert start < batch["value"].buffers()[2].address < start + len(data)
    for other in (replace(checked, offset=8), replace(checked, has_wrappers=True)):
        rows = built(SCHEMA, OffsetRange("t", 0, other.offset, 9), other)
        assert [found["value"] for found in rows] == [value] * (8 - other.offset)


def test_values_in_place() -> None:
    """They are where they were received, in the rows of any batch; those of a set with wrappers are
    copied."""
    pairs = [(b"k%d" % i, b"v%d" % i * 100) for i in range(6)]
    plain = message_set.encode(pairs[:4])
    packed = message_set.encode(pairs[4:], compression.SNAPPY, 4)
    whole = bytearray(plain)
    sets = [replace(fetched(whole, 1), has_wrappers=False), fetched(bytearray(packed), 4)]
    batches = list(BatchBuilder(SCHEMA, OffsetRange("t", 0, 1, 6), in_place=True).batches(sets))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["key"], row["value"]) for row in rows] == pairs[1:]
    if kernel.NAME == "native":
        start = pa.py_buffer(whole).address
        assert start < batches[0]["value"].buffers()[2].address < start + len(whole)


def test_large_messages_among_others() -> None:
    """With a null value, a second message, or a rest that was cut off, it is copied as any."""
    large = bytes(LARGE_BYTES + 1)
    for messages in ([(large, None)], [(None, large), (None, b"v")], [(None, b"v"), (None, large)]):
        data = message_set.encode(messages)
        for cut in (data, data + data[:99]):
            rows = built(
                SCHEMA, OffsetRange("t", 0, 0, 2), replace(fetched(cut), has_wrappers=False)
            )
            assert [(row["key"], row["value"]) for row in rows] == messages


@pytest.mark.parametrize("columns", [["value"], ["offset", "key"], ["topic"], ["partition"]])
def test_columns_left_out_are_not_built(columns: list[str]) -> None:
    """A schema of some columns, in its own order."""
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    data = message_set.encode([(b"k", b"v")] * 3)
    rows = built(schema, OffsetRange("t", 0, 1, 3), fetched(data, 1))
    whole = {"key": b"k", "value": b"v", "topic": "t", "partition": 0}
    assert rows == [{name: whole.get(name, offset) for name in columns} for offset in (1, 2)]


def test_headers_of_messages_are_null() -> None:
    """Before 0.11 there are none; the column exists on request."""
    schema = pa.schema([("headers", HEADERS)])
    rows = built(schema, OffsetRange("t", 0, 0, 2), fetched(message_set.encode([(None, b"v")] * 2)))
    assert rows == [{"headers": None}] * 2


def test_headers_of_records() -> None:
    """A record's headers in their order, null without any; equal names, empty and null values are
    kept. Spark's names for the parts of the type do not matter. A name that is not UTF-8 is shown
    as KafkaConsumer shows it, and is not passed on."""
    headers: list[tuple[str, bytes | None]] = [("é", b"1"), ("é", None), ("", b"")]
    value = memoryview(b"v")
    messages = [
        Message(0, None, value, 5, CREATE_TIME, tuple(headers)),
        Message(1, None, value, 5, CREATE_TIME),
        Message(2, None, value, 5, CREATE_TIME, (("only", b"\xff"),)),
    ]
    data = V2().build(messages, 0, lambda _, data: data)
    spark = pa.list_(pa.field("element", HEADERS.value_type))
    for kind in (HEADERS, spark):
        schema = pa.schema([("offset", pa.int64()), ("headers", kind)])
        rows = built(schema, OffsetRange("t", 0, 0, 3), fetched(data))
        assert [row["headers"] for row in rows] == [
            [{"key": name, "value": value} for name, value in headers],
            None,
            [{"key": "only", "value": b"\xff"}],
        ]
    wrong = bytearray(data.replace(b"only", b"on\xffy"))
    wrong[V2.crc_position : V2.crc_start] = crc32c(wrong[V2.crc_start :]).to_bytes(4, "big")
    rows = built(schema, OffsetRange("t", 0, 2, 3), fetched(bytes(wrong), 2))
    assert rows == [{"offset": 2, "headers": [{"key": "on\ufffdy", "value": b"\xff"}]}]


@pytest.mark.parametrize(
    ("name", "offset"), [("key", 6), ("value", 7), ("timestamp", 5), ("offset", None)]
)
def test_a_null_that_the_schema_rules_out(name: str, offset: int | None) -> None:
    """A null in a column that is NOT NULL is an error with its offset; Spark's own would be a
    NullPointerException."""
    field = SCHEMA.field(name).with_nullable(False)
    data = message_set.encode([(b"k", b"v"), (None, b"v"), (b"k", None)], 0, 5)
    rows = OffsetRange("t", 0, 5, 8)
    if offset is None:
        assert len(built(pa.schema([field]), rows, fetched(data, 5))) == 3
        return
    fault = rf"{name} is NOT NULL, but null in \[t,0\] at offset {offset}: "
    with pytest.raises(ConfigError, match=fault):
        built(pa.schema([field]), rows, fetched(data, 5))


def test_batches_are_cut() -> None:
    """At 64 Ki rows, and at BATCH_BYTES of values; a message may be larger."""
    many = message_set.encode([(None, b"")] * 70_000)
    wanted = OffsetRange("t", 0, 0, 70_000)
    counts = [b.num_rows for b in BatchBuilder(SCHEMA, wanted).batches([fetched(many)])]
    assert counts == [65536, 70_000 - 65536]
    sizes = [3, 3, 3, 9, 1]  # eighths of a batch
    large = message_set.encode([(None, bytes(size * BATCH_BYTES // 8)) for size in sizes], 2)
    counts = [b.num_rows for b in BatchBuilder(SCHEMA, wanted).batches([fetched(large)])]
    assert counts == [2, 1, 1, 1]


def test_damage_inside_a_compressed_set_is_named() -> None:
    """The CRCs of messages inside wrappers are checked, and the error names partition and
    offset."""
    inner = kernel.build_set([(None, b"a"), (None, b"bb")], 5)
    inner[-1] ^= 1
    data = bytes(
        kernel.wrap(compression.compress(compression.SNAPPY, inner), 6, compression.SNAPPY)
    )
    with pytest.raises(InvalidMessage, match=r"\[t,0\] at b1:9092, offset 6: "):
        built(SCHEMA, OffsetRange("t", 0, 5, 7), fetched(data, 5))
