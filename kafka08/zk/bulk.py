"""Many writes in few transactions; each write still succeeds or fails alone.

A request costs its sender more than the write in it costs ZooKeeper, so a hundred writes go as one
transaction. If ZooKeeper refuses a transaction, its writes are repeated one by one, so that a stale
version of one partition does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kafka08.errors import ZooKeeperError
from kafka08.zk.operations import Check, Create, Delete, Multi, Operation, Refusal, Step, Write
from kafka08.zk.resender import Resender

MULTI_MAX: Final = 100
"""Writes of one transaction. At 200 bytes each they take a few milliseconds, during which other
clients wait."""
WHOLE_MAX: Final = 1000
"""Writes of one transaction whose writes are of use together only."""
MULTI_CHARACTERS_MAX: Final = 256 * 1024
"""Most characters of paths and data in a transaction of several writes; ZooKeeper accepts a
megabyte."""
WINDOW: Final = 4
"""Outstanding transactions: ZooKeeper has the next ones while it works on the first."""


def write_all(
    resender: Resender,
    writes: Sequence[Write],
    condition: Check | None,
    multi_max: int = MULTI_MAX,
    parents: Sequence[Create] = (),
) -> list[Any]:
    """The result of each write, or the ZooKeeperError it met, in the order given. Writes of a
    refused transaction are done later, one by one.

    After a lost connection a write may meet what its own first attempt did (BadVersion,
    NodeExists): after such an error, read the znode and decide again.

    condition   must hold at every write; its error is raised at the first transaction that finds
                it broken, and nothing is written after that
    parents     sent first, without waiting for their replies: whatever those are, a write whose
                parent is missing fails with NoNode
    """
    first: tuple[Step, ...] = () if condition is None else (condition,)
    together = list(portions(writes, multi_max))
    multis = [Multi(first + portion) for portion in together]
    sent: list[Operation] = [*parents, *multis]
    outcomes = resender.run(sent, range(len(sent)), WINDOW + len(parents))
    results: list[Any] = []
    for number, portion in enumerate(together):
        outcome = outcomes[len(parents) + number]
        if isinstance(outcome, Refusal) and outcome.step_index < len(first):
            raise outcome.error
        if isinstance(outcome, Refusal) and len(portion) > 1:
            results += write_all(resender, portion, condition, multi_max=1)
        elif isinstance(outcome, Refusal):
            results.append(outcome.error)
        elif isinstance(outcome, ZooKeeperError):
            results += [outcome] * len(portion)
        else:
            results += outcome[len(first) :]
    return results


def portions(writes: Iterable[Write], count_max: int = WHOLE_MAX) -> Iterator[tuple[Write, ...]]:
    """The writes in their order, as many at a time as may be one transaction."""
    portion: list[Write] = []
    room = MULTI_CHARACTERS_MAX
    for write in writes:
        size = len(write.path)
        if not isinstance(write, Delete):
            size += len(write.data or "")
        if portion and (len(portion) == count_max or size > room):
            yield tuple(portion)
            portion, room = [], MULTI_CHARACTERS_MAX
        portion.append(write)
        room -= size
    if portion:
        yield tuple(portion)
