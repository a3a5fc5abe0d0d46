"""How ranges become tasks, and how a limit is shared among partitions. Pure.

The numbers are those of Spark's own connector for the same input (KafkaOffsetRangeCalculator and
KafkaMicroBatchStream of Spark 4), so a job moved here is cut as before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from kafka08.arrow.ranges import OffsetRange
from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition

TASKS_MAX: Final = 1_000_000


def split(
    ranges: Sequence[OffsetRange],
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
) -> list[OffsetRange]:
    """One range per task, in order; empty ranges are dropped.

    First, ranges of more than `max_records_per_partition` offsets are cut into as few parts as
    possible. Then, if there are fewer than `min_partitions`, large ranges are cut in proportion to
    their size. ConfigError for more than TASKS_MAX tasks: a mistyped option, or a broker with an
    absurd log end, must not fill the driver's memory.
    """
    pieces = [of_partition for of_partition in ranges if of_partition.size]
    _check_count(pieces, min_partitions, max_records_per_partition)
    if max_records_per_partition is not None:
        pieces = [
            part
            for piece in pieces
            for part in cut(piece, math.ceil(piece.size / max_records_per_partition))
        ]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    total = sum(piece.size for piece in pieces)
    whole = [_share(piece.size, total, min_partitions) == 1 for piece in pieces]
    total -= sum(piece.size for piece, kept in zip(pieces, whole, strict=True) if kept)
    parts = max(min_partitions - sum(whole), 1)
    return [
        part
        for piece, kept in zip(pieces, whole, strict=True)
        for part in ([piece] if kept else cut(piece, _share(piece.size, total, parts)))
    ]


def _check_count(
    pieces: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> None:
    size = sum(piece.size for piece in pieces)
    wanted = min(min_partitions or 1, size)
    if max_records is not None:
        wanted = max(wanted, sum(math.ceil(piece.size / max_records) for piece in pieces))
    if wanted > TASKS_MAX:
        raise ConfigError(
            f"{size} offsets would become {wanted} tasks, the most is {TASKS_MAX}: check "
            f"minPartitions ({min_partitions}), maxRecordsPerPartition ({max_records}) and the "
            "offsets"
        )


def cut(piece: OffsetRange, parts: int) -> list[OffsetRange]:
    """`piece` in `parts` parts, each of them remaining // (parts left) long; empty ones dropped."""
    cuts = []
    start = piece.from_offset
    for left in range(min(parts, piece.size), 0, -1):
        until = start + (piece.until_offset - start) // left
        cuts.append(piece._replace(from_offset=start, until_offset=until))
        start = until
    return [part for part in cuts if part.size]


def split_by_bytes(
    densities: Mapping[OffsetRange, Sequence[float]],
    ranges: Sequence[OffsetRange],
    min_partitions: int,
    max_records_per_partition: int | None = None,
) -> list[OffsetRange]:
    """`ranges` in parts of about the same number of bytes, in order; empty ranges are dropped.

    densities   for each range the bytes per offset in its consecutive parts of equal length
    Each range gets a share of `min_partitions` in proportion to its bytes, at least one; then parts
    of more than `max_records_per_partition` offsets are cut. ConfigError as in `split`.
    """
    pieces = [of_range for of_range in ranges if of_range.size]
    _check_count(pieces, min_partitions, max_records_per_partition)
    total = sum(_bytes(piece, densities[piece]) for piece in pieces)
    parts = [
        part
        for piece in pieces
        for part in cut_by_bytes(
            piece,
            densities[piece],
            _share(_bytes(piece, densities[piece]), total, min_partitions) if total else 1,
        )
    ]
    return split(parts, None, max_records_per_partition)


def cut_by_bytes(piece: OffsetRange, densities: Sequence[float], parts: int) -> list[OffsetRange]:
    """`piece` in up to `parts` parts of the same number of bytes; empty ones are dropped."""
    length = piece.size / len(densities)
    total = sum(densities)
    cuts = [piece.from_offset]
    for part in range(1, parts):
        left = total * part / parts
        for number, density in enumerate(densities):
            if left <= density:
                at = (number + (left / density if density else 0)) * length
                cuts.append(piece.from_offset + round(at))
                break
            left -= density
    cuts.append(piece.until_offset)
    return [
        piece._replace(from_offset=start, until_offset=until)
        for start, until in pairwise(cuts)
        if start < until
    ]


def _bytes(piece: OffsetRange, densities: Sequence[float]) -> float:
    return piece.size * sum(densities) / len(densities)


def rate_limit(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """Returns the end of a batch of about `limit` offsets: each partition gets a share of the limit
    in proportion to its new offsets, rounded down, but up if below one."""
    new = {tp: max(0, end - start.get(tp, end)) for tp, end in latest.items()}
    total = sum(new.values())
    ends = {}
    for tp, end in latest.items():
        begin = start.get(tp, end)
        share = limit * (new[tp] / total) if total else 0.0
        offset = begin + (math.ceil(share) if share < 1 else math.floor(share))
        ends[tp] = min(offset, end) if new[tp] else begin
    return ends


def _share(size: float, total: float, parts: int) -> int:
    """The share of `parts` for `size` of `total`, at least 1; halves are rounded up as in Java."""
    return max(1, math.floor(size / total * parts + 0.5))
