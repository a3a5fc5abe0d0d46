"""Producer snapshots: the .snapshot files of a partition, in version 1, which 0.11.0.3 reads. Pure.

    version:i16=1  crc:u32  count:i32  entries  [count:i32  batches]

CRC-32C of everything behind the crc. A file `N.snapshot` has the producers before offset N. The
batches, which 0.11.0.3 skips, are all that are recognized if they come again: where the entries,
each with the last batch of a producer, do not say as much. Source:
kafka.log.ProducerStateManager.writeSnapshot 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.kernel.types import Buffer
from kafka08.log.producers import KnownBatch, ProducerEntry, Producers

VERSION: Final = 1
HEADER: Final = Struct(">hIi")
ENTRY: Final = Struct(">qhiqiqiq")
COUNT: Final = Struct(">i")
BATCH: Final = Struct(">qiiqq")
CRC: Final = Struct(">I")
CRC_POSITION: Final = 2
CHECKED_FROM: Final = 6


def encode(
    entries: Iterable[ProducerEntry], batches: Iterable[tuple[int, KnownBatch]] | None = None
) -> bytes:
    packed = [ENTRY.pack(*entry) for entry in entries]
    data = bytearray(HEADER.pack(VERSION, 0, len(packed)) + b"".join(packed))
    if batches is not None:
        known = [BATCH.pack(producer_id, *batch) for producer_id, batch in batches]
        data += COUNT.pack(len(known)) + b"".join(known)
    CRC.pack_into(data, CRC_POSITION, kernel.crc32c(data[CHECKED_FROM:]))
    return bytes(data)


def decode(data: Buffer) -> tuple[list[ProducerEntry], list[tuple[int, KnownBatch]] | None]:
    """CorruptLog for another version, a wrong checksum, or counts that do not fit the size. The
    file is then deleted, and an older one used."""
    if len(data) < HEADER.size:
        raise CorruptLog(f"producer snapshot: only {len(data)} bytes")
    version, crc, count = HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptLog(f"producer snapshot: version {version}, not {VERSION}")
    if crc != kernel.crc32c(data[CHECKED_FROM:]):
        raise CorruptLog("producer snapshot: wrong checksum")
    end = HEADER.size + count * ENTRY.size
    if count < 0 or end > len(data):
        raise CorruptLog(f"producer snapshot: {len(data)} bytes for {count} producers")
    entries = [ProducerEntry(*fields) for fields in ENTRY.iter_unpack(data[HEADER.size : end])]
    rest = data[end:]
    if not rest:
        return entries, None
    if len(rest) < COUNT.size or len(rest) != COUNT.size + COUNT.unpack_from(rest)[0] * BATCH.size:
        raise CorruptLog(f"producer snapshot: {len(rest)} bytes behind {count} producers")
    return entries, [
        (producer_id, KnownBatch(*fields))
        for producer_id, *fields in BATCH.iter_unpack(rest[COUNT.size :])
    ]


def encode_producers(producers: Producers) -> bytes:
    return encode(producers.entries(), producers.known_batches())


def decode_producers(data: Buffer, now_ms: int) -> Producers:
    """CorruptLog as `decode`."""
    entries, batches = decode(data)
    return Producers.of_snapshot(entries, now_ms, batches)
