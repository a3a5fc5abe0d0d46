"""ConvertedSet: a slice of a log in an older magic for an old consumer, converted while it is sent.

The size of a set precedes it, so it must be known before the first byte is sent:

    plain messages   each one of magic 1 becomes 8 bytes shorter; nothing else changes
    compressed ones  their size is known only after recompression. The set gets the size that it has
                     in the log, or that of its first part, if that is larger. A message beyond that
                     is cut off; unused space is filled with the head of a message, which is cut off
    record batches   likewise; one without messages for an old consumer (markers of transactions) is
                     an empty set

Consumers expect a cut-off last message, and fetch it again. So memory holds at most a piece, the
entry that it cuts off, and the content of one compressed message. A partial message at the end is
left out; if no message is whole nothing is converted, so that a consumer sees the size and fetches
more. Small sets of plain messages are converted before the response is sent, up to KEPT_BYTES_MAX
of them: one read, and they are sent with the bytes around them. Source: KafkaApis.
handleFetchRequest 0.10.2.2, which converts a whole response in memory; LazyDownConversionRecords
2.0 also fills unused space.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafka08 import kernel
from kafka08.errors import InvalidMessage
from kafka08.format import magic_of
from kafka08.kernel.types import (
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    MIN_MESSAGE_BYTES,
    RECORDS_MAGIC,
    TIMESTAMP_BYTES,
)
from kafka08.network.server_connection import GeneratedBytes, Made
from kafka08.protocol.conversion import Converter
from kafka08.protocol.message_set import NO_LIMIT

if TYPE_CHECKING:
    from kafka08.log.slices import LogSlice
    from kafka08.runtime import BrokerRuntime

logger = logging.getLogger(__name__)

PIECE_BYTES: Final = 256 << 10
"""The most bytes that are read and converted at once."""
SMALL_BYTES: Final = 16 << 10
"""Sets up to this size are converted at once."""
SMALL_UNPACKED_BYTES: Final = 128 << 10
"""Each of their record batches unpacks to no more then."""
KEPT_BYTES_MAX: Final = 4 << 20
"""The most bytes of converted small sets, and again of first parts, that one response keeps until
they are sent. Other sets are converted while they are sent; of their first parts only the sizes
were needed."""
LARGE_BYTES: Final = 1 << 20
"""A message above this size is converted in a thread: 20 MB take 40 ms."""
LOOKED_AT_AT_ONCE_BYTES: Final = 16 << 20
"""Most bytes of sets that are searched for newer messages in the hub, which takes about 5 ms."""


class Contents(NamedTuple):
    """The content of a slice.

    size       bytes of its whole entries
    is_newer   whether any of them has a higher magic than the wanted one
    converted  their size in the wanted magic; None: unknown without converting them
    largest    bytes of the largest of them
    """

    size: int
    is_newer: bool
    converted: int | None
    largest: int


def contents_of(found: LogSlice, magic: int) -> Contents:
    """Check every entry, for consumers of `magic`. Stops at a broken one, which the conversion
    reports."""
    position, piece_bytes = 0, PIECE_BYTES
    is_newer, converted, largest = False, 0, 0
    is_known = True
    while position < found.size:
        data = found.file.pread(min(piece_bytes, found.size - position), found.position + position)
        try:
            summary = kernel.validate(data, NO_LIMIT)
        except ValueError:
            is_newer |= (magic_of(data) or 0) > magic
            return Contents(found.size, is_newer, None, found.size)
        if not summary.size:
            if position + len(data) >= found.size or len(data) < piece_bytes:
                break
            # The first entry is longer than the piece.
            needed = ENTRY_HEADER_BYTES + ENTRY_HEADER.unpack_from(data)[1]
            if not piece_bytes < needed <= found.size - position:
                break
            piece_bytes = needed
            continue
        position += summary.size
        largest = max(largest, summary.largest_entry)
        is_old = summary.magics < 2 << magic
        is_newer |= not is_old
        # Plain messages of one magic: each becomes 8 bytes shorter, or none.
        is_known &= is_old if magic else not summary.codec and summary.magics in (1, 2)
        converted += summary.size - (0 if is_old else TIMESTAMP_BYTES * summary.count)
    return Contents(position, is_newer, converted if is_known else None, largest)


class ConvertedSet(GeneratedBytes):
    """`size` bytes of `magic` in place of a slice whose `contents` are newer."""

    __slots__ = ("_contents", "_converter", "_first", "_is_filling", "_lane", "_left", "_magic",
                 "_position", "_runtime", "_slice")  # fmt: skip

    def __init__(
        self, found: LogSlice, contents: Contents, runtime: BrokerRuntime, lane: str, magic: int
    ) -> None:
        self._magic = magic
        self._slice = found
        self._lane = lane
        self._contents = contents
        self._runtime = runtime
        self._left = contents.converted if contents.converted is not None else contents.size
        self._start()

    def _start(self) -> None:
        self._converter = Converter(self._magic, from_offset=self._slice.offset)
        self._position = 0
        self._first: bytes | None = None
        self._is_filling = False

    @property
    def size(self) -> int:
        return self._left

    @property
    def is_size_known(self) -> bool:
        """Without `find_size`, which converts: of a large message all of it, to no other use."""
        return self._contents.converted is not None

    @property
    def in_thread(self) -> bool:
        """Whether it takes a native thread: a compressed set of any size may unpack to a thousand
        times as much, and a large message is converted as a whole."""
        return self._contents.converted is None or self._contents.largest > LARGE_BYTES

    def find_size(self, done: Callable[[BaseException | None], object]) -> None:
        """Compute `size` in a thread; then `done` is called in the hub, with None or the error:
        InvalidMessage if the first entry cannot be converted."""

        def converted(data: bytes | None, error: BaseException | None) -> None:
            if data is not None:
                self._first = data
                self._left = max(self._left, len(data)) if data else 0
            done(error)

        self._runtime.run_in_turn_later(self._lane, converted, self._convert)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the converted first part."""
        return len(self._first or b"")

    def forget(self) -> None:
        """Keep the size only."""
        if self._first is not None:
            self._start()

    def make(self, done: Made) -> bytes | None:
        if self._first is not None:
            first, self._first = self._first, None
            return self._taken(first)
        if not self.in_thread:
            return self._taken(self._convert_rest())

        def converted(data: bytes | None, error: BaseException | None) -> None:
            done(None if data is None else self._taken(data), error)

        self._runtime.run_in_turn_later(self._lane, converted, self._convert_rest)
        return None

    def _convert_rest(self) -> bytes:
        """Like `_convert`; empty after an entry that cannot be converted."""
        try:
            return self._convert()
        except InvalidMessage:
            return b""

    def _convert(self) -> bytes:
        """The next messages, converted; empty at the end. Raises InvalidMessage once, then it is
        empty."""
        end = self._contents.size
        while self._position < end:
            count = min(PIECE_BYTES, end - self._position)
            data = self._slice.file.pread(count, self._slice.position + self._position)
            if not data:
                break  # the log was truncated
            self._position += len(data)
            try:
                converted = b"".join(self._converter.convert(data))
            except ValueError as error:
                self._position = end
                raise InvalidMessage(str(error)) from error
            if converted:
                return converted
        return b""

    def _taken(self, data: bytes) -> bytes:
        """The bytes to send for `data`, limited to the remaining space, or bytes to fill it."""
        data = data[: self._left] if data else self._filling()
        self._left -= len(data)
        return data

    def _filling(self) -> bytes:
        """The next bytes that fill unused space, starting with the head of a message that is longer
        than the space."""
        count = min(self._left, PIECE_BYTES)
        if self._is_filling:
            return bytes(count)
        self._is_filling = True
        head = ENTRY_HEADER.pack(0, max(self._left, MIN_MESSAGE_BYTES))
        return head[:count].ljust(count, b"\0")


