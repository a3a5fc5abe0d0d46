"""Many writes as few transactions, each of which still fails by itself.

A request costs kazoo more than the write in it costs ZooKeeper, so a hundred writes go as one
transaction. That is done all or not at all: the writes of one that was refused are carried out one
by one afterwards, so that a stale version of one partition does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafka08.errors import ZooKeeperError
from kafka08.zk.operations import Check, Delete, Refusal, Together, Write
from kafka08.zk.resender import Resender

TOGETHER_MAX: Final = 100
"""Writes of one transaction. Of 200 bytes each, they are done in a few milliseconds, which is how
long others wait for their turn."""
TOGETHER_CHARACTERS_MAX: Final = 256 * 1024
"""Data of one transaction, unless it is a single write's; ZooKeeper takes a megabyte."""
WINDOW: Final = 4
"""Outstanding transactions: one under way, the next ones there already."""


def write_all(
    resender: Resender,
    writes: Sequence[Write],
    condition: Check | None,
    together: int = TOGETHER_MAX,
) -> list[Any]:
    """The result of each write, or the ZooKeeperError it met, in the order given. Writes of a
    refused transaction are done later, one by one.

    After a lost connection a write may meet what its own first attempt did (BadVersion,
    NodeExists): whoever gets such an error looks what stands there and decides anew.

    condition   must hold whenever something is written; its error is raised as soon as it did not,
                with nothing done from there on
    """
    wanted = [Together(portion, condition) for portion in _portions(writes, together)]
    outcomes = resender.run(wanted, range(len(wanted)), WINDOW)
    results: list[Any] = []
    for number, transaction in enumerate(wanted):
        outcome = outcomes[number]
        if isinstance(outcome, Refusal) and outcome.of_condition:
            raise outcome.error
        if isinstance(outcome, Refusal) and len(transaction.writes) > 1:
            results += write_all(resender, transaction.writes, condition, together=1)
        elif isinstance(outcome, Refusal):
            results.append(outcome.error)
        elif isinstance(outcome, ZooKeeperError):
            results += [outcome] * len(transaction.writes)
        else:
            results += outcome
    return results


def _portions(writes: Sequence[Write], count_max: int) -> Iterator[tuple[Write, ...]]:
    portion: list[Write] = []
    room = TOGETHER_CHARACTERS_MAX
    for write in writes:
        size = 0 if isinstance(write, Delete) else len(write.data or "")
        if portion and (len(portion) == count_max or size > room):
            yield tuple(portion)
            portion, room = [], TOGETHER_CHARACTERS_MAX
        portion.append(write)
        room -= size
    if portion:
        yield tuple(portion)
