"""Producer snapshots: the .snapshot files of a partition, in version 1, which 0.11.0.3 reads. Pure.

    version:i16=1  crc:u32  count:i32  entries

CRC-32C of everything behind the crc. A file `N.snapshot` has the producers before offset N. Source:
kafka.log.ProducerStateManager.writeSnapshot 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.kernel.types import Buffer
from kafka08.log.producers import ProducerEntry

VERSION: Final = 1
HEADER: Final = Struct(">hIi")
ENTRY: Final = Struct(">qhiqiqiq")
CRC: Final = Struct(">I")
CRC_POSITION: Final = 2
CHECKED_FROM: Final = 6


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [ENTRY.pack(*entry) for entry in entries]
    data = bytearray(HEADER.pack(VERSION, 0, len(packed)) + b"".join(packed))
    CRC.pack_into(data, CRC_POSITION, kernel.crc32c(data[CHECKED_FROM:]))
    return bytes(data)


def decode(data: Buffer) -> list[ProducerEntry]:
    """CorruptLog for another version, a wrong checksum, or a count that does not fit the size. The
    file is then deleted, and an older one used."""
    if len(data) < HEADER.size:
        raise CorruptLog(f"producer snapshot: only {len(data)} bytes")
    version, crc, count = HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptLog(f"producer snapshot: version {version}, not {VERSION}")
    if crc != kernel.crc32c(data[CHECKED_FROM:]):
        raise CorruptLog("producer snapshot: wrong checksum")
    if len(data) != HEADER.size + count * ENTRY.size:
        raise CorruptLog(f"producer snapshot: {len(data)} bytes for {count} producers")
    return [ProducerEntry(*fields) for fields in ENTRY.iter_unpack(data[HEADER.size :])]
