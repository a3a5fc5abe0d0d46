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
from kafka08.kernel.types import CREATE_TIME, NO_TIMESTAMP_TYPE, RECORDS_MAGIC
from kafka08.protocol import message_set
from kafka08.protocol.header_columns import HEADERS
from kafka08.spark.rows import Partitioner, Rows, SetQueue, by_partition, counts_text
from kafka08.spark.write_options import BYTE_ARRAY_HASH, MURMUR2
from kafka08.structs import TopicPartition

COUNTS = {"t": 3, "u": 1}


def batch(**columns: Any) -> pa.RecordBatch:
    kinds = {
        "partition": pa.int32(),
        "topic": pa.string(),
        "timestamp": pa.timestamp("us", "America/New_York"),
    }
    arrays = [
        pa.array(column, HEADERS if isinstance(column[0], list) else kinds.get(name, pa.binary()))
        if column
        else pa.array(column, kinds.get(name, pa.binary()))
        for name, column in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def routed(rows: pa.RecordBatch, topic: str | None = None) -> dict[TopicPartition, list[Any]]:
    parts = by_partition(rows, topic, Partitioner(MURMUR2), COUNTS.__getitem__, keeps_times=True)
    return {
        tp: list(zip(of_tp.keys.to_pylist(), of_tp.values.to_pylist(), strict=True))
        for tp, of_tp in parts
    }


def test_keys_go_where_the_java_producer_puts_them() -> None:
    """Keys go to the Java producer's partition, by murmur2 without its sign; rows of a partition
    keep their order."""
    keys = [b"a", b"b", b"a", b"kafka", b"21", b"b"]
    found = routed(batch(key=keys, value=[b"%d" % at for at in range(6)]), "t")
    expected: dict[TopicPartition, list[Any]] = {}
    for at, key in enumerate(keys):
        tp = TopicPartition("t", (murmur2(key) & 0x7FFFFFFF) % 3)
        expected.setdefault(tp, []).append((key, b"%d" % at))
    assert found == expected


def test_the_old_hash() -> None:
    """The old hash is abs(Arrays.hashCode(key)) % partitions: for "ab", 31 * (31 + 97) + 98 =
    4066."""
    assert Partitioner(BYTE_ARRAY_HASH).partition(b"ab", 1000) == 66


def test_rows_without_a_key_take_turns() -> None:
    """They go round robin over the partitions, continued with the next batch; a partition column
    takes precedence."""
    partitioner = Partitioner(MURMUR2)
    nulls = pa.nulls(4, pa.binary())
    assert partitioner.partitions(nulls, None, 3).to_pylist() == [0, 1, 2, 0]
    assert partitioner.partitions(nulls, None, 3).to_pylist() == [1, 2, 0, 1]
    given = pa.array([2, None, 0, None], pa.int32())
    assert partitioner.partitions(nulls, given, 3).to_pylist() == [2, 2, 0, 0]


def test_rows_without_a_key_take_turns_between_rows_with_keys() -> None:
    """Only they are counted: the partition used to follow from the row's number, so that every
    second row without a key went to one of two partitions."""
    keys = pa.array([None, b"k"] * 4, pa.binary())
    chosen = Partitioner(MURMUR2).partitions(keys, None, 2).to_pylist()
    assert chosen[::2] == [0, 1, 0, 1]


def test_topics_by_column() -> None:
    """Each row goes to the topic in its column; the option takes precedence."""
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
        ({"topic": ["u"], "value": [b"1"], "headers": [b"h"]}, "headers: column 'headers' has bin"),
        (
            {"topic": ["u"], "value": [b"1"], "headers": [[{"key": None, "value": b"1"}]]},
            "headers: a header of row 0 has no name",
        ),
        ({"topic": ["u"], "value": [b"1"], "timestamp": [-1001]}, "timestamp: -1 ms in a row"),
    ],
)
def test_refusals(columns: dict[str, Any], fault: str) -> None:
    """A row that cannot be written is a ConfigError."""
    with pytest.raises(ConfigError, match=fault):
        routed(batch(**columns))


SENT_MS = 1_600_000_000_000
times_us = st.none() | st.integers(0, 4_000_000_000_000_000)


def all_sets(queue: SetQueue, magic: int) -> list[tuple[bytearray, int]]:
    sets = []
    while queue:
        data, count = queue.next_set(magic)
        assert queue.next_set(magic)[0] is data, "a retry sends the same bytes"
        sets.append((data, count))
        queue.advance(count)
    return sets


