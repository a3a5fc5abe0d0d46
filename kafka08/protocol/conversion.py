"""Converts messages between message formats (magic 0 and 1): for old consumers and new topics.

A plain message is rewritten with or without a timestamp. A wrapper is decompressed, its messages
are converted, and it is compressed again with its codec and its offset. Source: AbstractRecords.
toMessageFormat 0.10.2.2, which merges all wrappers of a response into one; this keeps each.
"""

from __future__ import annotations

from kafka08 import kernel
from kafka08.format import RecordFormat, batch_at, format_of
from kafka08.kernel.types import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    EMPTY_ENTRY_BYTES,
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    MAGIC_POSITION,
    MAX_MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_BYTES,
)
from kafka08.protocol import compression
from kafka08.protocol.message_set import (
    MAX_STORED_UNPACKED_BYTES,
    NO_LIMIT,
    pack,
    wrapper_value,
)
from kafka08.protocol.record_batches import as_messages
from kafka08.protocol.types import Buffer


class Converter:
    """The entries of a log as entries of `magic`, piece by piece.

        converter = Converter(magic=0)
        for piece in pieces:                    # of any size, cut anywhere
            for converted in converter.convert(piece):
                send(converted)

    Plain messages of a record batch below `from_offset` are left out.

    Memory: a piece, its conversion, one entry that pieces cut, and the content of a wrapper, at
    most `max_unpacked_bytes`. `pending` is the entry that the last piece cut. If no entry was
    complete, the result is empty: 0.10.2.2 then sends the bytes unconverted, from which a consumer
    learns that its fetch size is too small.
    """

    def __init__(
        self,
        magic: int,
        max_unpacked_bytes: int = MAX_STORED_UNPACKED_BYTES,
        from_offset: int = 0,
    ) -> None:
        self._magic = magic
        self._from_offset = from_offset
        self._max_unpacked_bytes = max_unpacked_bytes
        self.pending = 0
        self._rest: list[Buffer] = []
        """The bytes of that entry, `pending` of them: joined once it is whole, so that a large one
        is not copied with each piece."""
        self._needed = 0

    def convert(self, piece: Buffer) -> list[Buffer]:
        """Yields complete entries, converted, in order; `piece` continues where the last one ended.

        Entries before a corrupt one come first; the next call raises CorruptMessage, UnknownCodec,
        or another ValueError for a wrapper that cannot be decompressed.
        """
        if self.pending + len(piece) < self._needed:
            self._rest.append(bytes(piece))
            self.pending += len(piece)
            return []
        view = memoryview(b"".join((*self._rest, piece)) if self._rest else piece)
        output = memoryview(kernel.new_buffer(_room(len(view))))
        found: list[Buffer] = []
        try:
            while view:
                batch = batch_at(view)
                if batch is not None and isinstance(format_of(batch.magic), RecordFormat):
                    if batch.end > len(view):
                        break
                    messages = as_messages(
                        view[: batch.end],
                        self._magic,
                        self._max_unpacked_bytes,
                        from_offset=self._from_offset,
                    )
                    found += [messages] if messages else []
                    view = view[batch.end :]
                    continue
                done = kernel.convert(view, output, self._magic)
                if done.written:
                    found.append(output[: done.written])
                view, output = view[done.read :], output[done.written :]
                if done.wrapper:
                    _, size = ENTRY_HEADER.unpack_from(view)
                    found.append(self._convert_wrapper(view[: ENTRY_HEADER_BYTES + size]))
                    view = view[ENTRY_HEADER_BYTES + size :]
                elif not done.entries:
                    break
        except ValueError:
            if not found:
                raise
        self._rest, self.pending = [bytes(view)], len(view)
        whole = len(view) >= ENTRY_HEADER_BYTES
        self._needed = ENTRY_HEADER_BYTES + ENTRY_HEADER.unpack_from(view)[1] if whole else 0
        return found

    def _convert_wrapper(self, entry: memoryview) -> Buffer:
        magic = entry[MAGIC_POSITION]
        (offset, _) = ENTRY_HEADER.unpack_from(entry)
        if magic == self._magic:
            return entry
        if magic > MAX_MAGIC:
            raise kernel.CorruptMessage(0, offset, f"magic {magic} is not known")
        codec = entry[ATTRIBUTES_POSITION] & CODEC_MASK
        value = wrapper_value(entry, magic)
        inner = compression.decompress(codec, value, self._max_unpacked_bytes)
        # The conversion checks the CRC of each message that it changes.
        summary = kernel.validate(inner, NO_LIMIT, verify_crc=False)
        if summary.magics & 1 << self._magic:
            kernel.validate(inner, NO_LIMIT)
        if summary.codec:
            raise kernel.CorruptMessage(0, offset, "compressed message inside a compressed one")
        if not summary.count:
            return b""
        if magic:
            shift = max(0, offset - summary.last_offset)
        else:
            shift = -summary.first_offset
        messages = convert_plain(inner, summary.count, self._magic, shift)
        return pack(messages, codec, offset, self._magic)


def convert_plain(
    data: Buffer,
    count: int,
    magic: int,
    shift: int = 0,
    timestamp_ms: int = NO_TIMESTAMP,
    log_append_time: bool = False,
) -> memoryview:
    """The `count` entries of a plain set, as `kernel.convert` writes them; errors likewise."""
    view = memoryview(data)
    output = memoryview(kernel.new_buffer(len(view) + TIMESTAMP_BYTES * count * magic))
    written = 0
    while count:
        done = kernel.convert(view, output[written:], magic, shift, timestamp_ms, log_append_time)
        view = view[done.read :]
        written += done.written
        if not done.entries:
            break
        count -= done.entries
    return output[:written]


def _room(size: int) -> int:
    """Upper bound of the size of the entries in `size` bytes after conversion to any magic."""
    return size + TIMESTAMP_BYTES * (size // EMPTY_ENTRY_BYTES)
