"""The picture of a cluster that survives a kill."""

from __future__ import annotations

from pathlib import Path

from scripts.survival_picture import Run, drawn, spans

PICTURE = Path(__file__).parents[2] / "docs/images/survives.svg"
DOWN = ("down", "leads", "in sync")
RUN = Run(
    acked={0: 0.1, 1: 0.2, 2: 3.0},
    read=[(0.2, 0), (3.1, 2), (3.2, 2)],
    states=[(0.0, ("leads", "in sync", "in sync")), (2.1, DOWN), (2.2, DOWN)],
    killed=0,
)


def test_it_counts_what_was_lost_and_read_twice() -> None:
    """A message that was acknowledged and never read is lost."""
    assert RUN.verdict == "3 acknowledged, 1 lost, 1 read twice"
    assert RUN.verdict in drawn(RUN)


def test_a_state_lasts_until_the_next_one() -> None:
    """The last one until the end of the picture."""
    lane = [(at, states[0]) for at, states in RUN.states]
    assert spans(lane) == [("leads", 0.0, 2.1), ("down", 2.1, 8.0)]


def test_readmes_picture_is_of_a_run_without_loss() -> None:
    """As the script wrote it."""
    picture = PICTURE.read_text()
    assert "python -m scripts.survival_picture" in picture
    assert " acknowledged, 0 lost, 0 read twice" in picture
