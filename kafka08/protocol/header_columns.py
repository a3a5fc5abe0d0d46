"""Arrow columns of headers as the bytes that records have.

Needs pyarrow; imported by what has columns.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from kafka08 import kernel

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""Those of a message, in their order; null if it has none, as in Spark's own connector."""


def encoded_headers(column: pa.Array) -> pa.Array | None:
    """A column of bytes, not a slice, each as `kernel.build_from_columns` takes them; None if no
    row has headers. TypeError for a column of another type than HEADERS, ValueError for a header
    without a name."""
    try:
        lists = column.cast(HEADERS)
    except pa.ArrowException:
        raise TypeError(f"column 'headers' has {column.type}; {HEADERS} is needed") from None
    names, values = map(_whole, lists.values.flatten())
    if not len(names):
        return None
    validity, offsets = lists.buffers()[:2]
    name_validity, name_offsets, name_data = names.buffers()
    value_validity, value_offsets, value_data = values.buffers()
    encoded = kernel.encode_headers(
        *(offsets, validity),
        *(name_offsets, name_data, name_validity),
        *(value_offsets, value_data, value_validity),
        *(len(names), len(lists), lists.offset),
    )
    buffers = [None, *map(pa.py_buffer, encoded)]
    return pa.Array.from_buffers(pa.binary(), len(lists), buffers) if len(encoded[1]) else None


def _whole(array: pa.Array) -> pa.Array:
    """`array` in buffers of its own, unless it begins where they do."""
    return array.take(pa.array(range(len(array)))) if array.offset else array
