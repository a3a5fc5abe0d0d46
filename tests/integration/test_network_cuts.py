"""Brokers on hosts of their own, and a network between them that loses packets, to some and not to
others, as no relay can. Nothing acknowledged may be lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.histories.workload import Workload
from tests.in_sync import await_full_isr
from tests.integration.hosts import CannotMakeHosts, Hosts, HostsCluster
from tests.integration.test_replication_faults import CONFIG, SAFE, isr_of, segments
from tests.waiting import until


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    try:
        made = Hosts(3)
    except CannotMakeHosts as reason:
        pytest.skip(f"no network namespaces here: {reason}")
    with made:
        yield made


@pytest.fixture(scope="module")
def cluster(hosts: Hosts) -> Iterator[HostsCluster]:
    with HostsCluster(hosts, 3, CONFIG) as cluster:
        yield cluster


def leader_from_followers_and_zookeeper(hosts: Hosts, cluster: HostsCluster, topic: str) -> None:
    """Clients still reach the leader, which must not acknowledge their messages."""
    leader = cluster.leader_of(topic)
    others = [other.host for other in cluster.brokers if other is not leader]
    hosts.cut(leader.id, *others, hosts.zookeeper)
    until(lambda: cluster.leader_of(topic) is not leader, "another leader")


def follower_from_leader(hosts: Hosts, cluster: HostsCluster, topic: str) -> None:
    """Only the leader can notice, since ZooKeeper and other brokers still reach the follower."""
    leader, follower = cluster.leader_of(topic), cluster.followers_of(topic)[0]
    hosts.cut(follower.id, leader.host)
    until(lambda: follower.id not in isr_of(cluster, topic), "the follower to leave the ISR")
    assert cluster.leader_of(topic) is leader


CUTS: dict[str, Callable[[Hosts, HostsCluster, str], None]] = {
    "leader from followers and ZooKeeper": leader_from_followers_and_zookeeper,
    "follower from leader": follower_from_leader,
}


@pytest.mark.parametrize("cut", CUTS)
def test_nothing_is_lost_by_a_cut(hosts: Hosts, cluster: HostsCluster, cut: str) -> None:
    """Producing continues with the two brokers that reach each other, and the third catches up
    after the cut. A consumer may wait at a deposed leader, and must continue afterwards."""
    topic = cut.replace(" ", "-")
    cluster.create_topic(topic, 1, 3, SAFE)
    with Workload(cluster.bootstrap, topic) as work:
        work.await_progress()
        try:
            CUTS[cut](hosts, cluster, topic)
            work.await_sends()
        finally:
            hosts.heal()
        await_full_isr(cluster, topic)
        work.await_progress()
    assert [] == work.problems()
    until(
        lambda: len({tuple(segments(b, topic, 0).items()) for b in cluster.brokers}) == 1,
        "the replicas to be equal",
    )
