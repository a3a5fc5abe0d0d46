"""ConvertedSet: a slice of a log in magic 0 for an old consumer, converted while it is sent.

The size of a set precedes it, so it must be known before the first byte is sent:

    plain messages   each one of magic 1 becomes 8 bytes shorter; nothing else changes
    compressed ones  their size is known only after recompression. The set gets the size that it has
                     in the log, or that of its first part, if that is larger. A message beyond that
                     is cut off; unused space is filled with the head of a message, which is cut off

Consumers expect a cut-off last message, and fetch it again. So memory holds at most a piece, the
entry that it cuts off, and the content of one compressed message. A partial message at the end is
left out; if no message is whole nothing is converted, so that a consumer sees the size and fetches
more. Source: KafkaApis.handleFetchRequest 0.10.2.2, which converts a whole response in memory;
LazyDownConversionRecords 2.0 also fills unused space.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka08 import kernel
from kafka08.broker.append_queue import NATIVE_MIN_BYTES
from kafka08.errors import InvalidMessage, UnknownError, code_of
from kafka08.kernel.types import (
    ENTRY_HEADER,
    MAGIC_POSITION,
    MIN_MESSAGE_BYTES,
    TIMESTAMP_BYTES,
)
from kafka08.network.server_connection import Made, MadeBytes
from kafka08.protocol.conversion import Converter
from kafka08.protocol.fetch import NO_HIGH_WATERMARK, PartitionData
from kafka08.protocol.message_set import NO_LIMIT

if TYPE_CHECKING:
    from kafka08.log.slices import LogSlice
    from kafka08.runtime import BrokerRuntime
    from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

PIECE_BYTES: Final = 256 << 10
"""The most bytes that are read and converted at once."""
KEPT_BYTES_MAX: Final = 4 << 20
"""The most bytes of converted first parts that one response keeps until they are sent. The others
are converted again: only their sizes were needed."""
OLD_MAGIC: Final = 0


class Contents(NamedTuple):
    """The content of a slice.

    size       bytes of its whole entries
    is_newer   whether any of them has a magic above 0
    converted  their size as magic 0; None: unknown without converting them
    """

    size: int
    is_newer: bool
    converted: int | None


EMPTY: Final = Contents(0, False, 0)


def contents_of(found: LogSlice) -> Contents:
    """Check every entry. Stops at a broken one, which the conversion reports."""
    position, piece_bytes = 0, PIECE_BYTES
    is_newer, converted = False, 0
    is_known = True
    while position < found.size:
        data = found.file.pread(min(piece_bytes, found.size - position), found.position + position)
        try:
            summary = kernel.validate(data, NO_LIMIT)
        except ValueError:
            return Contents(found.size, is_newer or data[MAGIC_POSITION] > OLD_MAGIC, None)
        if not summary.size:
            if position + len(data) >= found.size or len(data) < piece_bytes:
                break
            piece_bytes *= 2
            continue
        position += summary.size
        is_old = summary.magics == 1 << OLD_MAGIC
        is_newer |= not is_old
        is_known &= not summary.codec and (is_old or not summary.magics & 1 << OLD_MAGIC)
        converted += summary.size - (0 if is_old else TIMESTAMP_BYTES * summary.count)
    return Contents(position, is_newer, converted if is_known else None)


class ConvertedSet(MadeBytes):
    """`size` bytes of magic 0 in place of a slice whose `contents` are newer."""

    __slots__ = ("_contents", "_converter", "_first", "_in_thread", "_is_filling", "_left",
                 "_position", "_runtime", "_slice")  # fmt: skip

    def __init__(self, found: LogSlice, contents: Contents, runtime: BrokerRuntime) -> None:
        self._slice = found
        self._contents = contents
        self._runtime = runtime
        self._in_thread = contents.converted is None and contents.size >= NATIVE_MIN_BYTES
        self._left = contents.converted if contents.converted is not None else contents.size
        self._start()

    def _start(self) -> None:
        self._converter = Converter(OLD_MAGIC)
        self._position = 0
        self._first: bytes | None = None
        self._is_filling = False

    @property
    def size(self) -> int:
        return self._left

    def find_size(self, done: Callable[[BaseException | None], object]) -> bool:
        """Compute `size` where the contents do not have it. False: `done` is called in the hub
        later, with None or with the error. InvalidMessage if the first entry cannot be
        converted."""
        if not self._in_thread:
            self._keep(self._convert())
            return True

        def converted(data: bytes | None, error: BaseException | None) -> None:
            if data is not None:
                self._keep(data)
            done(error)

        self._runtime.run_native_later(converted, self._convert)
        return False

    def _keep(self, first: bytes) -> None:
        self._first = first
        self._left = max(self._left, len(first))

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
        if not self._in_thread:
            return self._taken(self._convert_rest())

        def converted(data: bytes | None, error: BaseException | None) -> None:
            done(None if data is None else self._taken(data), error)

        self._runtime.run_native_later(converted, self._convert_rest)
        return None

    def _convert_rest(self) -> bytes:
        """As `_convert`; empty after an entry that cannot be converted."""
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


class OldSets:
    """The sets of one response, in magic 0: slices that have it already, and ConvertedSets.

    sets   partition → its set. If the first entry of a set cannot be converted the partition gets
           error 2
    """

    def __init__(
        self,
        reads: Mapping[TopicPartition, PartitionData[LogSlice]],
        runtime: BrokerRuntime,
    ) -> None:
        self.sets: dict[TopicPartition, PartitionData[Any]] = dict(reads)
        self._kept_bytes = 0
        self._of_unknown_size: list[tuple[TopicPartition, ConvertedSet]] = []
        for tp, data in reads.items():
            found = data.message_set
            contents = EMPTY if found is None else contents_of(found)
            if found is not None and contents.is_newer and contents.size:
                converted = ConvertedSet(found, contents, runtime)
                self.sets[tp] = PartitionData(*data[:3], converted)
                if contents.converted is None:
                    self._of_unknown_size.append((tp, converted))

    def find_sizes(self, done: Callable[[], object]) -> bool:
        """Compute the size of every set. False: `done` is called in the hub later."""

        def found(error: BaseException | None) -> None:
            self._found(error)
            if self.find_sizes(done):
                done()

        while self._of_unknown_size:
            _, converted = self._of_unknown_size[-1]
            try:
                if not converted.find_size(found):
                    return False
            except InvalidMessage as error:
                self._found(error)
            else:
                self._found(None)
        return True

    def _found(self, error: BaseException | None) -> None:
        """The size of the last set is known, or its error."""
        tp, converted = self._of_unknown_size.pop()
        if error is not None:
            logger.error("Cannot convert %s for a consumer of magic 0: %s", tp, error)
            code = code_of(error) if isinstance(error, Exception) else UnknownError.code
            self.sets[tp] = PartitionData(tp.partition, code, NO_HIGH_WATERMARK, None)
        elif self._kept_bytes + converted.kept_bytes > KEPT_BYTES_MAX:
            converted.forget()
        else:
            self._kept_bytes += converted.kept_bytes
