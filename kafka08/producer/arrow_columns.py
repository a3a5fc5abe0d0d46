"""Arrow columns as records: builds message sets from the columns' buffers, without objects.

The only module of this package that needs pyarrow; imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import pyarrow
import pyarrow.compute

from kafka08 import kernel
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.producer.accumulator import PartitionQueue
from kafka08.producer.batch import RecordBatch, Times
from kafka08.producer.bulk import Bulk, by_partition, end_by_sums
from kafka08.producer.topic_route import TopicRoute

KEY, VALUE, PARTITION, TIMESTAMP = "key", "value", "partition", "timestamp"


FindQueue = Callable[[int], PartitionQueue]
"""Partition → its queue; raises UnknownTopicOrPartition."""


def add_columns(
    bulk: Bulk, route: TopicRoute, find_queue: FindQueue, table: Any, partition: int | None
) -> None:
    """Send the rows of a RecordBatch or Table with a column `value` and optionally `key`,
    `partition` and `timestamp`. ValueError for other columns and for a timestamp before 1970,
    UnknownTopicOrPartition; no row was sent then."""
    names = set(table.schema.names)
    if VALUE not in names or names - {KEY, VALUE, PARTITION, TIMESTAMP}:
        raise ValueError(
            f"columns {', '.join(table.schema.names)}: {VALUE!r} is required, {KEY!r}, "
            f"{PARTITION!r} and {TIMESTAMP!r} are optional, no others are known"
        )
    batches = table.to_batches() if isinstance(table, pyarrow.Table) else [table]
    queues = {number: find_queue(number) for number in _partitions(batches, partition)}
    for rows in batches:
        _times(rows, bulk.now_ms)
    first = 0
    for rows in batches:
        places = range(first, first + rows.num_rows)
        first += rows.num_rows
        for some_queues, some, some_places in _by_queue(rows, places, route, queues, partition):
            _add_rows(bulk, some_queues, some, some_places)


def _partitions(batches: Sequence[Any], partition: int | None) -> list[int]:
    """The partitions that the caller names."""
    if partition is not None:
        return [partition]
    columns = [rows.column(PARTITION) for rows in batches if PARTITION in rows.schema.names]
    return sorted({n for some in columns for n in pyarrow.compute.unique(some).to_pylist()})


def _by_queue(
    rows: Any,
    places: range,
    route: TopicRoute,
    named: Mapping[int, PartitionQueue],
    partition: int | None,
) -> Iterator[tuple[Iterator[PartitionQueue], Any, Sequence[int]]]:
    """Rows with their queues and their positions in the call."""
    if partition is not None:
        yield repeat(named[partition]), rows, places
        return
    if PARTITION in rows.schema.names:
        numbers = rows.column(PARTITION)
        for number in sorted(pyarrow.compute.unique(numbers).to_pylist()):
            chosen = pyarrow.compute.indices_nonzero(pyarrow.compute.equal(numbers, number))
            yield repeat(named[number]), rows.take(chosen), [places[i] for i in chosen.to_pylist()]
        return
    if KEY in rows.schema.names:
        keys = rows.column(KEY).cast(pyarrow.binary()).to_pylist()
        for queue, chosen in by_partition(keys, route).items():
            yield repeat(queue), rows.take(pyarrow.array(chosen)), [places[i] for i in chosen]
        return
    yield route.turns, rows, places


def _add_rows(
    bulk: Bulk, queues: Iterator[PartitionQueue], rows: Any, places: Sequence[int]
) -> None:
    if not rows.num_rows:
        return
    values = rows.column(VALUE).cast(pyarrow.binary())
    keys = rows.column(KEY).cast(pyarrow.binary()) if KEY in rows.schema.names else None
    if keys is not None and keys.offset != values.offset:
        everything = pyarrow.array(range(rows.num_rows))
        keys, values = keys.take(everything), values.take(everything)
    times = _times(rows, bulk.now_ms)
    if times is not None and values.offset:
        everything = pyarrow.array(range(rows.num_rows))
        values = values.take(everything)
        keys = None if keys is None else keys.take(everything)
    ends = _ends(values)
    if keys is not None:
        ends = [a + b for a, b in zip(ends, _ends(keys), strict=True)]
    value_offsets, value_data, value_validity = _buffers(values)
    key_offsets, key_data, key_validity = (None, None, None) if keys is None else _buffers(keys)

    def send(queue: PartitionQueue, start: int, end: int, magic: int) -> RecordBatch:
        some_times: Times = bulk.now_ms if times is None else times[start:end]
        stamps = bulk.now_ms if times is None else times
        data = kernel.build_from_columns(
            key_offsets,
            key_data,
            key_validity,
            value_offsets,
            value_data,
            value_validity,
            rows=end - start,
            start=values.offset + start,
            magic=magic,
            timestamps=stamps if magic else None,
        )
        return bulk.append_set(queue, data, end - start, magic, some_times)

    bulk.add(queues, places, partial(end_by_sums, ends), send)


def _times(rows: Any, now_ms: int) -> memoryview[int] | None:
    """The column of timestamps in ms, `now_ms` for null and for NO_TIMESTAMP, which a MessageBatch
    has; None if there is no such column. ValueError for a time before 1970."""
    if TIMESTAMP not in rows.schema.names:
        return None
    column = rows.column(TIMESTAMP)
    if pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False)
    times = column.cast(pyarrow.int64())
    times = pyarrow.compute.replace_with_mask(
        times,
        pyarrow.compute.fill_null(pyarrow.compute.equal(times, NO_TIMESTAMP), True),
        pyarrow.scalar(now_ms, pyarrow.int64()),
    )
    first = pyarrow.compute.min(times).as_py()
    if first is not None and first < 0:
        raise ValueError(f"column {TIMESTAMP!r}: {first} ms is before 1970")
    return memoryview(times.buffers()[1]).cast("q")[times.offset : times.offset + len(times)]


def _buffers(column: Any) -> tuple[Any, Any, Any]:
    """Offsets, data and validity, in the form that the kernel takes."""
    validity, offsets, data = column.buffers()
    return offsets, b"" if data is None else data, validity


def _ends(column: Any) -> Sequence[int]:
    """Bytes up to the end of each row."""
    offsets = memoryview(column.buffers()[1]).cast("i")[
        column.offset : column.offset + len(column) + 1
    ]
    first = offsets[0]
    return offsets[1:] if first == 0 else [end - first for end in offsets[1:]]
