"""Content of a Fetch request, and how partitions share a response that has no limit of its own."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.structs import TopicPartition

REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
"""The limit of one response, except of one that is for a single partition."""
IDLE_BYTES_MIN: Final = 1024
"""The least that is requested of a partition; those for which it is too much are in the next
request."""


class Asked(NamedTuple):
    """A request for one partition: at most `size` bytes from `offset` on."""

    partition: OwnedPartition
    offset: int
    size: int


Positions = dict[TopicPartition, Asked]
"""The content of a request."""
Wanted = list[tuple[OwnedPartition, int]]
"""Partitions with the offset of their next fetch."""


class Repeatable(NamedTuple):
    """A request that would be the same for the same positions, while none has messages."""

    version: int
    wanted: Wanted
    chosen: Positions


class Shares(NamedTuple):
    """A request for partitions that are too many for the whole size of each.

    last           those that the next request is to name last
    is_repeatable  it would be the same without messages
    """

    chosen: Positions
    last: Positions
    is_repeatable: bool


def shares_of(wanted: Wanted, *, is_limited: bool) -> Shares:
    """A request for at least one partition. If a response for all could be too large, and is not
    limited as a whole, those whose last one was empty get half of it, in equal parts, and the
    others the rest in turn: with requests for some partitions alone, the others would wait for each
    response of idle ones."""
    if is_limited or sum([partition.fetch_bytes for partition, _ in wanted]) <= REQUEST_BYTES_MAX:
        chosen = {p.topic_partition: Asked(p, at, p.fetch_bytes) for p, at in wanted}
        return Shares(chosen, {}, is_repeatable=True)
    most = max(1, REQUEST_BYTES_MAX // 2 // IDLE_BYTES_MIN)
    is_whole = len(wanted) <= most
    wanted = wanted[:most]
    least = REQUEST_BYTES_MAX // 2 // len(wanted)
    left = REQUEST_BYTES_MAX - least * len(wanted)
    chosen = {}
    in_full: Positions = {}
    is_fair = True
    for partition, offset in wanted:
        tp = partition.topic_partition
        more = max(0, partition.fetch_bytes - least)
        chosen[tp] = Asked(partition, offset, min(least, partition.fetch_bytes))
        if not partition.may_have_more or not more:
            continue
        if more <= left:
            left -= more
            chosen[tp] = in_full[tp] = Asked(partition, offset, partition.fetch_bytes)
        elif not in_full and partition.fetch_bytes > REQUEST_BYTES_MAX // 2:
            # A message of that size: it gets a request of its own.
            chosen = in_full = {tp: Asked(partition, offset, partition.fetch_bytes)}
            is_fair = False
            break
        else:
            is_fair = False
    if not is_whole or not is_fair:
        return Shares(chosen, in_full if is_whole else chosen, is_repeatable=False)
    return Shares(chosen, {}, is_repeatable=not in_full)
