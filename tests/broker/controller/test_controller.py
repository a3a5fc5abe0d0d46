"""The controller on a real ZooKeeper with scripted brokers: elections, failures, topics,
shutdowns."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from kafka08.broker.controller.controller import Controller
from kafka08.broker.controller.term import Term
from kafka08.errors import BrokerNotAvailable, StaleControllerEpoch, UnknownError
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Multi, Operation
from tests.broker.controller.conftest import Cluster, led
from tests.waiting import until


class TestElection:
    def test_another_controller_takes_over_under_the_next_epoch(self, cluster: Cluster) -> None:
        """When a controller dies, another one takes /controller, reads the cluster, and sends
        requests with a higher controller epoch. Leaders keep their epochs."""
        one = cluster.broker(1)
        first = cluster.active_controller(1)
        second = cluster.controller(2)
        cluster.create_topic("t", {0: (1,)})
        one.wait_for(UpdateMetadataRequest)
        assert not second.is_active

        cluster.kill(first)
        received = one.wait_for(UpdateMetadataRequest, 2)
        until(lambda: second.epoch == 2, "the second to be ready")
        assert cluster.store.controller_epoch() == (2, 1)
        assert {r.request.controller_epoch for r in received} == {2}
        assert {r.header.client_id for r in received} == {"id_2-host_127.0.0.1-port_19391"}
        assert led(received) == {("t", 0): (1, 0)}

    def test_a_clean_stop_resigns_at_once(self, cluster: Cluster) -> None:
        """A clean stop deletes /controller at once, so others need not wait for a session to
        end."""
        first = cluster.active_controller(1)
        second = cluster.controller(2)
        first.shutdown()
        until(lambda: second.is_active, "controller 2 to be elected")
        assert not first.is_active

    def test_one_that_was_replaced_before_it_began_fences_nobody(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A controller is suspended after its election until it has a successor. Then it must not
        raise the controller epoch: brokers would refuse the successor, which stays elected. (Found
        by one simulated run in 10,000; 0.8.2.2 does it.)"""
        one = cluster.broker(1)
        raise_epoch = Controller._raise_epoch
        successors: list[Controller] = []

        def late(controller: Controller) -> tuple[int, int]:
            monkeypatch.undo()
            cluster.zk.delete(paths.CONTROLLER)
            successors.append(cluster.active_controller(2))
            until(lambda: successors[0].epoch is not None, "the successor's epoch")
            return raise_epoch(controller)

        monkeypatch.setattr(Controller, "_raise_epoch", late)
        former = cluster.controller(1)
        until(lambda: bool(successors), "the successor")
        until(lambda: not former.is_active, "the former controller to give up")
        cluster.create_topic("t", {0: (1,)})
        assert cluster.wait_for_state("t", 0, 1, (1,)).controller_epoch == 1
        received = one.wait_for(UpdateMetadataRequest)
        assert {(r.request.controller_id, r.request.controller_epoch) for r in received} == {(2, 1)}
        assert cluster.store.controller_epoch() == (1, 0)

    def test_losing_the_znode_ends_the_term(self, cluster: Cluster) -> None:
        """Deleting /controller starts an election and ends the old term."""
        controller = cluster.active_controller(1)
        cluster.zk.delete(paths.CONTROLLER)
        until(lambda: controller.epoch == 2, "the next term")

    def test_a_watch_of_an_earlier_term_hides_no_news(self, cluster: Cluster) -> None:
        """An event is queued once per name and term. An event of an earlier term's watch does
        nothing when it is handled, so the new term's event must be queued beside it. (A broker that
        came back during an election was never noticed.)"""
        controller = cluster.active_controller(1)
        earlier = controller._term
        assert earlier is not None
        cluster.zk.delete(paths.CONTROLLER)
        until(lambda: controller.epoch == 2, "the next term")
        now = controller._term
        assert now is not None
        gate = threading.Event()

        def hold_the_queue() -> None:
            gate.wait(20)

        controller._post(None, hold_the_queue)
        for term in (earlier, now, now):
            term.znode_changed(paths.BROKER_IDS)
        waiting = sorted(name for name in controller._waiting if name.startswith(paths.BROKER_IDS))
        gate.set()
        assert waiting == [f"{paths.BROKER_IDS} (epoch 1)", f"{paths.BROKER_IDS} (epoch 2)"]

    def test_a_newer_controller_in_a_state_znode_ends_the_term(self, cluster: Cluster) -> None:
        """Each election checks the controller epoch in the state znode, and writes nothing over a
        successor's state."""
        cluster.broker(1)
        two = cluster.broker(2)
        controller = cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 1)})
        state = cluster.wait_for_state("t", 0, 2, (2, 1))
        successor = LeaderAndIsr(2, 7, (2, 1), state.zk_version, controller_epoch=9)
        cluster.store.update_leader_and_isr({TopicPartition("t", 0): successor})
        cluster.zk.set(paths.CONTROLLER_EPOCH, nodes.encode_controller_epoch(9))
        two.leave()
        until(lambda: controller.epoch == 10, "controller 1 to resign, and to be elected again")
        assert cluster.wait_for_state("t", 0, 1, (1,)).leader_epoch == 8

    @pytest.mark.parametrize("known", [True, False], ids=["from the start", "while controller"])
    def test_a_controller_epoch_above_ours_concerns_its_partition_alone(
        self, cluster: Cluster, caplog: pytest.LogCaptureFixture, known: bool
    ) -> None:
        """A state znode with an epoch above ours was written by no controller. The term goes on and
        other partitions are elected; this one keeps its state until the znode is repaired. The
        error names the znode. 0.8.2.2 elects none of the burst then."""
        cluster.broker(1)
        two = cluster.broker(2)
        for topic in ("ahead", "good"):
            cluster.create_topic(topic, {0: (2, 1)})
        tp = TopicPartition("ahead", 0)
        ahead = LeaderAndIsr(2, 7, (2, 1), 0, controller_epoch=9)
        if known:
            cluster.store.create_leader_and_isr({tp: ahead})
        controller = cluster.active_controller(1)
        cluster.wait_for_state("good", 0, 2, (2, 1))
        if not known:
            cluster.wait_for_state("ahead", 0, 2, (2, 1))
            cluster.store.update_leader_and_isr({tp: ahead})
        two.leave()
        cluster.wait_for_state("good", 0, 1, (1,))
        found = cluster.state("ahead", 0)
        assert found is not None
        assert (2, 7, 9) == (found.leader, found.leader_epoch, found.controller_epoch)
        until(lambda: paths.partition_state("ahead", 0) in caplog.text, "the error")
        # The controller has finished with the broker's end before the znode is mended: it would
        # take the broker out of the mended ISR otherwise.
        cluster.create_topic("next", {0: (1,)})
        cluster.wait_for_state("next", 0, 1, (1,))

        mended = replace(found, controller_epoch=1)
        cluster.store.update_leader_and_isr({tp: mended})
        two.register()

        def elected() -> bool:
            state = cluster.state("ahead", 0)
            return state is not None and (state.leader, state.leader_epoch) == (2, 8)

        until(elected, "an election of what was mended")
        assert (1, True) == (controller.epoch, controller.is_active)

    def test_a_controller_that_was_replaced_writes_nothing(self, cluster: Cluster) -> None:
        """A controller with a successor writes nothing, although the partitions' znodes do not show
        it yet. (0.8.2.2 would elect.) In its next term it elects under the epoch after its
        successor's."""
        cluster.broker(1)
        two = cluster.broker(2)
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 1)})
        cluster.wait_for_state("t", 0, 2, (2, 1))
        cluster.zk.set(paths.CONTROLLER_EPOCH, nodes.encode_controller_epoch(2))
        two.leave()
        state = cluster.wait_for_state("t", 0, 1, (1,))
        assert (state.controller_epoch, state.zk_version) == (3, 1)


