"""A fetcher of partitions without news does not look at them, and misses nothing that changes."""

from __future__ import annotations

import pytest

from kafka08.consumer.fetching.fetcher import PartitionFetcher
from kafka08.network.connection import Connection
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from tests.client.fake_cluster import PORT, FakeCluster
from tests.consumer.fetching.test_fetcher import TP0, TP1, Bench
from tests.operations import lines_run


def idle(partitions: int, *, waiting: bool) -> Bench:
    """A fetcher that has asked for all of them, without messages, some times."""
    bench = Bench()
    bench.cluster = FakeCluster({"t": dict.fromkeys(range(partitions), 1)})
    connection = Connection("b1", PORT, runtime=bench.cluster.network.runtime())
    bench.fetcher = PartitionFetcher("f", connection, bench.config, bench._lose, THREADS, list)
    for number in range(partitions):
        bench.own(TopicPartition("t", number), 0)
    bench.stream.waiting = waiting
    bench.rounds(5)
    return bench


@pytest.mark.parametrize("waiting", [True, False])
def test_a_turn_without_news_looks_at_no_partition(waiting: bool) -> None:
    """It costs the same for two and for three hundred. A consumer of 5,000 idle partitions took a
    hundredth of a core, to find out for each twice a second that nothing had changed."""

    def lines(partitions: int) -> int:
        bench = idle(partitions, waiting=waiting)
        asked = len(bench.fetches())
        spent = lines_run(lambda: bench.fetcher._choose_ahead({}) or bench.fetcher._choose())
        assert len(bench.fetches()) == asked
        return spent

    assert lines(300) == lines(2)


@pytest.mark.parametrize("waiting", [True, False])
def test_what_changes_is_seen(waiting: bool) -> None:
    """Messages, another partition, one that was revoked, and a position that moved."""
    bench = idle(2, waiting=waiting)
    before = bench.fetches()[-1]
    assert before == [(0, 0), (1, 0)]
    bench.cluster.append(TP1, b"a")
    bench.rounds(3)
    assert bench.read() == [b"a"]
    bench.rounds(5)
    assert bench.fetches()[-1] == [(0, 0), (1, 1)]
    third = TopicPartition("t", 2)
    bench.cluster.leaders[third] = 1
    added = bench.own(third, 0)
    bench.rounds(5)
    assert bench.fetches()[-1] == [(0, 0), (1, 1), (2, 0)]
    bench.stream.revoke([added])
    bench.fetcher.notify()
    bench.rounds(5)
    assert bench.fetches()[-1] == [(0, 0), (1, 1)]


def test_a_stream_without_room_is_seen() -> None:
    """A second stream is full: its partitions are left out although nothing changed otherwise."""
    bench = Bench(queued_max_message_chunks=1)
    full = bench.new_stream()
    bench.own(TP0, 0)
    bench.own(TP1, 0, full)
    bench.rounds(5)
    assert bench.fetches()[-1] == [(0, 0), (1, 0)]
    for _ in range(9):
        bench.cluster.append(TP1, b"x")
        bench.rounds(2)
    assert bench.fetches()[-1] == [(0, 0)]