@given(
    st.lists(st.tuples(st.none() | st.binary(), st.none() | st.binary(), times_us), max_size=20),
    st.integers(1, 300),
    st.integers(0, 3),
    st.booleans(),
)
def test_sets_hold_the_rows(
    messages: list[tuple[bytes | None, bytes | None, int | None]],
    batch_bytes: int,
    codec: int,
    timed: bool,
) -> None:
    """All rows in order, nulls kept, times to the millisecond; rows without one, and all of a write
    that does not keep times, have that of sending. No set of more than one message is above the
    limit. Magic 0: the bytes of 0.8."""
    columns = dict(zip(("key", "value", "timestamp"), zip(*messages, strict=True), strict=False))
    rows = batch(**columns) if messages else batch(key=[], value=[], timestamp=[])
    partitioner = Partitioner(MURMUR2)
    parts = list(by_partition(rows, "u", partitioner, COUNTS.__getitem__, keeps_times=timed))
    for magic in (0, 1):
        sets = [
            of_set
            for _, of_tp in parts
            for of_set in all_sets(SetQueue(of_tp, batch_bytes, codec, SENT_MS), magic)
        ]
        stored = [m for data, _ in sets for m in message_set.decode(data)]
        assert [(m.key, m.value) for m in stored] == [(key, value) for key, value, _ in messages]
        for message, (_, _, time_us) in zip(stored, messages, strict=True):
            made_ms = SENT_MS if time_us is None or not timed else time_us // 1000
            expected = (made_ms, CREATE_TIME) if magic else (-1, NO_TIMESTAMP_TYPE)
            assert (message.timestamp, message.timestamp_type) == expected
        for data, count in sets:
            assert count == len(list(message_set.decode(data)))
            if codec == 0 and count > 1:
                assert len(data) <= batch_bytes
            summary = kernel.validate(data, 1 << 20)
            assert (summary.codec, summary.magics) == (codec, 1 << magic)


@pytest.mark.parametrize("codec", [0, 1])
def test_records_have_their_headers(codec: int) -> None:
    """Each row its own, whatever the partition and the set that it gets into, which they count for;
    a queue of rows without any does not say that it has some."""
    pair: list[dict[str, Any]] = [{"key": "n", "value": b"1"}, {"key": "", "value": None}]
    headers = [pair * (n % 3 + 1) for n in range(20)]
    some = [row if n % 4 else None for n, row in enumerate(headers)]
    some[0] = []
    partitions = [n % 2 + 1 for n in range(20)]
    rows = batch(value=[b"%d" % n for n in range(20)], headers=some, partition=partitions)
    stored: dict[Any, Any] = {}
    for _, of_tp in by_partition(rows, "t", Partitioner(MURMUR2), COUNTS.__getitem__):
        queue = SetQueue(of_tp, 150, codec, SENT_MS)
        assert queue.has_headers
        sets = all_sets(queue, RECORDS_MAGIC)
        assert len(sets) > 1
        stored |= {m.value: m.headers for data, _ in sets for m in message_set.decode(data)}
    assert stored == {
        b"%d" % n: tuple((one["key"], one["value"]) for one in row or ())
        for n, row in enumerate(some)
    }
    [(_, without)] = by_partition(rows.slice(4, 1), "t", Partitioner(MURMUR2), COUNTS.__getitem__)
    assert not SetQueue(without, 150, codec, SENT_MS).has_headers


def test_bytes_of_magic_0() -> None:
    """The set is that of the messages without timestamps, offsets from 0 on, also in a wrapper."""
    messages = [(b"k", b"v"), (None, b"w"), (b"l", None)]
    keys, values = (pa.array(column, pa.binary()) for column in zip(*messages, strict=True))
    for codec in (0, 1):
        rows = Rows(keys, values, pa.array([1, 2, 3], pa.int64()))
        [(data, count)] = all_sets(SetQueue(rows, 1000, codec, SENT_MS), 0)
        assert (bytes(data), count) == (message_set.encode(messages, codec), 3)


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_wrappers_have_the_largest_time(codec: int) -> None:
    """A wrapper of magic 1 has the largest timestamp inside, and relative offsets: brokers then
    store its bytes as they are."""
    times = pa.array([5, 9, 7], pa.int64())
    rows = Rows(pa.array([b"k"] * 3, pa.binary()), pa.array([b"v"] * 3, pa.binary()), times)
    [(data, _)] = all_sets(SetQueue(rows, 1000, codec, SENT_MS), 1)
    assert data == message_set.encode([(b"k", b"v")] * 3, codec, 0, 1, [5, 9, 7])


def test_counts() -> None:
    """A log line has the counts as text."""
    assert (
        counts_text({"u": (1, 2), "t": (3, 4)}) == "t: 3 messages, 4 bytes; u: 1 messages, 2 bytes"
    )
