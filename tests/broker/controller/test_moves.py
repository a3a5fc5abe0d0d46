"""Reassignment, preferred election and leader balance: a real controller with scripted brokers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kafka08.admin import AdminClient
from kafka08.broker.controller import term
from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.leader_balance import imbalanced
from kafka08.errors import AdminError
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from tests.broker.controller.conftest import Cluster, lose_the_next_response
from tests.broker.scripted_broker import ScriptedBroker
from tests.waiting import until

TP = TopicPartition("t", 0)


def reassign(cluster: Cluster, **replicas: tuple[int, ...]) -> None:
    """`t=(1, 2)` moves [t,0] to brokers 1 and 2."""
    wanted = {TopicPartition(topic, 0): brokers for topic, brokers in replicas.items()}
    cluster.zk.create(paths.REASSIGN_PARTITIONS, nodes.encode_reassignment(wanted))


def assignment(cluster: Cluster, topic: str = "t") -> tuple[int, ...] | None:
    found = cluster.store.assignment(topic)
    return None if found is None else found[0]


def await_assignment(cluster: Cluster, *replicas: int) -> None:
    until(lambda: assignment(cluster) == replicas, f"the assignment {replicas}")


def await_end(cluster: Cluster) -> None:
    until(lambda: not cluster.zk.exists(paths.REASSIGN_PARTITIONS), "the request to be done")


def told(broker: ScriptedBroker) -> list[PartitionStateInfo]:
    """The states in the LeaderAndIsr requests since the last call."""
    return [
        state
        for received in broker.take()
        if isinstance(received.request, LeaderAndIsrRequest)
        for state in received.request.partition_states
    ]


def away_and_back(cluster: Cluster, two: ScriptedBroker) -> None:
    """[t,0] prefers broker 2, which was away. Broker 1 leads, and both are in sync."""
    cluster.create_topic("t", {0: (2, 1)})
    cluster.wait_for_state("t", 0, 2, (2, 1))
    two.leave()
    cluster.wait_for_state("t", 0, 1, (1,))
    two.register()
    cluster.change_isr("t", 0, (1, 2))


class TestReassignment:
    def test_a_partition_moves_to_brokers_that_do_not_have_it(self, cluster: Cluster) -> None:
        """The assignment is widened, the new replicas copy the partition, and then it has the new
        replicas alone, with one of them as leader."""
        one, two, three = (cluster.broker(n) for n in (1, 2, 3))
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2), 1: (2, 1)})
        cluster.wait_for_state("t", 1, 2, (2, 1))
        for broker in (one, two, three):
            broker.wait_for(UpdateMetadataRequest)

        reassign(cluster, t=(3, 2))
        await_assignment(cluster, 3, 2, 1)
        three.wait_for(LeaderAndIsrRequest)
        state = cluster.wait_for_state("t", 0, 1, (1, 2))
        assert 1 == state.leader_epoch, "everybody must obey the widened assignment"

        cluster.change_isr("t", 0, (1, 2, 3))
        await_assignment(cluster, 3, 2)
        await_end(cluster)
        state = cluster.wait_for_state("t", 0, 3, (2, 3))
        assert 3 == state.leader_epoch, "elected, then broker 1 left the ISR"
        stops = [
            (request.delete_partitions, request.partitions[0].topic)
            for received in one.wait_for(StopReplicaRequest, 2)
            if isinstance(request := received.request, StopReplicaRequest)
        ]
        assert [(0, "t"), (1, "t")] == stops
        assert (2, 1) == cluster.store.assignments(["t"])["t"][1]

    def test_a_leader_that_stays_keeps_leading(self, cluster: Cluster) -> None:
        """The leader gets the shorter assignment under a new epoch, and the removed replica gets
        StopReplica."""
        one, two = cluster.broker(1), cluster.broker(2)
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.wait_for_state("t", 0, 1, (1, 2))
        reassign(cluster, t=(1,))
        await_end(cluster)
        state = cluster.wait_for_state("t", 0, 1, (1,))
        assert 2 == state.leader_epoch
        two.wait_for(StopReplicaRequest, 2)
        until(
            lambda: any((s.replicas, s.leader_epoch) == ([1], 1) for s in told(one)),
            "broker 1 to hear of it",
        )

    @pytest.mark.parametrize(
        "replicas",
        [(1, 9), (1, 2), (), (2, 2), (2, -1)],
        ids=["dead broker", "nothing to do", "no broker", "one broker twice", "impossible broker"],
    )
    def test_an_impossible_move_is_refused_at_once(
        self, cluster: Cluster, replicas: tuple[int, ...]
    ) -> None:
        """An impossible request is removed without any other effect, not even another leader epoch.
        A possible one goes on."""
        cluster.broker(1), cluster.broker(2)
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.create_topic("u", {0: (1, 2)})
        cluster.wait_for_state("u", 0, 1, (1, 2))
        reassign(cluster, t=replicas, u=(2,), absent=(1,))
        await_end(cluster)
        cluster.wait_for_state("u", 0, 2, (2,))
        assert (1, 2) == assignment(cluster)
        assert 0 == cluster.wait_for_state("t", 0, 1, (1, 2)).leader_epoch
        assert (2,) == assignment(cluster, "u")

    def test_a_widened_assignment_is_sent_though_the_move_is_refused(
        self, cluster: Cluster
    ) -> None:
        """The previous controller wrote the widened assignment and lost its term before it informed
        the leader, and a broker of the move has died since. The leader gets the assignment;
        otherwise it would refuse that replica for good."""
        one = cluster.broker(1)
        cluster.broker(2)
        first = cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.wait_for_state("t", 0, 1, (1, 2))
        cluster.kill(first)
        cluster.zk.set(paths.topic("t"), nodes.encode_assignment({0: (1, 3, 2)}))
        reassign(cluster, t=(1, 3))
        one.take()
        cluster.active_controller(2)
        await_end(cluster)
        until(
            lambda: any((s.replicas, s.leader_epoch) == ([1, 3, 2], 1) for s in told(one)),
            "the leader to hear of the wider assignment",
        )

    def test_an_assignment_that_was_sent_and_not_written_is_taken_back(
        self, cluster: Cluster
    ) -> None:
        """The first controller sent the final assignment and lost its term before it wrote it. No
        broker is registered when the second one refuses the move. A third one finds all of them,
        and elects nobody. The leader gets the assignment of ZooKeeper in an epoch that it does not
        know; otherwise it would refuse the other replica for good. (Found by one simulated run in
        8,295; 0.8.2.2 does it.)"""
        one, two = cluster.broker(1), cluster.broker(2)
        first = cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 1)})
        cluster.wait_for_state("t", 0, 2, (2, 1))
        cluster.kill(first)
        one.leave()
        two.leave()
        reassign(cluster, t=(2,))
        second = cluster.active_controller(2)
        await_end(cluster)
        cluster.kill(second)
        two.take()
        one.register()
        two.register()
        cluster.active_controller(1)
        heard = until(lambda: told(two), "the leader to hear of its partition")
        assert [([2, 1], 1)] == [(state.replicas, state.leader_epoch) for state in heard]

    def test_many_partitions_move_in_bursts(self, cluster: Cluster) -> None:
        """Each step writes a topic's assignment once and sends one request per broker, not one per
        partition, because other events wait meanwhile."""
        numbers = range(50)
        three = [cluster.broker(number) for number in (1, 2, 3)][-1]
        cluster.active_controller(1)
        cluster.create_topic("t", dict.fromkeys(numbers, (1, 2)))
        for number in numbers:
            cluster.wait_for_state("t", number, 1, (1, 2))
        three.take()
        moves = {TopicPartition("t", number): (3, 2) for number in numbers}
        cluster.zk.create(paths.REASSIGN_PARTITIONS, nodes.encode_reassignment(moves))
        until(lambda: cluster.store.assignment("t") == dict.fromkeys(numbers, (3, 2, 1)), "step 2")
        assert 1 == cluster.zk.get(paths.topic("t")).version
        requests = [r.request for r in three.wait_for(LeaderAndIsrRequest, 2)]
        told = [r for r in requests if isinstance(r, LeaderAndIsrRequest)]
        assert [50, 50] == [len(request.partition_states) for request in told]

        for number in numbers:
            cluster.change_isr("t", number, (1, 2, 3))
        await_end(cluster)
        assert dict.fromkeys(numbers, (3, 2)) == cluster.store.assignment("t")
        for number in numbers:
            cluster.wait_for_state("t", number, 3, (2, 3))

    def test_a_cancelled_move_ends_where_it_began(self, cluster: Cluster) -> None:
        """A move whose target never catches up, as after its death: the partition keeps the
        replicas that it had, under one request and the next term of the controller, and the target
        deletes what it has."""
        cluster.broker(1)
        cluster.broker(2)
        three = cluster.broker(3)
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.wait_for_state("t", 0, 1, (1, 2))
        reassign(cluster, t=(3, 2))
        await_assignment(cluster, 3, 2, 1)
        admin = AdminClient(zk=cluster.zk)
        with pytest.raises(AdminError, match=r"\[u,0\]: no reassignment is in progress"):
            admin.cancel_moves({TopicPartition("u", 0): (1,)})

        back = admin.cancelled_moves()
        assert back == {TP: (1, 2)}
        admin.cancel_moves(back)
        await_assignment(cluster, 1, 2)
        await_end(cluster)
        assert set(cluster.wait_for_state("t", 0, 1, (1, 2)).isr) == {1, 2}
        three.wait_for(StopReplicaRequest, 2)
        with pytest.raises(AdminError, match="No partition reassignment is in progress"):
            admin.cancelled_moves()

    def test_a_move_back_waits_until_the_replica_is_deleted(self, cluster: Cluster) -> None:
        """A replica that still has to delete its log is not added again before it has responded:
        until then it fetches, so the leader would take it into the ISR. Other moves go on."""
        cluster.broker(1)
        two = cluster.broker(2)
        cluster.broker(3)
        cluster.active_controller(1)
        for topic, replicas in (("t", (1, 2)), ("u", (1,))):
            cluster.create_topic(topic, {0: replicas})
            cluster.wait_for_state(topic, 0, 1, replicas)
        two.silent.set()
        reassign(cluster, t=(1,))
        await_end(cluster)
        reassign(cluster, t=(1, 2), u=(1, 3))
        until(lambda: assignment(cluster, "u") == (1, 3), "the other move")
        assert assignment(cluster) == (1,)
        two.take()
        two.silent.clear()
        await_assignment(cluster, 1, 2)
        two.wait_for(LeaderAndIsrRequest)

    def test_moves_back_begin_together(self, cluster: Cluster) -> None:
        """A broker responds to each StopReplica by itself. What has responded while the controller
        handles one event goes on in the next, not each partition by itself: a thousand would take a
        thousand rounds to ZooKeeper and rewrite the topic's znode as often."""
        numbers = range(60)
        cluster.broker(1)
        two = cluster.broker(2)
        controller = cluster.active_controller(1)
        cluster.create_topic("t", dict.fromkeys(numbers, (1, 2)))
        for number in numbers:
            cluster.wait_for_state("t", number, 1, (1, 2))

        def request(replicas: tuple[int, ...]) -> None:
            moves = {TopicPartition("t", number): replicas for number in numbers}
            cluster.zk.create(paths.REASSIGN_PARTITIONS, nodes.encode_reassignment(moves))

        two.silent.set()
        request((1,))
        await_end(cluster)
        request((1, 2))
        until(
            lambda: controller.context is not None and len(controller.context.reassigning) == 60,
            "the moves back to wait",
        )
        before = cluster.zk.get(paths.topic("t")).version
        two.silent.clear()
        until(lambda: cluster.store.assignment("t") == dict.fromkeys(numbers, (1, 2)), "step 2")
        assert cluster.zk.get(paths.topic("t")).version - before <= 30

    def test_the_next_controller_goes_on(self, cluster: Cluster) -> None:
        """The next controller finds the widened assignment and the request, and waits for the same
        replicas."""
        for number in (1, 2, 3):
            cluster.broker(number)
        first = cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.wait_for_state("t", 0, 1, (1, 2))
        reassign(cluster, t=(2, 3))
        await_assignment(cluster, 2, 3, 1)
        cluster.kill(first)
        cluster.active_controller(2)
        cluster.change_isr("t", 0, (1, 2, 3))
        await_end(cluster)
        await_assignment(cluster, 2, 3)
        cluster.wait_for_state("t", 0, 2, (2, 3))

    def test_a_deletion_waits_for_the_move(self, cluster: Cluster) -> None:
        """A topic with a partition on the move is deleted when the move has ended."""
        for number in (1, 2):
            cluster.broker(number)
        cluster.active_controller(1, delete_topic_enable=True)
        cluster.create_topic("t", {0: (1,)})
        cluster.wait_for_state("t", 0, 1, (1,))
        reassign(cluster, t=(2,))
        await_assignment(cluster, 2, 1)
        cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
        cluster.change_isr("t", 0, (1, 2))
        await_end(cluster)
        until(lambda: cluster.store.topics() == [], "the deletion")

    def test_a_request_that_cannot_be_read_is_removed(self, cluster: Cluster) -> None:
        """The znode of a request that cannot be parsed is deleted. Otherwise no later request could
        be made."""
        cluster.broker(1)
        cluster.active_controller(1)
        cluster.zk.create(paths.REASSIGN_PARTITIONS, "{")
        await_end(cluster)


