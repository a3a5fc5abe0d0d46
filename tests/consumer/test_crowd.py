"""Guarantee 8: many members, in processes of their own, settle and settle again."""

from __future__ import annotations

from kafka08.zk.client import ZkClient
from tests.consumer.crowd import Crowd
from tests.consumer.groups import PaperCluster

MEMBERS = 24
EVENTS_MAX = 60
"""The requests that a member may send besides one read of each registration: a few for each round
of a rebalance, of which there are about as many as moments in which a member joined."""


def test_guarantee_8_a_crowd_settles_and_so_does_half_of_it(zk: ZkClient, zk_connect: str) -> None:
    """24 members start at once and share 48 partitions. After kill -9 of half of them the others
    share all. The number of a member's ZooKeeper requests is at most linear in the members.
    (`scripts/bench --only "100 members"` runs it with 100 members and 200 partitions.)"""
    cluster = PaperCluster(zk, zk_connect)
    cluster.create_topic("tt", 2 * MEMBERS)
    crowd = Crowd(cluster.store, zk_connect, "tt", members=MEMBERS, processes=4, session_ms=2000)
    with crowd:
        gathered = crowd.start()
        assert max(gathered.requests) <= 2 * MEMBERS + EVENTS_MAX, gathered
        halved = crowd.kill_half()
        assert len(halved.requests) == MEMBERS // 2
        assert max(halved.requests) <= MEMBERS + EVENTS_MAX, halved
