"""Converts messages between magic 0 and magic 1 (twin).

Source: org.apache.kafka.common.record.Record.convert 0.10.2.2.
"""

from __future__ import annotations

from kafka08.kernel._python_sets import (
    OFFSET,
    append_entry,
    check_crc,
    check_magic,
    fields,
    signed64,
    walk,
    writable,
)
from kafka08.kernel.types import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    Buffer,
    Converted,
    CorruptMessage,
)


def convert(
    data: Buffer,
    output: Buffer,
    magic: int,
    shift: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    log_append_time: bool = False,
) -> Converted:
    """Write the plain entries of `data` to the start of `output`, converted to `magic`.

    `shift` is added to every offset. A converted message keeps only key and value; it gets
    `timestamp_ms` and its type if `magic` is 1, and a new CRC. Entries that already have `magic`
    change only their offset. Stops before a wrapper, a partial or corrupt entry, or the first entry
    for which `output` has no room (an entry grows by at most TIMESTAMP_BYTES); call it again with
    the remaining data.

    CorruptMessage if the first entry is corrupt: a size below 14, an unknown magic, key or value
    lengths beyond the message, or, for a converted message, a wrong CRC, which the new CRC would
    hide. ValueError if `magic` is unknown.
    """
    check_magic(magic)
    view, target = memoryview(data), writable(output)
    read = written = count = 0
    attributes = TIMESTAMP_TYPE_BIT if magic and log_append_time else 0
    try:
        for position, stored_offset, size in walk(view):
            if view[position + ATTRIBUTES_POSITION] & CODEC_MASK:
                return Converted(read, written, count, True)
            _, key, value = fields(view, position, stored_offset, size)
            entry = bytearray()
            offset = signed64(stored_offset + shift)
            if view[position + MAGIC_POSITION] == magic:
                entry += view[position : position + size]
                OFFSET.pack_into(entry, 0, offset)
            else:
                check_crc(view, position, stored_offset, size)
                append_entry(entry, offset, attributes, key, value, magic, timestamp_ms)
            if len(entry) > len(target) - written:
                break
            target[written : written + len(entry)] = entry
            read += size
            written += len(entry)
            count += 1
    except CorruptMessage:
        if not count:
            raise
    return Converted(read, written, count, False)
