"""Our broker answers hand-made sequences of requests like that of the JVM of its level."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka08.levels import Level
from tests.in_turn import check_each
from tests.interop.differences import (
    of_0_11,
    of_data,
    of_groups,
    of_offsets,
    of_topics,
    of_transactions,
    of_wire,
)
from tests.interop.differences.pair import Pair, one_at_a_time, pair_of
from tests.interop.differences.sequence import SEQUENCES, Sequence
from tests.interop.differences.talk import Talk

MODULES = (of_wire, of_data, of_offsets, of_groups, of_topics, of_0_11, of_transactions)


def departs(sequence: Sequence[Talk], level: Level) -> bool:
    """Whether ours differs on purpose; what does at 0.10.2 does at 0.11.0, too."""
    if level is not Level.V0_11_0:
        return level in sequence.departs
    return Level.V0_10_2 in sequence.departs


@pytest.fixture(scope="module")
def pair_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Level], Pair]]:
    """The pair of a level."""
    with one_at_a_time(lambda: tmp_path_factory.mktemp("pair"), pair_of) as find:
        yield find


@pytest.mark.timeout(900)
@pytest.mark.parametrize("level", Level, ids=str)
def test_both_answer_alike(pair_at: Callable[[Level], Pair], level: Level) -> None:
    """The same requests get the same bytes, or a closed connection, from both brokers; those that
    depart, as docs/compatibility.md says, really do. Departures come last, since what they leave
    behind may differ."""
    pair = pair_at(level)

    def check(name: str) -> None:
        sequence = SEQUENCES[name]
        theirs, ours = pair.run(sequence)
        if departs(sequence, level):
            assert theirs != ours, "no longer a departure"
        else:
            assert theirs == ours

    at_level = [one for one in SEQUENCES.values() if level in one.levels]
    in_order = sorted(at_level, key=lambda one: departs(one, level))
    check_each(check, [(one.name,) for one in in_order])