class TestPreferredElection:
    def test_leaders_go_back(self, cluster: Cluster) -> None:
        """Leaders move to preferred replicas that are in sync. The request is removed in any
        case."""
        cluster.broker(1)
        two = cluster.broker(2)
        cluster.active_controller(1, auto_leader_rebalance_enable=False)
        cluster.create_topic("t", {0: (2, 1), 1: (2, 1)})
        cluster.wait_for_state("t", 1, 2, (2, 1))
        two.leave()
        cluster.wait_for_state("t", 0, 1, (1,))
        cluster.wait_for_state("t", 1, 1, (1,))
        two.register()
        cluster.change_isr("t", 0, (1, 2))
        wanted = [TP, TopicPartition("t", 1), TopicPartition("absent", 0)]
        cluster.zk.create(paths.PREFERRED_ELECTION, nodes.encode_preferred_election(wanted))
        cluster.wait_for_state("t", 0, 2, (1, 2))
        until(lambda: not cluster.zk.exists(paths.PREFERRED_ELECTION), "its end")
        cluster.wait_for_state("t", 1, 1, (1,))

    def test_brokers_learn_of_a_write_whose_reply_was_lost(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a lost reply the retried write is refused, because the first one was done. The
        brokers still get LeaderAndIsr: without the new epoch the old leader could never change its
        ISR again."""
        one, two = cluster.broker(1), cluster.broker(2)
        controller = cluster.active_controller(1, auto_leader_rebalance_enable=False)
        away_and_back(cluster, two)
        lose_the_next_response(monkeypatch, cluster.zk_of(controller))
        cluster.zk.create(paths.PREFERRED_ELECTION, nodes.encode_preferred_election([TP]))
        state = cluster.wait_for_state("t", 0, 2, (1, 2))

        def heard(broker: ScriptedBroker) -> bool:
            return any((s.leader, s.leader_epoch) == (2, state.leader_epoch) for s in told(broker))

        for broker in (one, two):
            until(partial(heard, broker), f"broker {broker.id} to hear of it")

    def test_leaders_go_back_by_themselves(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With auto.leader.rebalance.enable the check runs a moment after the term began, and then
        periodically."""
        monkeypatch.setattr(term, "FIRST_BALANCE_S", 0.1)
        cluster.broker(1)
        two = cluster.broker(2)
        cluster.active_controller(1, leader_imbalance_check_interval_seconds=1)
        away_and_back(cluster, two)
        cluster.wait_for_state("t", 0, 2, (1, 2))


class TestImbalanced:
    """The leaders that are moved back, with a limit of 10 percent."""

    def context(self, led_elsewhere: int, **keys: Any) -> ControllerContext:
        """Broker 1 is preferred for ten partitions. Broker 2 leads the given number of them."""
        context = ControllerContext(
            brokers={n: Broker(n, "h", n) for n in (1, 2)},
            assignments={TopicPartition("t", n): (1, 2) for n in range(10)},
            leadership={
                TopicPartition("t", n): LeaderAndIsr(1 + (n < led_elsewhere), 0, (1, 2), 0, 1)
                for n in range(10)
            },
        )
        for name, value in keys.items():
            setattr(context, name, value)
        return context

    def test_above_the_limit_all_of_them(self) -> None:
        """Above the limit all leaders are moved back, not just the excess."""
        assert [] == imbalanced(self.context(1), 10)
        assert [TopicPartition("t", 0), TopicPartition("t", 1)] == imbalanced(self.context(2), 10)

    def test_not_for_a_dead_broker(self) -> None:
        """No leader moves to a dead broker or to one that is shutting down."""
        assert [] == imbalanced(self.context(9, brokers={}), 10)
        assert [] == imbalanced(self.context(9, shutting_down={1}), 10)

    def test_partitions_under_deletion_do_not_count(self) -> None:
        """Partitions of a topic that is being deleted do not count."""
        assert [] == imbalanced(self.context(9, topics_to_delete={"t"}), 10)
