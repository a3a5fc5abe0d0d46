"""The Python twin of the kernel: the same functions as `_native.pyx`, slower, without a compiler.

_python_sets      validation, numbering, search and recovery of sets, without decompression; entries
_python_validation  a leader's rules for messages from 0.9 on; sets timestamps in place
_python_conversion  converts messages between magic 0 and 1
_python_messages  iterates over the messages of a set or a stream, and decompresses wrappers
_python_columns   converts sets to Arrow buffers and back
_python_headers   headers of records as Arrow lists, and back
_python_committed  sets without the messages of aborted transactions
_python_compaction  the cleaner: the last offset of each key, and the messages to retain
_python_builder   sets that grow message by message
_python_producer  what the producers do for each message
_python_fields    tuples of fields as bytes and back
_python_requests  reads Produce and Fetch requests for many partitions; writes their responses
_python_append    appends sets to the ends of segments, and copies them from there into responses
_python_snappy    unpacks snappy

`__all__` of kafka08.kernel, which exports the names, is their list.
"""

# ruff: noqa: F401
from __future__ import annotations

from typing import Final

from kafka08.format.v2 import crc32c
from kafka08.hashing import murmur2
from kafka08.kernel._python_append import (
    IndexTail,
    SegmentTail,
    append_copies,
    append_plain,
    copy_fetched,
)
from kafka08.kernel._python_builder import MessageRef, SetBuilder
from kafka08.kernel._python_columns import build_from_columns, column_batches
from kafka08.kernel._python_committed import without_aborted
from kafka08.kernel._python_compaction import OffsetMap
from kafka08.kernel._python_conversion import convert
from kafka08.kernel._python_fields import pack_fields, unpack_fields
from kafka08.kernel._python_headers import encode_headers, header_lists
from kafka08.kernel._python_messages import (
    MessageAndMetadata,
    MessageIterator,
    StreamIterator,
    StreamLoop,
    find_timestamp,
    messages,
)
from kafka08.kernel._python_producer import (
    ColumnBuffer,
    OpenSet,
    RecordAppender,
    RecordRoute,
    are_of,
    build_from_lists,
    distinct,
    end_of_batch,
    group_rows,
    int_partitions,
    key_partitions,
    new_keyed_message,
    new_producer_record,
    pick,
    run_callbacks,
    set_constructor,
    total_length,
)
from kafka08.kernel._python_requests import (
    read_fetch,
    read_fetched,
    read_produce,
    write_fetched,
    write_produced,
)
from kafka08.kernel._python_search import find_offset, find_position, scan_timestamp
from kafka08.kernel._python_sets import (
    MessageAndOffset,
    SetSummary,
    build_set,
    crc32,
    entries,
    new_buffer,
    recover,
    runs,
    validate,
    validate_and_assign,
    wrap,
)
from kafka08.kernel._python_snappy import unpack_snappy
from kafka08.kernel._python_validation import (
    check_messages,
    number_batch,
    set_wrapper,
    validate_and_stamp,
)
from kafka08.kernel.types import INTERFACE

NAME: Final[str] = "python"