class TestBrokers:
    def test_the_leader_dies_and_the_isr_leads(self, cluster: Cluster) -> None:
        """The first live ISR member in the order of the assignment leads, and dead brokers leave
        the ISR."""
        one, two, three = (cluster.broker(i) for i in (1, 2, 3))
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 3, 1), 1: (1, 2)})
        cluster.wait_for_state("t", 0, 2, (2, 3, 1))
        cluster.wait_for_state("t", 1, 1, (1, 2))
        one.wait_for(UpdateMetadataRequest)
        three.wait_for(UpdateMetadataRequest)
        two.leave()
        assert cluster.wait_for_state("t", 0, 3, (3, 1)).leader_epoch == 1
        assert cluster.wait_for_state("t", 1, 1, (1,)).leader_epoch == 1
        assert led(three.wait_for(LeaderAndIsrRequest)) == {("t", 0): (3, 1)}
        told = led(one.wait_for(LeaderAndIsrRequest))
        assert told == {("t", 0): (3, 1), ("t", 1): (1, 1)}

    def test_no_unclean_election_where_the_topic_forbids_it(self, cluster: Cluster) -> None:
        """The last ISR member stays in the ISR, and leads when it is back."""
        cluster.broker(1)
        two = cluster.broker(2)
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 1)}, unclean_leader_election_enable="false")
        cluster.wait_for_state("t", 0, 2, (2, 1))
        cluster.change_isr("t", 0, (2,))
        two.leave()
        cluster.wait_for_state("t", 0, -1, (2,))
        two.register()
        cluster.wait_for_state("t", 0, 2, (2,))

    def test_unclean_election_where_it_is_allowed(self, cluster: Cluster) -> None:
        """Without a live ISR member another replica leads, which is the default of 0.8."""
        cluster.broker(1)
        two = cluster.broker(2)
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 1)})
        cluster.wait_for_state("t", 0, 2, (2, 1))
        cluster.change_isr("t", 0, (2,))
        two.leave()
        cluster.wait_for_state("t", 0, 1, (1,))

    def test_a_single_replica_comes_and_goes(self, cluster: Cluster) -> None:
        """While its only broker is away a partition has leader -1 and an empty ISR, as captured."""
        cluster.broker(1)
        two = cluster.broker(2)
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (2,)})
        cluster.wait_for_state("t", 0, 2, (2,))
        two.leave()
        assert cluster.wait_for_state("t", 0, -1, ()).leader_epoch == 1
        two.take()
        two.register()
        assert cluster.wait_for_state("t", 0, 2, (2,)).leader_epoch == 2
        received = two.wait_for(LeaderAndIsrRequest, 2)
        assert led(received) == {("t", 0): (2, 2)}

    def test_an_unseen_restart_is_a_restart(self, cluster: Cluster) -> None:
        """If a broker's znode is deleted and created between two reads of the controller, the
        broker gets its partitions again with a new leader epoch. 0.8.2.2 takes it for never gone.
        """
        one = cluster.broker(1)
        cluster.active_controller(2)
        cluster.create_topic("t", {0: (1,)})
        cluster.wait_for_state("t", 0, 1, (1,))
        one.wait_for(UpdateMetadataRequest)
        address = nodes.encode_broker(
            nodes.BrokerRegistration("127.0.0.1", one.address.port, timestamp_ms=1)
        )
        cluster.zk.set(paths.broker(1), address)
        cluster.broker(3)
        received = one.wait_for(LeaderAndIsrRequest, 2)
        assert led(received) == {("t", 0): (1, 2)}

    def test_requests_are_sent_until_the_broker_answers(self, cluster: Cluster) -> None:
        """A broker that closes connections gets every request, in order, once it answers."""
        one = cluster.broker(1)
        one.silent.set()
        cluster.active_controller(1)
        cluster.create_topic("a", {0: (1,)})
        cluster.wait_for_state("a", 0, 1, (1,))
        cluster.create_topic("b", {0: (1,)})
        cluster.wait_for_state("b", 0, 1, (1,))
        one.silent.clear()
        received = one.wait_for(LeaderAndIsrRequest, 2)
        assert list(led(received)) == [("a", 0), ("b", 0)]

    def test_a_dead_channel_does_not_hold_up_the_others(self, cluster: Cluster) -> None:
        """A broker that does not respond delays no other, since each broker has a channel of its
        own."""
        one, two = cluster.broker(1), cluster.broker(2)
        one.silent.set()
        cluster.active_controller(1)
        cluster.create_topic("t", {0: (1,), 1: (2,)})
        assert ("t", 1) in led(two.wait_for(LeaderAndIsrRequest))


