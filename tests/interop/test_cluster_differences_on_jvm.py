"""Our clusters answer hand-made sequences of requests like those of the JVM of their level."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka08.levels import Level
from tests.interop.differences import of_controllers, of_replicas
from tests.interop.differences.cluster_pair import ClusterPair, cluster_pair_of
from tests.interop.differences.pair import one_at_a_time
from tests.interop.differences.sequence import CLUSTER_SEQUENCES, departs

MODULES = (of_replicas, of_controllers)
CASES = [
    (level, one.name)
    for level in Level
    for one in sorted(CLUSTER_SEQUENCES.values(), key=lambda one: (one.stage, departs(one, level)))
    if level in one.levels
]
"""Stage by stage. Departures come last, since what they leave behind may differ."""


@pytest.fixture(scope="module")
def pair_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Level], ClusterPair]]:
    """The pair of a level."""
    with one_at_a_time(lambda: tmp_path_factory.mktemp("clusters"), cluster_pair_of) as find:
        yield find


@pytest.mark.parametrize(("level", "name"), CASES, ids=str)
def test_both_answer_alike(
    pair_at: Callable[[Level], ClusterPair], level: Level, name: str
) -> None:
    """The same requests get the same bytes, or a closed connection, from both clusters; those that
    depart, as docs/compatibility.md says, really do."""
    sequence = CLUSTER_SEQUENCES[name]
    theirs, ours = pair_at(level).run(sequence)
    if departs(sequence, level):
        assert theirs != ours, "no longer a departure"
    else:
        assert theirs == ours
