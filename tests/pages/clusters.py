"""Views of clusters, for pages."""

from __future__ import annotations

from kafka08.doctor import Finding, Severity
from kafka08.exporter.histories import Histories
from kafka08.exporter.summary import summary_of
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, PartitionState
from kafka08.pages import Overview, Trends
from kafka08.structs import Broker, TopicPartition

NOW = 1_700_000_000_000
HOSTILE = """</script><script>document.title = "owned"</script><img src=x onerror="owned()">"""
"""Text that could be a group's name, or in a message."""
BROKERS = {n: Broker(n, f"kafka{n}", 9092) for n in (1, 2, 3)}


def view(
    seconds: int = 0,
    *,
    topics: int = 2,
    partitions: int = 3,
    group: str = "readers",
    brokers: dict[int, Broker] = BROKERS,
) -> ClusterView:
    """Each partition has two of three replicas, and grows by 10 messages a second; a group has read
    half of the first topic."""
    ids = (1, 2, 3)
    found = {
        TopicPartition(f"t{t}", p): PartitionState(
            ids[p % 3], (ids[p % 3], ids[(p + 1) % 3]), (ids[p % 3],), 0, 10 * seconds
        )
        for t in range(topics)
        for p in range(partitions)
    }
    committed = {tp: Committed(5 * seconds, 1) for tp in found if tp.topic == "t0"}
    return ClusterView(
        NOW + seconds * 1000, brokers, 1, found, {group: GroupState(1, committed)}, 0.1
    )


def overview(now: ClusterView, before: ClusterView | None = None) -> Overview:
    histories, trends = Histories(), Trends()
    if before is not None:
        histories.add(before)
        trends.add(before.now_ms, summary_of(before, None, histories))
    histories.add(now)
    summary = summary_of(now, before, histories)
    trends.add(now.now_ms, summary)
    said = "the doctor says"
    finding = Finding("a-check", Severity.PROBLEM, HOSTILE, said, "it matters", "kafka08 doctor")
    return Overview("localhost:2181", now, summary, trends, before, [finding])


EMPTY = ClusterView(NOW)
