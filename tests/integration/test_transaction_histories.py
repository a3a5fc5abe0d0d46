"""Transactions of processes under random faults: one short history here, longer ones by
scripts/soak-transactions."""

from __future__ import annotations

import random
from pathlib import Path

from tests.histories.transaction_run import run_once, transaction_cluster


def test_brokers_and_producers_that_fail_break_no_rule(tmp_path: Path) -> None:
    """Brokers are killed, frozen, cut off, full or slow; producers are killed, replaced and frozen.
    What is committed is read whole, once and in order, with its offsets; nothing else is."""
    with transaction_cluster() as cluster:
        summary, problems = run_once(cluster, "history", tmp_path / "run", random.Random(1), 20.0)
    assert problems == [], summary