class TestControlledShutdown:
    def test_leaders_move_and_followers_leave_the_isr(self, cluster: Cluster) -> None:
        """No replicated partition remains on the broker. A partition with a single replica stays
        and does not count."""
        cluster.broker(1)
        two = cluster.broker(2)
        controller = cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 1), 1: (1, 2), 2: (2,)})
        cluster.wait_for_state("t", 2, 2, (2,))
        two.wait_for(UpdateMetadataRequest)
        assert controller.controlled_shutdown(2) == set()
        cluster.wait_for_state("t", 0, 1, (1,))
        cluster.wait_for_state("t", 1, 1, (1,))
        cluster.wait_for_state("t", 2, 2, (2,))
        received = two.wait_for(StopReplicaRequest, 2)
        assert led(received)["t", 0] == (1, 1), "it hears that it leads no more"
        stops = [r.request for r in received if isinstance(r.request, StopReplicaRequest)]
        assert [(s.partitions[0].partition, s.delete_partitions) for s in stops] == [(1, 0)] * 2

    @pytest.mark.parametrize(
        ("keys", "leader"),
        [
            ({"api_level": "0.9.0"}, 3),
            ({"api_level": "0.10.2", "log_message_format_version": "0.8.2"}, 2),
        ],
    )
    def test_the_next_leader_by_level(
        self, cluster: Cluster, keys: dict[str, str], leader: int
    ) -> None:
        """The first other member of the ISR leads at 0.9; at 0.10.2 the order is the
        assignment's."""
        for broker_id in (1, 2, 3):
            cluster.broker(broker_id)
        controller = cluster.active_controller(1, inter_broker_protocol_version="0.8.2", **keys)
        cluster.create_topic("t", {0: (1, 2, 3)})
        cluster.wait_for_state("t", 0, 1, (1, 2, 3))
        cluster.change_isr("t", 0, (1, 3, 2))
        assert controller.controlled_shutdown(1) == set()
        cluster.wait_for_state("t", 0, leader, (3, 2))

    def test_a_stopping_broker_gets_stop_replica_before_it_leaves_the_isr(
        self, cluster: Cluster
    ) -> None:
        """StopReplica comes before the ISR shrinks, so that the broker's last fetch arrives before
        the leader knows the new ISR."""
        one, two = cluster.broker(1), cluster.broker(2)
        controller = cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.wait_for_state("t", 0, 1, (1, 2))
        one.wait_for(UpdateMetadataRequest), two.wait_for(UpdateMetadataRequest)
        controller.controlled_shutdown(2)
        received = [type(r.request) for r in two.wait_for(StopReplicaRequest, 2)]
        assert received == [StopReplicaRequest, UpdateMetadataRequest, StopReplicaRequest]

    def test_a_partition_without_another_replica_remains(self, cluster: Cluster) -> None:
        """The only ISR member keeps its partition, and the response lists it."""
        cluster.broker(1)
        cluster.broker(2)
        controller = cluster.active_controller(1)
        cluster.create_topic("t", {0: (2, 1)})
        cluster.wait_for_state("t", 0, 2, (2, 1))
        cluster.change_isr("t", 0, (2,))
        assert controller.controlled_shutdown(2) == {TopicPartition("t", 0)}
        assert controller.is_active

    def test_an_unknown_broker(self, cluster: Cluster) -> None:
        """An unknown broker is refused, and the term continues."""
        controller = cluster.active_controller(1)
        with pytest.raises(BrokerNotAvailable, match="77"):
            controller.controlled_shutdown(77)
        assert controller.epoch == 1

    def test_a_request_of_a_former_process_is_refused(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A broker asks, is killed and registers again while the request waits: its new process
        gets its partitions, and no StopReplica. 0.8.2.2 stops its replicas until the next change.
        """
        one, two = cluster.broker(1), cluster.broker(2)
        controller = cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.wait_for_state("t", 0, 1, (1, 2))
        one.wait_for(UpdateMetadataRequest), two.wait_for(UpdateMetadataRequest)
        waits, may_go = threading.Event(), threading.Event()
        brokers_changed = Term.brokers_changed

        def changed_late(term: Term) -> None:
            waits.set()
            may_go.wait(30)
            brokers_changed(term)

        monkeypatch.setattr(Term, "brokers_changed", changed_late)
        two.leave()
        two.register()
        assert waits.wait(30)
        threading.Timer(0.2, may_go.set).start()
        with pytest.raises(BrokerNotAvailable, match="2 has registered again"):
            controller.controlled_shutdown(2)
        received = two.wait_for(LeaderAndIsrRequest)
        assert StopReplicaRequest not in [type(r.request) for r in received]
        assert controller.controlled_shutdown(2) == set()

    def test_an_abandoned_request_is_refused(self, cluster: Cluster) -> None:
        """A request whose sender closed the connection moves nothing, even if the controller knows
        no other registration than the present one: it may be that of the sender's successor."""
        one, two = cluster.broker(1), cluster.broker(2)
        controller = cluster.active_controller(1)
        cluster.create_topic("t", {0: (1, 2)})
        cluster.wait_for_state("t", 0, 1, (1, 2))
        one.wait_for(UpdateMetadataRequest), two.wait_for(UpdateMetadataRequest)
        with pytest.raises(BrokerNotAvailable, match="2 waits for no response"):
            controller.controlled_shutdown(2, lambda: True)
        cluster.wait_for_state("t", 0, 1, (1, 2))
        assert StopReplicaRequest not in [type(r.request) for r in two.take()]
        assert controller.controlled_shutdown(2, lambda: False) == set()

    def test_not_the_controller(self, cluster: Cluster) -> None:
        """A broker that is not the controller refuses the request."""
        cluster.active_controller(1)
        other = cluster.controller(2)
        with pytest.raises(StaleControllerEpoch):
            other.controlled_shutdown(1)

    def test_an_unexpected_failure_is_not_success(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The broker gets an error and retries; without it, it would assume that no partition
        remains. The controller starts a new term."""

        def fail(term: Term, broker_id: int) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(Term, "shut_down", fail)
        controller = cluster.active_controller(1)
        with pytest.raises(UnknownError, match="a bug"):
            controller.controlled_shutdown(1)
        until(lambda: controller.epoch == 2, "the next term")


def test_a_thousand_partitions_fail_over_in_bursts(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elections use cached state and write 100 states per transaction: ten requests to ZooKeeper
    where 0.8.2.2 makes 2,000. (All leaders are elected before the controller reads the states
    again, to see whether the ISRs still have the dead broker; those reads do not count.)"""
    cluster.broker(1)
    two = cluster.broker(2)
    zookeeper = cluster.zk_of(cluster.active_controller(1))._zookeeper
    sent: list[type[Operation]] = []
    send = type(zookeeper).send

    def recorded(adapter: Any, operation: Operation) -> Any:
        if adapter is zookeeper:
            sent.append(type(operation))
        return send(adapter, operation)

    monkeypatch.setattr(type(zookeeper), "send", recorded)
    cluster.create_topic("t", dict.fromkeys(range(1000), (2, 1)))
    cluster.wait_for_state("t", 999, 2, (2, 1))
    two.wait_for(UpdateMetadataRequest)
    sent.clear()
    two.leave()
    for number in (0, 500, 999):
        assert cluster.wait_for_state("t", number, 1, (1,)).leader_epoch == 1
    assert sent.count(Multi) == 10
    last = len(sent) - sent[::-1].index(Multi)
    assert last < 30


def test_many_topics_fail_over_in_bursts(cluster: Cluster) -> None:
    """The controller reads a topic's configuration only where no ISR member is alive. States that
    need no write any more are read in one burst."""
    cluster.broker(1)
    two = cluster.broker(2)
    zk = cluster.zk_of(cluster.active_controller(1))
    topics = [f"t{number}" for number in range(40)]
    for topic in topics:
        cluster.create_topic(topic, {0: (2, 1)})
    for topic in topics:
        cluster.wait_for_state(topic, 0, 2, (2, 1))
    two.take()
    requests = zk.requests_sent
    two.leave()
    for topic in topics:
        cluster.wait_for_state(topic, 0, 1, (1,))
    assert zk.requests_sent - requests < 2 * len(topics)
