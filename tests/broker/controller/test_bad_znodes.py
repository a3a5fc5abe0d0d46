"""Damaged znodes do not stop the controller: it leaves them out, and serves the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.config import INT_MAX
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from tests.broker.controller.conftest import Cluster
from tests.waiting import until


@pytest.mark.parametrize(
    "text",
    [
        "{not json",
        nodes.encode_assignment({0: (1, 99_999_999_999)}),
        nodes.encode_assignment({0: [1] * 300_000}),
    ],
    ids=["no json", "too long a number", "a broker many times"],
)
def test_a_bad_topic_znode_does_not_stop_the_controller(cluster: Cluster, text: str) -> None:
    """A damaged topic znode is logged and left out, and other topics get their leaders. Damage
    includes a broker id that fits into no request, and n partitions with n replicas, whose
    message would take for ever."""
    cluster.broker(1)
    cluster.active_controller(1)
    cluster.zk.create(paths.topic("bad"), text)
    cluster.create_topic("good", {0: (1,)})
    cluster.wait_for_state("good", 0, 1, (1,))


def test_a_name_that_no_topic_can_have_does_not_stop_the_controller(cluster: Cluster) -> None:
    """A name that no topic may have fits into no request and no directory. It is left out."""
    cluster.broker(1)
    cluster.zk.create(paths.topic("x" * 40_000), nodes.encode_assignment({0: (1,)}))
    cluster.active_controller(1)
    cluster.create_topic("good", {0: (1,)})
    cluster.wait_for_state("good", 0, 1, (1,))


def test_a_bad_registration_does_not_stop_the_controller(cluster: Cluster) -> None:
    """A broker with a damaged registration counts as not registered."""
    cluster.broker(1)
    cluster.zk.create(paths.broker(2), '{"host":"h","port":70000}')
    cluster.zk.create(paths.broker(2**31), "no json")
    cluster.active_controller(1)
    cluster.create_topic("good", {0: (1, 2)})
    cluster.wait_for_state("good", 0, 1, (1,))


def test_the_last_leader_epoch_does_not_stop_the_controller(cluster: Cluster) -> None:
    """If the next leader epoch fits into no request, the partition keeps its state."""
    cluster.broker(1)
    two = cluster.broker(2)
    cluster.active_controller(1)
    for topic in ("last", "good"):
        cluster.create_topic(topic, {0: (2, 1)})
        state = cluster.wait_for_state(topic, 0, 2, (2, 1))
        if topic == "last":
            last = replace(state, leader_epoch=INT_MAX)
            cluster.store.update_leader_and_isr({TopicPartition("last", 0): last})
    two.leave()
    cluster.wait_for_state("good", 0, 1, (1,))
    found = cluster.state("last", 0)
    assert found is not None
    assert (2, INT_MAX) == (found.leader, found.leader_epoch)


def test_a_bad_state_znode_does_not_stop_the_controller(cluster: Cluster) -> None:
    """A partition whose state znode is damaged has no leader until the text is repaired. It
    does not count as new, so the znode stays. Others are elected."""
    cluster.broker(1)
    two = cluster.broker(2)
    first = cluster.active_controller(1)
    cluster.create_topic("bad", {0: (2, 1)})
    cluster.create_topic("good", {0: (2, 1)})
    cluster.wait_for_state("good", 0, 2, (2, 1))
    cluster.wait_for_state("bad", 0, 2, (2, 1))
    path = paths.partition_state("bad", 0)
    before = cluster.zk.get(path).data
    cluster.zk.put(path, "no json")
    cluster.kill(first)
    cluster.active_controller(2)
    two.leave()
    assert 2 == cluster.wait_for_state("good", 0, 1, (1,)).controller_epoch
    assert "no json" == cluster.zk.get(path).data

    cluster.zk.put(path, before)
    two.register()

    def elected() -> bool:
        state = cluster.state("bad", 0)
        return state is not None and (state.leader, state.controller_epoch) == (2, 2)

    until(elected, "an election by the second controller")


def test_a_bad_configuration_does_not_stop_the_controller(cluster: Cluster) -> None:
    """If the topic's configuration is damaged, the broker's default decides whether an unclean
    election is allowed."""
    cluster.broker(1)
    two = cluster.broker(2)
    cluster.active_controller(1)
    cluster.create_topic("bad", {0: (2, 1)})
    cluster.create_topic("good", {0: (2, 1)})
    cluster.wait_for_state("good", 0, 2, (2, 1))
    cluster.wait_for_state("bad", 0, 2, (2, 1))
    cluster.change_isr("bad", 0, (2,))
    cluster.zk.put(paths.topic_config("bad"), "no json")
    two.leave()
    cluster.wait_for_state("good", 0, 1, (1,))
    assert 1 == cluster.wait_for_state("bad", 0, 1, (1,)).controller_epoch
