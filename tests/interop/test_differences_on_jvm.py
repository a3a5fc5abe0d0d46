"""Our broker answers hand-made sequences of requests like that of the JVM of its level."""

from __future__ import annotations

from pathlib import Path

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
from tests.interop.differences.pair import Pair, pair_of
from tests.interop.differences.sequence import SEQUENCES, departs

MODULES = (of_wire, of_data, of_offsets, of_groups, of_topics, of_0_11, of_transactions)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("level", Level, ids=str)
def test_both_answer_alike(tmp_path: Path, level: Level) -> None:
    """The same requests get the same bytes, or a closed connection, from both brokers; those that
    depart, as docs/compatibility.md says, really do. Departures come last, since what they leave
    behind may differ. Each try has brokers of its own: it meets nothing of another one."""
    with pair_of(tmp_path, level) as pair:
        check_all(pair, level)


def check_all(pair: Pair, level: Level) -> None:
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
