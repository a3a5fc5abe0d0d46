"""A partition that is fetched from a follower, which its leader has named."""

from __future__ import annotations

from math import inf

from kafka08.protocol.fetch import NO_REPLICA
from kafka08.protocol.offsets import OffsetsRequest
from tests.consumer.fetching.test_fetcher import TP0, TP1, Bench


def test_a_follower_resets_no_position() -> None:
    """Its log may lag, or start later: one without the offset gives the partition back to the
    leader, whose answer decides."""
    bench = Bench()
    bench.cluster.append(TP0, b"a")
    partition = bench.own(TP0, 50)
    partition.fetch_from(1, inf)
    bench.rounds(1)
    assert bench.lost == [partition]
    assert (partition.replica, partition.fetch_offset) == (NO_REPLICA, 50)
    assert not bench.cluster.network.requests(OffsetsRequest)


def test_the_leader_is_asked_again_after_a_while() -> None:
    """The follower may not be the nearest any more. Partitions whose time is not over stay."""
    bench = Bench()
    due, staying = bench.own(TP0, 0), bench.own(TP1, 0)
    due.fetch_from(1, 0.0)
    staying.fetch_from(1, inf)
    bench.fetcher.add([due, staying])
    bench.rounds(1)
    assert (bench.lost, due.replica, staying.replica) == ([due], NO_REPLICA, 1)
    bench.rounds(1)
    assert bench.fetches()[1] == [(1, 0)]
