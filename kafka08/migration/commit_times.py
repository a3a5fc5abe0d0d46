"""Facts of a group with the times of its commits, read from the offsets topic."""

from __future__ import annotations

from dataclasses import replace

from kafka08.admin.group_facts import GroupFacts
from kafka08.observe.commit_times import CommitTimes


def with_commit_times(facts: GroupFacts, times: CommitTimes) -> GroupFacts:
    """The facts with the commit times of offsets that Kafka will expire."""
    idle = [p.topic_partition for p in facts.partitions if p.is_idle]
    found = times.of(facts.group, idle)
    if not found:
        return facts
    known = {tp: value.committed.timestamp_ms for tp, value in found.items()}
    return replace(
        facts,
        partitions=tuple(
            replace(p, committed_ms=known.get(p.topic_partition)) for p in facts.partitions
        ),
    )
