"""When offsets in Kafka expire at brokers from 2.1 on."""

from __future__ import annotations

import pytest

from kafka08.doctor import findings_of
from kafka08.observe.commit_times import KafkaCommit
from tests.doctor.test_checks import HOUR, NOW, T0, cluster


@pytest.mark.parametrize(
    ("group", "committed_days", "left_days", "text"),
    [
        ("c", 30, 30, None),  # it has members
        ("idle", 5, None, None),
        ("idle", 6, None, "in 24.0 h"),
        ("idle", 30, 2, None),
        ("idle", 30, 6, "in 24.0 h"),
        ("idle", 30, 8, "at any moment"),
    ],
)
def test_brokers_from_2_1_on_keep_offsets_while_there_are_members(
    group: str, committed_days: int, left_days: int | None, text: str | None
) -> None:
    """And seven days after the last one left, or after the commit of who was none."""
    day = 24 * HOUR
    left_ms = None if left_days is None else NOW - left_days * day
    commit = KafkaCommit(NOW - committed_days * day, is_kept=True, left_ms=left_ms)
    found = [f.what for f in findings_of(cluster(commits={(group, T0): commit}))]
    assert found == ([f"its offset in Kafka expires {text}"] if text else [])