class DownConvertedBytes(bytes):
    """A small set, converted."""

    __slots__ = ()

    @property
    def size(self) -> int:
        return len(self)


DownConverted: TypeAlias = "DownConvertedBytes | LogSlice | ConvertedSet"


def converted_at_once(found: LogSlice, magic: int) -> DownConvertedBytes | LogSlice | None:
    """The whole messages of a slice in `magic`, up to a broken one; the slice itself if that
    changes nothing. None for compressed messages, but not for record batches that unpack to little;
    and if the first one is broken."""
    data = found.file.pread(found.size, found.position)
    if magic_of(data) == RECORDS_MAGIC:
        return _of_batches(data, magic, found.offset)
    output = kernel.new_buffer(len(data))
    try:
        done = kernel.convert(data, output, magic)
    except ValueError:
        return None
    if done.wrapper:
        return None
    return (
        found
        if done.written == done.read
        else DownConvertedBytes(memoryview(output)[: done.written])
    )


def _of_batches(data: bytes, magic: int, from_offset: int) -> DownConvertedBytes | None:
    """The messages of record batches, as `converted_at_once`; None also without a whole one."""
    converter = Converter(magic, SMALL_UNPACKED_BYTES, from_offset)
    try:
        converted = converter.convert(data)
    except ValueError:
        return None
    return None if converter.pending == len(data) else DownConvertedBytes(b"".join(converted))


