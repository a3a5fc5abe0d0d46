"""Groups with a coordinator in simulated clusters: members and brokers are killed, suspended and
cut off. Each member is handed only what it holds, the group every message, and it commits all."""

from __future__ import annotations

import pytest

from kafka08.consumer.group.partitions import Partitions
from kafka08.profile import SAFE
from kafka08.simulation.plan import draw_plan, with_coordinator
from kafka08.simulation.run import simulate
from kafka08.structs import TopicPartition


@pytest.mark.parametrize("level", ["0.9.0", "0.10.2"])
@pytest.mark.parametrize("seed", [2, 3, 8])
def test_the_group_reads_and_commits_everything(seed: int, level: str) -> None:
    """The group processes and commits every message, whatever happens to its members, brokers and
    network."""
    outcome = simulate(seed, plan=with_coordinator(draw_plan(seed, SAFE), level))
    assert outcome.verdict is None
    assert outcome.acknowledged > 0


def test_a_run_is_the_same_again() -> None:
    """Two runs of a seed have the same hash, threads of the consumers included."""
    digests = {
        simulate(8, plan=with_coordinator(draw_plan(8, SAFE), "0.10.2")).digest for _ in range(2)
    }
    assert len(digests) == 1


def test_a_planted_defect_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds a consumer that commits one message more than it has returned."""

    def too_far(self: Partitions) -> dict[TopicPartition, int]:
        return {tp: offset + 1 for tp, offset in positions(self).items()}

    positions = Partitions.positions
    monkeypatch.setattr(Partitions, "positions", too_far)
    outcome = simulate(2, plan=with_coordinator(draw_plan(2, SAFE), "0.10.2"))
    assert outcome.verdict is not None
    assert "commit" in outcome.verdict or "handed" in outcome.verdict
