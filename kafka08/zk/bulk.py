"""Many writes as few transactions, each of which still fails by itself.

A request costs its sender more than the write in it costs ZooKeeper, so a hundred writes go as one
transaction. That is done all or not at all: the writes of one that was refused are carried out one
by one afterwards, so that a stale version of one partition does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafka08.errors import ZooKeeperError
from kafka08.zk.operations import Check, Delete, Multi, Refusal, Step, Write
from kafka08.zk.resender import Resender

MULTI_MAX: Final = 100
"""Writes of one transaction. Of 200 bytes each, they are done in a few milliseconds, which is how
long others wait for their turn."""
MULTI_CHARACTERS_MAX: Final = 256 * 1024
"""Data of one transaction, unless it is a single write's; ZooKeeper takes a megabyte."""
WINDOW: Final = 4
"""Outstanding transactions: one under way, the next ones there already."""


def write_all(
    resender: Resender,
    writes: Sequence[Write],
    condition: Check | None,
    multi_max: int = MULTI_MAX,
) -> list[Any]:
    """The result of each write, or the ZooKeeperError it met, in the order given. Writes of a
    refused transaction are done later, one by one.

    After a lost connection a write may meet what its own first attempt did (BadVersion,
    NodeExists): whoever gets such an error looks what stands there and decides anew.

    condition   must hold whenever something is written; its error is raised as soon as it did not,
                with nothing done from there on
    """
    first: tuple[Step, ...] = () if condition is None else (condition,)
    portions = list(_portions(writes, multi_max))
    multis = [Multi(first + portion) for portion in portions]
    outcomes = resender.run(multis, range(len(multis)), WINDOW)
    results: list[Any] = []
    for number, portion in enumerate(portions):
        outcome = outcomes[number]
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


def _portions(writes: Sequence[Write], count_max: int) -> Iterator[tuple[Write, ...]]:
    portion: list[Write] = []
    room = MULTI_CHARACTERS_MAX
    for write in writes:
        size = 0 if isinstance(write, Delete) else len(write.data or "")
        if portion and (len(portion) == count_max or size > room):
            yield tuple(portion)
            portion, room = [], MULTI_CHARACTERS_MAX
        portion.append(write)
        room -= size
    if portion:
        yield tuple(portion)