class DownConvertedResponse:
    """The sets of one response, in `magic`: `convert` each, then `find_sizes`.

    sets    the index of a partition → its set
    errors  the index → InvalidMessage, if the first entry of its set cannot be converted
    lane    that of its client, for sets that take a thread (BrokerRuntime.run_in_turn)
    """

    def __init__(
        self, found: Mapping[int, LogSlice], runtime: BrokerRuntime, lane: str, magic: int
    ) -> None:
        self.sets: dict[int, Any] = dict(found)
        self.errors: dict[int, BaseException] = {}
        self._runtime = runtime
        self._lane = lane
        self._magic = magic
        self._room = KEPT_BYTES_MAX
        self._kept_bytes = 0
        self._of_unknown_size: list[tuple[int, ConvertedSet]] = []

    def convert(self, numbers: Iterable[int]) -> None:
        """Put the sets of these partitions, which are slices, in that magic."""
        for number in numbers:
            converted = self.sets[number] = self._converted(self.sets[number])
            if isinstance(converted, ConvertedSet) and not converted.is_size_known:
                self._of_unknown_size.append((number, converted))

    def _converted(self, found: LogSlice) -> DownConverted:
        """A slice in that magic: itself if it has nothing newer, or no whole message; a set whose
        size might not be known yet; or the bytes."""
        if not found.size:
            return found
        if found.size <= min(SMALL_BYTES, self._room):
            small = converted_at_once(found, self._magic)
            if small is not None:
                self._room -= small.size if isinstance(small, DownConvertedBytes) else 0
                return small
        contents = contents_of(found, self._magic)
        if contents.is_newer and contents.size:
            return ConvertedSet(found, contents, self._runtime, self._lane, self._magic)
        return found

    def find_sizes(self, done: Callable[[], object]) -> bool:
        """Compute the sizes that are not known yet. False: `done` is called in the hub later."""
        if not self._of_unknown_size:
            return True
        # One after the other: besides what is kept, memory holds one first part.
        number, converted = self._of_unknown_size.pop()

        def found(error: BaseException | None) -> None:
            self._found(number, converted, error)
            if self.find_sizes(done):
                done()

        converted.find_size(found)
        return False

    def _found(self, number: int, converted: ConvertedSet, error: BaseException | None) -> None:
        """Record the size of a set, or its error."""
        if error is not None:
            self.errors[number] = error
            del self.sets[number]
        elif self._kept_bytes + converted.kept_bytes > KEPT_BYTES_MAX:
            converted.forget()
        else:
            self._kept_bytes += converted.kept_bytes
