"""Arrow columns as records: builds message sets from the columns' buffers, without objects.

The only module of this package that needs pyarrow; imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any

import pyarrow
import pyarrow.compute

from kafka08 import kernel
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.producer.batch import RECORDS, RecordBatch, Times, no_headers
from kafka08.producer.bulk import Bulk, by_partition, end_by_sums
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.producer.topic_route import TopicRoute
from kafka08.protocol.header_columns import encoded_headers

KEY, VALUE, PARTITION, TIMESTAMP = "key", "value", "partition", "timestamp"
HEADERS = "headers"


FindQueue = Callable[[int], PartitionQueue]
"""Partition → its queue; raises UnknownTopicOrPartition."""


def add_columns(
    bulk: Bulk, route: TopicRoute, find_queue: FindQueue, table: Any, partition: int | None
) -> None:
    """Send the rows of a RecordBatch or Table with a column `value` and optionally `key`,
    `partition`, `timestamp` and `headers`. ValueError for other columns, a partition that is null,
    a timestamp before 1970 and a header without a name, UnsupportedForMessageFormat for headers
    that the leader does not store, TypeError for a column of another type, UnknownTopicOrPartition;
    no row was sent then."""
    names = set(table.schema.names)
    if VALUE not in names or names - {KEY, VALUE, PARTITION, TIMESTAMP, HEADERS}:
        raise ValueError(
            f"columns {', '.join(table.schema.names)}: {VALUE!r} is required, {KEY!r}, "
            f"{PARTITION!r}, {TIMESTAMP!r} and {HEADERS!r} are optional, no others are known"
        )
    _check_types(table.schema)
    batches = table.to_batches() if isinstance(table, pyarrow.Table) else [table]
    batches = [_with_encoded_headers(rows) for rows in batches]
    queues = {number: find_queue(number) for number in _partitions(batches, partition)}
    for rows in batches:
        _times(rows, bulk.now_ms)
        if HEADERS in rows.schema.names:
            for queue in queues.values() or route.queues:
                _check_headers(queue, queue.magic)
    first = 0
    for rows in batches:
        if rows.num_rows:
            _add_rows(bulk, rows, first, _by_queue(rows, route, queues, partition))
        first += rows.num_rows


def _check_types(schema: Any) -> None:
    for field in schema:
        if field.name == PARTITION and not pyarrow.types.is_integer(field.type):
            raise TypeError(f"column {PARTITION!r} has {field.type}; integers are needed")
        if field.name in {KEY, VALUE}:
            try:
                pyarrow.array([], field.type).cast(pyarrow.binary())
            except pyarrow.ArrowException:
                raise TypeError(
                    f"column {field.name!r} has {field.type}; bytes or text are needed"
                ) from None


def _partitions(batches: Sequence[Any], partition: int | None) -> list[int]:
    """The partitions that the caller names."""
    if partition is not None:
        return [partition]
    columns = [rows.column(PARTITION) for rows in batches if PARTITION in rows.schema.names]
    if any(some.null_count for some in columns):
        raise ValueError(
            f"column {PARTITION!r} has a null; send the rows whose keys choose a partition without "
            "that column"
        )
    return sorted({n for some in columns for n in pyarrow.compute.unique(some).to_pylist()})


def _by_queue(
    rows: Any, route: TopicRoute, named: Mapping[int, PartitionQueue], partition: int | None
) -> list[tuple[Iterator[PartitionQueue], Sequence[int]]]:
    """Queues, each with the numbers of its rows."""
    if partition is not None:
        return [(repeat(named[partition]), range(rows.num_rows))]
    if PARTITION in rows.schema.names:
        groups = kernel.group_rows(rows.column(PARTITION).to_pylist())
        return [(repeat(named[number]), groups[number]) for number in sorted(groups)]
    if KEY in rows.schema.names:
        keys = rows.column(KEY).cast(pyarrow.binary()).to_pylist()
        return [(repeat(queue), chosen) for queue, chosen in by_partition(keys, route).items()]
    return [(route.turns, range(rows.num_rows))]


def _add_rows(
    bulk: Bulk,
    rows: Any,
    number: int,
    groups: Sequence[tuple[Iterator[PartitionQueue], Sequence[int]]],
) -> None:
    """Send rows, the first of which is row `number` of the call. Those of a queue become neighbours
    first: Arrow's work is for all columns together, not for each partition."""
    places: Sequence[int] = range(number, number + rows.num_rows)
    if len(groups) > 1:
        order = list(chain.from_iterable(chosen for _, chosen in groups))
        rows = rows.take(pyarrow.array(order))
        places = [number + row for row in order]
    columns: list[Any] = [
        rows.column(name).cast(pyarrow.binary()) if name in rows.schema.names else None
        for name in (VALUE, KEY, HEADERS)
    ]
    times = _times(rows, bulk.now_ms)
    begin = {column.offset for column in columns if column is not None}
    if len(begin) > 1 or (times is not None and begin != {0}):
        # The kernel takes one number of the first row for all.
        everything = pyarrow.array(range(rows.num_rows))
        columns = [None if column is None else column.take(everything) for column in columns]
    ends, *more_ends = [_ends(column) for column in columns if column is not None]
    for of_others in more_ends:
        ends = [a + b for a, b in zip(ends, of_others, strict=True)]
    first_row = columns[0].offset
    of_values, of_keys, of_headers = map(_buffers, columns)

    def send(first: int, queue: PartitionQueue, start: int, end: int, magic: int) -> RecordBatch:
        start, end = first + start, first + end
        if of_headers[0] is not None:
            _check_headers(queue, magic)
        some_times: Times = bulk.now_ms if times is None else times[start:end]
        stamps = bulk.now_ms if times is None else times
        data = kernel.build_from_columns(
            *of_keys,
            *of_values,
            rows=end - start,
            start=first_row + start,
            magic=magic,
            timestamps=stamps if magic else None,
            header_offsets=of_headers[0],
            header_data=of_headers[1],
        )
        return bulk.append_set(queue, data, end - start, magic, some_times)

    first = 0
    for queues, chosen in groups:
        last = first + len(chosen)
        cut = partial(end_by_sums, ends, first, last)
        bulk.add(queues, places[first:last], cut, partial(send, first))
        first = last


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


def _with_encoded_headers(rows: Any) -> Any:
    """`rows` with the column of headers as bytes to be sent; without it if they have none."""
    if HEADERS not in rows.schema.names:
        return rows
    encoded = encoded_headers(rows.column(HEADERS))
    columns = {name: rows.column(name) for name in rows.schema.names if name != HEADERS}
    if encoded is not None:
        columns[HEADERS] = encoded
    return pyarrow.record_batch(list(columns.values()), names=list(columns))


def _check_headers(queue: PartitionQueue, magic: int) -> None:
    """UnsupportedForMessageFormat if the leader takes messages without headers."""
    if magic < RECORDS:
        raise no_headers(queue.tp)


def _buffers(column: Any) -> tuple[Any, Any, Any]:
    """Offsets, data and validity, in the form that the kernel takes; None for no column."""
    if column is None:
        return None, None, None
    validity, offsets, data = column.buffers()
    return offsets, b"" if data is None else data, validity


def _ends(column: Any) -> Sequence[int]:
    """Bytes up to the end of each row."""
    offsets = memoryview(column.buffers()[1]).cast("i")[
        column.offset : column.offset + len(column) + 1
    ]
    first = offsets[0]
    return offsets[1:] if first == 0 else [end - first for end in offsets[1:]]
