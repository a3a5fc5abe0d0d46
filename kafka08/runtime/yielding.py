"""Splits long work into batches, and yields to other greenlets between them.

yielding_batches(items, runtime)   batch after batch
yielding(items, runtime)           item after item, for work that needs no batches
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from kafka08.runtime import BrokerRuntime

T = TypeVar("T")

PARTITIONS_AT_ONCE: Final = 1000
"""A request for more partitions than this is handled in a greenlet, in batches."""

PARTITIONS_PER_BATCH: Final = 200
"""Partitions of one batch. They take a few ms, which the ZooKeeper session, clients and other
brokers may wait."""


def yielding_batches(
    items: Iterable[T], runtime: BrokerRuntime, size: int = PARTITIONS_PER_BATCH
) -> Iterator[Sequence[T]]:
    """The items in batches of `size`. Other greenlets run between two batches, so data from before
    may be out of date; they must not change `items`. Switches."""
    iterator = iter(items)
    batch = list(islice(iterator, size))
    while batch:
        yield batch
        batch = list(islice(iterator, size))
        if batch:
            runtime.sleep(0)


def yielding(items: Iterable[T], runtime: BrokerRuntime) -> Iterator[T]:
    """The items. Other greenlets run after each PARTITIONS_PER_BATCH of them. Switches."""
    for batch in yielding_batches(list(items), runtime):
        yield from batch


InTurns = Callable[[Iterable[Any]], Iterator[Any]]
"""`yielding` of a runtime, for code that does not know it; `iter` where nothing waits."""
