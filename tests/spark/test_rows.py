"""Rows to partitions and to message sets: the same as one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import kernel
from kafka08.errors import ConfigError
from kafka08.hashing import murmur2
from kafka08.protocol import message_set
from kafka08.spark.rows import Partitioner, by_partition, counts_text, message_sets
from kafka08.spark.write_options import BYTE_ARRAY_HASH, MURMUR2
from kafka08.structs import TopicPartition
from tests.strategies import pairs

COUNTS = {"t": 3, "u": 1}


def batch(**columns: Any) -> pa.RecordBatch:
    kinds = {"partition": pa.int32(), "topic": pa.string(), "key": pa.binary()}
    arrays = [pa.array(column, kinds.get(name, pa.binary())) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def routed(rows: pa.RecordBatch, topic: str | None = None) -> dict[TopicPartition, list[Any]]:
    parts = by_partition(rows, topic, Partitioner(MURMUR2), COUNTS.__getitem__)
    return {
        tp: list(zip(keys.to_pylist(), values.to_pylist(), strict=True))
        for tp, keys, values in parts
    }


def test_keys_go_where_the_java_producer_puts_them() -> None:
    """murmur2 without its sign, in order within a partition; equal keys together."""
    keys = [b"a", b"b", b"a", b"kafka", b"21", b"b"]
    found = routed(batch(key=keys, value=[b"%d" % at for at in range(6)]), "t")
    expected: dict[TopicPartition, list[Any]] = {}
    for at, key in enumerate(keys):
        tp = TopicPartition("t", (murmur2(key) & 0x7FFFFFFF) % 3)
        expected.setdefault(tp, []).append((key, b"%d" % at))
    assert found == expected


def test_the_old_hash() -> None:
    """abs(Arrays.hashCode(key)) % partitions: of "ab", 31 * (31 + 97) + 98 = 4066."""
    assert Partitioner(BYTE_ARRAY_HASH).partition(b"ab", 1000) == 66


def test_rows_without_a_key_take_turns() -> None:
    """Evenly over the partitions, going on with the next batch; a partition column wins."""
    partitioner = Partitioner(MURMUR2)
    nulls = pa.nulls(4, pa.binary())
    assert partitioner.partitions(nulls, None, 3).to_pylist() == [0, 1, 2, 0]
    assert partitioner.partitions(nulls, None, 3).to_pylist() == [1, 2, 0, 1]
    given = pa.array([2, None, 0, None], pa.int32())
    assert partitioner.partitions(nulls, given, 3).to_pylist() == [2, 0, 0, 2]


def test_topics_by_column() -> None:
    """Each row to its own topic; the option wins over the column."""
    rows = batch(topic=["t", "u", "t"], value=[b"1", b"2", b"3"], partition=[0, 0, 2])
    assert routed(rows) == {
        TopicPartition("t", 0): [(None, b"1")],
        TopicPartition("t", 2): [(None, b"3")],
        TopicPartition("u", 0): [(None, b"2")],
    }
    rows = batch(topic=["x", None], value=[b"1", b"2"])
    assert routed(rows, "u") == {TopicPartition("u", 0): [(None, b"1"), (None, b"2")]}


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"topic": ["t", None], "value": [b"1", b"2"]}, "topic: null in a row"),
        ({"topic": ["u"], "value": [b"1"], "partition": [1]}, "partition 1 of topic u"),
        ({"topic": ["u"], "value": [b"1"], "partition": [-1]}, "partition -1 of topic u"),
        ({"topic": ["u"], "value": [b"1"], "headers": [b"h"]}, "headers: messages of 0.8"),
    ],
)
def test_refusals(columns: dict[str, Any], fault: str) -> None:
    """A row that cannot be written fails the task."""
    with pytest.raises(ConfigError, match=fault):
        routed(batch(**columns))


@given(pairs, st.integers(1, 300), st.integers(0, 3))
def test_sets_hold_the_rows(
    messages: list[tuple[bytes | None, bytes | None]], batch_bytes: int, codec: int
) -> None:
    """All rows in order, nulls kept; no set of more than one message is above the limit."""
    rows = batch(key=[k for k, _ in messages], value=[v for _, v in messages])
    everything = pa.array(range(len(messages)), pa.int64())
    keys, values = (rows.column(name).take(everything) for name in ("key", "value"))
    sets = list(message_sets(keys, values, batch_bytes, codec))
    assert [(m.key, m.value) for data, _ in sets for m in message_set.decode(data)] == messages
    for data, count in sets:
        assert count == len(list(message_set.decode(data)))
        if codec == 0 and count > 1:
            assert len(data) <= batch_bytes
        assert kernel.validate(data, 1 << 20).codec == codec


def test_counts() -> None:
    """As a log line."""
    assert (
        counts_text({"u": (1, 2), "t": (3, 4)}) == "t: 3 messages, 4 bytes; u: 1 messages, 2 bytes"
    )
