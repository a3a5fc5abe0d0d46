"""The inner loops over message sets (validation, numbering, search, conversion, CRC-32) and over
requests for many partitions; small requests as tuples of fields; the unpacking of snappy.

Two implementations of one interface: `_native` (Cython), and `_python`, its twin for installs
without a compiler. `NAME` says which one runs; the environment variable KAFKA08_KERNEL=python or
=native forces one. Both return the same results and raise the same errors: tests/kernel runs each
test with both. Start reading at `_python.py`, which is also what type checkers see; `__all__` lists
the names.

An entry of a set is `offset:i64 size:i32 message[size]`, a message is `crc:u32 magic:i8
attributes:i8 [timestamp:i64 if magic 1] key:bytes value:bytes`; all integers are big-endian. An
entry whose value is a compressed set is called a wrapper. Every length is checked against the
remaining data before it is used to read or to allocate. Only `append_plain`, `append_copies`,
`copy_fetched` and `find_position` do I/O: on the segments of logs.
"""

# ruff: noqa: F405
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kafka08.kernel.choice import choose
from kafka08.kernel.types import (
    BadTimestamp,
    Columns,
    Converted,
    CorruptMessage,
    EntryTooLarge,
    HeaderColumns,
    RecoverResult,
    Retained,
    Rules,
    Run,
    ScanResult,
    UnknownCodec,
    Unpacker,
)

__all__ = [
    "INTERFACE",
    "NAME",
    "BadTimestamp",
    "ColumnBuffer",
    "Columns",
    "Converted",
    "CorruptMessage",
    "EntryTooLarge",
    "HeaderColumns",
    "IndexTail",
    "MessageAndMetadata",
    "MessageAndOffset",
    "MessageIterator",
    "MessageRef",
    "OffsetMap",
    "OpenSet",
    "RecordAppender",
    "RecordRoute",
    "RecoverResult",
    "Retained",
    "Rules",
    "Run",
    "ScanResult",
    "SegmentTail",
    "SetBuilder",
    "SetSummary",
    "StreamIterator",
    "StreamLoop",
    "UnknownCodec",
    "Unpacker",
    "append_copies",
    "append_plain",
    "are_of",
    "build_from_columns",
    "build_from_lists",
    "build_set",
    "check_messages",
    "column_batches",
    "convert",
    "copy_fetched",
    "crc32",
    "crc32c",
    "distinct",
    "encode_headers",
    "end_of_batch",
    "entries",
    "find_offset",
    "find_position",
    "find_timestamp",
    "group_rows",
    "header_lists",
    "int_partitions",
    "key_partitions",
    "messages",
    "murmur2",
    "new_buffer",
    "new_keyed_message",
    "new_producer_record",
    "number_batch",
    "pack_fields",
    "pick",
    "read_fetch",
    "read_fetched",
    "read_produce",
    "recover",
    "run_callbacks",
    "runs",
    "scan_timestamp",
    "set_constructor",
    "set_wrapper",
    "total_length",
    "unpack_fields",
    "unpack_snappy",
    "validate",
    "validate_and_assign",
    "validate_and_stamp",
    "without_aborted",
    "wrap",
    "write_fetched",
    "write_produced",
]

if TYPE_CHECKING:
    from kafka08.kernel._python import *  # noqa: F403
else:
    _chosen = choose(os.environ.get("KAFKA08_KERNEL", ""))
    globals().update({name: getattr(_chosen, name) for name in __all__ if name not in globals()})
