"""A group of KafkaConsumers in processes of their own, under random faults: one short history here,
longer ones by scripts/soak-group."""

from __future__ import annotations

import random
from pathlib import Path

from tests.histories.group_clusters import of_ours


def test_members_and_coordinators_that_fail_break_no_rule(tmp_path: Path) -> None:
    """Members join, leave, are killed, frozen and resumed; the coordinator is killed; connections
    are blocked and reset. Each member reads in order, no message is skipped, no commit goes back,
    and every message is processed."""
    with of_ours() as cluster:
        told, problems = cluster.history("history", tmp_path / "run", random.Random(1), 5.0)
    assert problems == [], told
