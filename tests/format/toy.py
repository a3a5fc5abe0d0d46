"""A message format that no Kafka has, as one class and one row, and a log that stores it.

Run as a program on the Python kernel: `KAFKA08_KERNEL=python python -m tests.format.toy DIRECTORY`.
The compiled kernel has its own loops, so there a format is a branch of `_formats.pxi` besides.

    offset:i64 size:i32 zero:i32 magic:i8=9 zero:i8 crc:u32 count:u8, then count × (length:u8 value)
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct

from kafka08 import kernel
from kafka08.format import FORMATS, Batch, Message, RecordFormat, format_of
from kafka08.format.batch import Checksum, Compress
from kafka08.format.types import Buffer, CorruptMessage, Decompress
from kafka08.kernel.types import Rules
from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.dump import LogDump
from kafka08.log.log import Log
from kafka08.protocol import message_set
from kafka08.protocol.record_batches import prepare

HEAD = Struct(">qiiBBIB")
TOY = 9


class Toy(RecordFormat):
    magic = TOY
    head_bytes = HEAD.size
    crc_position = 18
    crc_start = 22

    def batch(self, view: memoryview, position: int) -> Batch:
        offset, size, _, magic, _, crc, count = HEAD.unpack_from(view, position)
        last = offset + count - 1
        return Batch(magic, position, size + 12, offset, last, 0, -1, -1, crc, count)

    def records(self, view: memoryview, batch: Batch, decompress: Decompress) -> Iterator[Message]:
        at = batch.position + self.head_bytes
        for offset in range(batch.base_offset, batch.last_offset + 1):
            end = at + 1 + view[at]
            if end > batch.end:
                raise CorruptMessage(batch.position, offset, "a value goes on behind its batch")
            yield Message(offset, None, view[at + 1 : end], -1, -1)
            at = end

    def build(
        self,
        messages: Iterable[Message],
        codec: int,
        compress: Compress,
        *,
        like: Batch | None = None,
        checksum: Checksum | None = None,
    ) -> bytes:
        kept = list(messages)
        values = [bytes(message.value or b"") for message in kept]
        checked = bytes([len(kept)]) + b"".join(bytes([len(value)]) + value for value in values)
        size = len(checked) + self.crc_start - 12
        head = HEAD.pack(kept[0].offset, size, 0, TOY, 0, zlib.crc32(checked), len(kept))
        return head[: self.crc_start] + checked

    def number(
        self,
        view: memoryview,
        batch: Batch,
        base_offset: int,
        leader_epoch: int,
        max_timestamp_ms: int,
        log_append_time: bool,
        *,
        checksum: Checksum | None = None,
    ) -> None:
        Struct(">q").pack_into(view, batch.position, base_offset)


def build(base_offset: int, values: list[bytes]) -> bytes:
    form = format_of(TOY)
    assert isinstance(form, RecordFormat)
    rows = (
        Message(offset, None, memoryview(value), -1, -1)
        for offset, value in enumerate(values, base_offset)
    )
    return form.build(rows, 0, no_codec)


def no_codec(codec: int, data: Buffer) -> Buffer:
    return data


def values_in(data: Buffer, offset: int) -> list[object]:
    return [message.value for message in kernel.messages(data, "t", 0, offset, message_set.unpack)]


def main(directory: Path) -> None:
    """Append, read, recover, truncate, check and dump batches of the toy format."""
    FORMATS[TOY] = Toy()
    config = LogConfig(index_interval_bytes=1)
    sets = [build(0, [b"a", b"b"]), build(2, [b"c3"]), build(3, [b"d", b"e", b"f"])]

    log = Log(directory, config)
    produced = bytearray(build(0, [b"a", b"b"]))
    log.append_prepared(prepare(produced, 0, 0, Rules(magic=TOY), 1000, 1000))
    for one in sets[1:]:
        log.append_as_follower(bytearray(one))
    assert log.log_end_offset == 6
    assert values_in(log.read(4, 1000).bytes(), 4) == [b"e", b"f"]
    log.close()
    assert not check_log(directory)

    (messages,) = directory.glob("*.log")
    for index in directory.glob("*.index"):
        index.unlink()
    with messages.open("ab") as file:
        file.write(build(6, [b"cut"])[:-1])
    log = Log(directory, config)  # recovers
    assert (log.log_end_offset, log.size) == (6, sum(map(len, sets)))
    assert values_in(log.read(1, 1000).bytes(), 1) == [b"b", b"c3", b"d", b"e", b"f"]
    log.truncate_to(3)
    assert log.log_end_offset == 3
    log.close()
    assert not check_log(directory)

    deep = LogDump(deep_iteration=True, print_data_log=True)
    rows = [row for row in deep.rows(messages) if not isinstance(row, str)]
    assert [row["payload"] for row in rows] == ["a", "b", "c3"], rows
    shallow = [row for row in LogDump().rows(messages) if not isinstance(row, str)]
    assert [(row["baseOffset"], row["lastOffset"]) for row in shallow] == [(0, 1), (2, 2)]


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "toys-0")
