"""AbortedTransaction: one entry of a segment's .txnindex, and the search in them. Pure.

    version:i16=0  producer_id:i64  first_offset:i64  last_offset:i64  last_stable_offset:i64

An entry is in the index of the segment that has the transaction's marker, at `last_offset`; so last
offsets ascend. `last_stable_offset` is the smallest first offset of a transaction that was open
behind the marker, else the marker's offset + 1: no entry of a later segment can have messages below
it. Source: kafka.log.TransactionIndex 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from kafka08.kernel.types import Buffer

VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def encode(self) -> bytes:
        return ENTRY.pack(VERSION, *self)


def decode(data: Buffer) -> list[AbortedTransaction]:
    """The entries up to the first that cannot be one: a cut, of another version, with offsets that
    are not in order, or behind a later marker."""
    found: list[AbortedTransaction] = []
    for position in range(0, len(data) - ENTRY.size + 1, ENTRY.size):
        version, *fields = ENTRY.unpack_from(data, position)
        entry = AbortedTransaction(*fields)
        is_ordered = 0 <= entry.first_offset <= entry.last_offset
        if version != VERSION or entry.producer_id < 0 or not is_ordered:
            break
        if found and entry.last_offset <= found[-1].last_offset:
            break
        found.append(entry)
    return found


def overlapping(
    segments: Iterable[Iterable[AbortedTransaction]], fetch_offset: int, upper_bound: int
) -> list[AbortedTransaction]:
    """The aborted transactions with messages from `fetch_offset` up to `upper_bound`, in the order
    of their markers. `segments`: the indexes of the segment that has `fetch_offset`, and of all
    later ones; they are read until no later one can have another."""
    found = []
    for entries in segments:
        for entry in entries:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found
    return found
