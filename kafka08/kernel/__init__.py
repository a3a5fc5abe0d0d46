"""Inner loops over the bytes of message sets: check, number, search, split, build, CRC-32.

Two implementations of one interface: `_native` (Cython) and `_python`, its twin, used where
nothing could be compiled. `NAME` says which runs; the environment variable KAFKA08_KERNEL=python
or =native forces one. Both give the same results and raise the same errors (tests/kernel runs
each test under both). Start reading at `_python.py`.

An entry of a set is `offset:i64 size:i32 message[size]`, a message is `crc:u32 magic:i8
attributes:i8 [timestamp:i64 if magic 1] key:bytes value:bytes`, all big-endian; an entry whose
message is a whole set, compressed, is called a wrapper. Every length is checked against what is
left of the data before anything is read or allocated. Nothing here keeps state or does I/O.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kafka08.kernel.choice import choose
from kafka08.kernel.types import (
    Columns,
    CorruptMessage,
    EntryTooLarge,
    RecoverResult,
    Retained,
    Run,
    ScanResult,
    UnknownCodec,
)

if TYPE_CHECKING:
    from kafka08.kernel._python import (
        INTERFACE,
        NAME,
        MessageAndMetadata,
        MessageAndOffset,
        MessageIterator,
        OffsetMap,
        Place,
        SetBuilder,
        SetSummary,
        build_from_columns,
        build_set,
        column_batches,
        crc32,
        entries,
        find_offset,
        has_compressed,
        messages,
        murmur2,
        recover,
        runs,
        scan,
        validate,
        validate_and_assign,
        wrap,
    )
else:
    _chosen = choose(os.environ.get("KAFKA08_KERNEL", ""))
    INTERFACE = _chosen.INTERFACE
    NAME = _chosen.NAME
    MessageAndMetadata = _chosen.MessageAndMetadata
    MessageAndOffset = _chosen.MessageAndOffset
    MessageIterator = _chosen.MessageIterator
    OffsetMap = _chosen.OffsetMap
    Place = _chosen.Place
    SetBuilder = _chosen.SetBuilder
    SetSummary = _chosen.SetSummary
    build_from_columns = _chosen.build_from_columns
    build_set = _chosen.build_set
    column_batches = _chosen.column_batches
    crc32 = _chosen.crc32
    entries = _chosen.entries
    find_offset = _chosen.find_offset
    has_compressed = _chosen.has_compressed
    messages = _chosen.messages
    murmur2 = _chosen.murmur2
    recover = _chosen.recover
    runs = _chosen.runs
    scan = _chosen.scan
    validate = _chosen.validate
    validate_and_assign = _chosen.validate_and_assign
    wrap = _chosen.wrap

__all__ = [
    "INTERFACE",
    "NAME",
    "Columns",
    "CorruptMessage",
    "EntryTooLarge",
    "MessageAndMetadata",
    "MessageAndOffset",
    "MessageIterator",
    "OffsetMap",
    "Place",
    "RecoverResult",
    "Retained",
    "Run",
    "ScanResult",
    "SetBuilder",
    "SetSummary",
    "UnknownCodec",
    "build_from_columns",
    "build_set",
    "column_batches",
    "crc32",
    "entries",
    "find_offset",
    "has_compressed",
    "messages",
    "murmur2",
    "recover",
    "runs",
    "scan",
    "validate",
    "validate_and_assign",
    "wrap",
]
