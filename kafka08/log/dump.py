"""Segment files as text, line for line what `kafka.tools.DumpLogSegments` of 0.8.2.2 prints.

    dump = LogDump(deep_iteration=True)
    for line in dump.lines(path): print(line)                            # stdout, file by file
    for line in dump.complaints(): print(line, file=sys.stderr)          # once, at the end

Nothing is changed: unlike the original this does not open indexes for writing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.kernel.types import CRC_END, ENTRY_HEADER_BYTES
from kafka08.log.files import file_size, open_file, read_file, storage_errors
from kafka08.log.names import INDEX_SUFFIX, LOG_SUFFIX, base_offset_of
from kafka08.log.offset_index import INDEX_ENTRY, INDEX_ENTRY_BYTES
from kafka08.log.recovery import CHUNK_BYTES, entry_bytes
from kafka08.protocol import message_set
from kafka08.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from kafka08.runtime.disk import Disk, File, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK

CODEC_NAMES: Final = {
    NONE: "NoCompressionCodec",
    GZIP: "GZIPCompressionCodec",
    SNAPPY: "SnappyCompressionCodec",
    LZ4: "LZ4CompressionCodec",
}
DEFAULT_MAX_MESSAGE_BYTES: Final = 5 << 20


Row = dict[str, int | str | None]
"""What a dump says of one message or index entry, in the order of its columns."""


class _Found(NamedTuple):
    """A message, whether its CRC is right, and the position of its outermost entry."""

    position: int
    message: kernel.MessageAndOffset
    is_valid: bool


def _text(data: bytes) -> str:
    """How keys and values print: UTF-8, as StringDecoder reads it."""
    return data.decode("utf-8", "replace")


def _column(item: tuple[str, int | str | None]) -> str:
    """As DumpLogSegments prints it."""
    name, value = item
    if isinstance(value, bool):
        value = str(value).lower()
    return f"{name}: {'null' if value is None else value}"


class LogDump:
    """Dumps .log and .index files with one set of options, and remembers what was wrong with them.

    print_data_log      keys and values too, as UTF-8
    deep_iteration      the messages inside wrappers instead of the wrappers
    verify_index_only   compare index entries with the messages, print none
    max_message_bytes   CorruptLog if a message is larger than this
    """

    def __init__(
        self,
        *,
        print_data_log: bool = False,
        deep_iteration: bool = False,
        verify_index_only: bool = False,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self._disk = disk
        self._print_data_log = print_data_log
        self._deep_iteration = deep_iteration
        self._verify_index_only = verify_index_only
        self._max_message_bytes = max_message_bytes
        self._mismatches: dict[Path, list[tuple[int, int]]] = {}
        self._gaps: dict[Path, list[tuple[int, int]]] = {}

    def lines(self, path: Path) -> Iterator[str]:
        """The dump of one file; nothing for a file that is neither. CorruptLog, StorageError."""
        if path.suffix in {LOG_SUFFIX, INDEX_SUFFIX}:
            yield f"Dumping {path}"
        if path.suffix == LOG_SUFFIX:
            yield f"Starting offset: {base_offset_of(path)}"
        for row in self.rows(path):
            yield row if isinstance(row, str) else " ".join(map(_column, row.items()))

    def rows(self, path: Path) -> Iterator[Row | str]:
        """The same as values: name → value of each message or index entry, and text for what is no
        message. CorruptLog, StorageError."""
        if path.suffix == LOG_SUFFIX:
            yield from self._log_rows(path)
        elif path.suffix == INDEX_SUFFIX:
            yield from self._index_rows(path)

    def complaints(self) -> Iterator[str]:
        """What did not fit in the files dumped so far, the last finding of each file first."""
        for path, mismatches in self._mismatches.items():
            yield f"Mismatches in :{path.absolute()}"
            for index_offset, log_offset in reversed(mismatches):
                yield f"  Index offset: {index_offset}, log offset: {log_offset}"
        for path, gaps in self._gaps.items():
            yield f"Non-secutive offsets in :{path.absolute()}"
            for before, after in reversed(gaps):
                yield f"  {before} is followed by {after}"

    def _log_rows(self, path: Path) -> Iterator[Row | str]:
        file = open_file(self._disk, path, OpenMode.READ)
        size = file_size(file, path)
        valid_bytes = 0
        last_offset = -1
        for position, chunk, entry in self._entries(file, path, 0, size):
            for found in _messages(path, position, chunk, entry, self._deep_iteration):
                offset = found.message.offset
                if last_offset not in (-1, offset - 1) and not found.message.codec:
                    self._gaps.setdefault(path, []).append((last_offset, offset))
                last_offset = offset
                yield self._message_row(found)
            valid_bytes = position + entry.entry_size
        if size > valid_bytes:
            yield f"Found {size - valid_bytes} invalid bytes at the end of {path.name}"

    def _message_row(self, found: _Found) -> Row:
        message = found.message
        row: Row = {
            "offset": message.offset,
            "position": found.position,
            "isvalid": found.is_valid,
            "payloadsize": -1 if message.value is None else len(message.value),
            "magic": message.magic,
            "compresscodec": CODEC_NAMES[message.codec],
            "crc": message.crc,
        }
        if message.key is not None:
            row["keysize"] = len(message.key)
        if self._print_data_log:
            if message.key is not None:
                row["key"] = _text(message.key)
            row["payload"] = None if message.value is None else _text(message.value)
        return row

    def _index_rows(self, path: Path) -> Iterator[Row]:
        base_offset = base_offset_of(path)
        log_path = path.with_suffix(LOG_SUFFIX)
        file = open_file(self._disk, log_path, OpenMode.READ)
        size = file_size(file, log_path)
        content = read_file(self._disk, path)
        for number in range(len(content) // INDEX_ENTRY_BYTES):
            relative, position = INDEX_ENTRY.unpack_from(content, number * INDEX_ENTRY_BYTES)
            first = self._first_message(file, log_path, position, size)
            if first is None and not relative and not position:
                return  # a pre-allocated index of an empty segment
            if first is None:
                raise CorruptLog(f"{path}: entry {number} leads to byte {position}, no message")
            offset = base_offset + relative
            if first.offset != offset:
                self._mismatches.setdefault(path, []).append((offset, first.offset))
            if relative == 0 and number > 0:
                return  # zeros behind the last entry
            if not self._verify_index_only:
                yield {"offset": offset, "position": position}

    def _first_message(
        self, file: File, path: Path, position: int, size: int
    ) -> kernel.MessageAndOffset | None:
        """The first message at `position`, unpacked; None if there is no entry."""
        for start, chunk, entry in self._entries(file, path, position, size):
            for found in _messages(path, start, chunk, entry, deep=True):
                return found.message
        return None

    def _entries(
        self, file: File, path: Path, start: int, size: int
    ) -> Iterator[tuple[int, memoryview, kernel.MessageAndOffset]]:
        """(position in the file, the bytes `entry.position` counts in, entry) of each whole entry
        from `start` on, up to one whose sizes cannot be."""
        chunk_bytes = CHUNK_BYTES
        while start < size:
            with storage_errors("read", path):
                chunk = memoryview(file.pread(min(chunk_bytes, size - start), start))
            end = 0
            try:
                for entry in kernel.entries(chunk):
                    self._check_size(path, start + entry.position, entry.entry_size)
                    yield start + entry.position, chunk, entry
                    end = entry.position + entry.entry_size
            except kernel.CorruptMessage:
                return
            needed = entry_bytes(chunk[end:])
            if needed is not None:
                self._check_size(path, start + end, needed)
            if not end and (needed is None or start + needed > size):
                return
            chunk_bytes = max(CHUNK_BYTES, needed or 0)
            start += end

    def _check_size(self, path: Path, position: int, entry_size: int) -> None:
        if entry_size - ENTRY_HEADER_BYTES > self._max_message_bytes:
            raise CorruptLog(
                f"{path} at byte {position}: Message size exceeds the largest allowable "
                f"message size ({self._max_message_bytes})."
            )


def _messages(
    path: Path, position: int, data: memoryview, entry: kernel.MessageAndOffset, deep: bool
) -> Iterator[_Found]:
    """The entry itself, or every message inside it; all with the outermost entry's position."""
    if entry.codec not in CODEC_NAMES:
        raise CorruptLog(f"{path} at byte {position}: {entry.codec} is an unknown codec")
    if not (deep and entry.codec):
        end = entry.position + entry.entry_size
        crc = kernel.crc32(data[entry.position + CRC_END : end])
        yield _Found(position, entry, crc == entry.crc)
        return
    try:
        inner = memoryview(message_set.unpack(entry.codec, entry.value or b""))
        for message in kernel.entries(inner):
            yield from _messages(path, position, inner, message, deep)
    except ValueError as error:
        raise CorruptLog(f"{path} at byte {position}: {error}") from error
