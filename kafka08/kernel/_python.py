"""The Python twin of the kernel: the same names as `_native.pyx`, slower, nothing to compile.

_python_sets      one level: check, number, search, recover, list and build entries
_python_validation  a leader's rules from 0.9 on, timestamps set in place
_python_conversion  messages of one magic made into another
_python_messages  the messages of a set, wrappers unpacked on the way
_python_columns   the same as Arrow buffers, and back
_python_compaction  the last offset of each key, and what stays of a set
_python_builder   sets that grow message by message
_python_requests  Produce and Fetch requests of many partitions, and their answers
_python_append    plain sets to the ends of many logs

The list of the names is `__all__` of kafka08.kernel, which hands them on.
"""

# ruff: noqa: F401
from __future__ import annotations

from typing import Final

from kafka08.hashing import murmur2
from kafka08.kernel._python_append import (
    LeaderState,
    SegmentTail,
    append_produced,
    append_set,
    find_news,
)
from kafka08.kernel._python_builder import Place, SetBuilder
from kafka08.kernel._python_columns import build_from_columns, column_batches
from kafka08.kernel._python_compaction import OffsetMap
from kafka08.kernel._python_conversion import convert
from kafka08.kernel._python_messages import (
    MessageAndMetadata,
    MessageIterator,
    find_timestamp,
    messages,
)
from kafka08.kernel._python_requests import (
    read_fetch,
    read_fetched,
    write_fetched,
    write_produced,
)
from kafka08.kernel._python_sets import (
    MessageAndOffset,
    SetSummary,
    build_set,
    crc32,
    entries,
    find_offset,
    has_compressed,
    recover,
    runs,
    scan,
    scan_timestamp,
    validate,
    validate_and_assign,
    wrap,
)
from kafka08.kernel._python_validation import check_messages, set_wrapper, validate_and_stamp
from kafka08.kernel.types import INTERFACE

NAME: Final = "python"
