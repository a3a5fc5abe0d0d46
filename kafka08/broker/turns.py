"""Splits long work into turns, so that other greenlets run between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from kafka08.runtime import BrokerRuntime

T = TypeVar("T")

PARTITIONS_AT_ONCE: Final = 1000
"""A request for more partitions than this is handled in a greenlet, in turns."""

PER_TURN: Final = 200
"""Partitions handled between two pauses: a few ms, for which the ZooKeeper session, clients and
other brokers may wait."""


def in_turns(
    items: Sequence[T], runtime: BrokerRuntime, size: int = PER_TURN
) -> Iterator[Sequence[T]]:
    """The items in pieces of `size`. Other tasks run between two of them: data read before may be
    out of date. Switches."""
    for start in range(0, len(items), size):
        if start:
            runtime.sleep(0)
        yield items[start : start + size]


def in_turns_if_many(items: Sequence[T], runtime: BrokerRuntime) -> Iterator[Sequence[T]]:
    """`in_turns` for more than PARTITIONS_AT_ONCE items; fewer are one piece. Then it never
    switches, so requests for fewer partitions need no greenlet."""
    size = PER_TURN if len(items) > PARTITIONS_AT_ONCE else PARTITIONS_AT_ONCE
    return in_turns(items, runtime, size)
