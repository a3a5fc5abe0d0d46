"""About how many bytes ranges have: measured at a few places, to split work evenly.

Brokers of 0.8 to 0.10 serve messages, but no sizes. So a small fetch reads the middle of each third
of a range.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kafka08 import kernel
from kafka08.arrow.ranges import OffsetRange
from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import fetch_request, fetch_results, fetch_version
from kafka08.config import INT_MAX
from kafka08.errors import KafkaError
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.network.connection import Connection
from kafka08.protocol.fetch import MAGIC_1_VERSION, FetchResponse
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

PLACES: Final = 3
"""Number of places at which a range is measured."""
SAMPLE_BYTES: Final = 16 << 10
RANGES_MAX: Final = 1000
"""Number of the largest ranges that are measured, with at most 48 MB of fetches. The others count
as the mean."""
PARTITIONS_A_ROUND: Final = 200
"""Partitions of one Fetch request, at most."""


def densities(
    cluster: ClusterClient, ranges: Iterable[OffsetRange]
) -> dict[OffsetRange, tuple[float, ...]]:
    """Range → bytes of an offset, compressed as in the log, in each of its thirds. A place that
    cannot be measured has the mean of the others. Never fails: it only shares work out."""
    measured = sorted({r for r in ranges if r.size}, key=lambda r: -r.size)[:RANGES_MAX]
    places = {
        (of_range, place): of_range.from_offset + of_range.size * (2 * place + 1) // (2 * PLACES)
        for of_range in measured
        for place in range(PLACES)
    }
    found: dict[tuple[OffsetRange, int], float] = {}
    for round_ in _rounds(list(places)):
        wanted = {item[0].topic_partition: places[item] for item in round_}
        try:
            samples = _sample(cluster, wanted)
        except KafkaError as error:
            logger.info("%d partitions could not be measured: %s", len(wanted), error)
            continue
        found |= {
            item: bytes_an_offset
            for item in round_
            if (bytes_an_offset := samples[item[0].topic_partition]) is not None
        }
    mean = sum(found.values()) / len(found) if found else 1.0
    return {
        of_range: tuple(found.get((of_range, place), mean) for place in range(PLACES))
        for of_range in ranges
    }


def _rounds(
    items: Sequence[tuple[OffsetRange, int]],
) -> Iterator[list[tuple[OffsetRange, int]]]:
    """The items in parts in which no partition comes twice, of at most PARTITIONS_A_ROUND."""
    left = list(items)
    while left:
        taken: dict[TopicPartition, tuple[OffsetRange, int]] = {}
        later = []
        for item in left:
            tp = item[0].topic_partition
            if tp in taken or len(taken) == PARTITIONS_A_ROUND:
                later.append(item)
            else:
                taken[tp] = item
        yield list(taken.values())
        left = later


def _sample(
    cluster: ClusterClient, wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float | None]:
    """Bytes of an offset of each partition at this offset; None for one that its leader refuses,
    and at the last entry of a log."""
    samples = _fetch(cluster, wanted, SAMPLE_BYTES)
    found = {tp: density(data) for tp, data in samples.items()}
    heads = {
        tp: head for tp, data in samples.items() if found[tp] is None and (head := _head(data))
    }
    # An entry larger than the sample may be a wrapper that begins in front of the offset: the one
    # behind it begins right behind its last message, and its head says where it ends.
    behind = {tp: last + 1 for tp, (last, _) in heads.items()}
    following = _fetch(cluster, behind, ENTRY_HEADER.size) if behind else {}
    for tp, (last, _) in heads.items():
        next_last, next_size = _head(following[tp]) or (last, 0)
        found[tp] = next_size / (next_last - last) if next_last > last else None
    return found


def _fetch(
    cluster: ClusterClient, wanted: Mapping[TopicPartition, int], max_bytes: int
) -> dict[TopicPartition, Buffer]:
    """Returns the messages of each partition from this offset on; none if its leader refuses."""

    def ask(
        connection: Connection, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Buffer]:
        positions = {tp: (offset, max_bytes) for tp, offset in offsets.items()}
        request = fetch_request(positions, max_wait_ms=0, min_bytes=0)
        # Of a lower one the broker would convert what it sends.
        request.version = fetch_version(connection.versions, MAGIC_1_VERSION)
        response = connection.send(request)
        assert isinstance(response, FetchResponse)
        return {
            tp: b"" if result.error_code else result.message_set
            for tp, result in fetch_results(response).items()
        }

    return cluster.ask_leaders(wanted, ask)


def density(data: Buffer) -> float | None:
    """Bytes of an offset in a fetched set, of which the last entry may be cut; None if it has the
    heads of fewer than two, or is damaged.

    The first entry only says where the others begin: it may be a wrapper that begins in front of
    what was asked for. Offsets that compaction has removed count as those that are there.
    """
    try:
        summary = kernel.validate(data, INT_MAX)
    except (kernel.CorruptMessage, kernel.UnknownCodec):
        return None
    if not summary.count:
        return None
    size, last = summary.size, summary.last_offset
    if (cut := _head(memoryview(data)[size:])) is not None:
        last, size = max(last, cut[0]), size + cut[1]
    if last <= summary.first_offset:
        return None
    return (size - next(kernel.entries(data)).entry_size) / (last - summary.first_offset)


def _head(data: Buffer) -> tuple[int, int] | None:
    """(offset, bytes) of the first entry, also of one that is cut; None without its header."""
    if len(data) < ENTRY_HEADER.size:
        return None
    offset, size = ENTRY_HEADER.unpack_from(data)
    return offset, ENTRY_HEADER.size + max(size, 0)
