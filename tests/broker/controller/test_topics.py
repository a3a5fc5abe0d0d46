"""Topics that come, grow and go: the controller on a real ZooKeeper with scripted brokers."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

import pytest

from kafka08.broker.controller import term
from kafka08.broker.controller.leadership import Leadership
from kafka08.broker.controller.replica_state import PartitionReplica
from kafka08.broker.controller.request_znodes import RequestZnodes
from kafka08.broker.controller.term import Term
from kafka08.errors import NO_ERROR, NotLeaderForPartition
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionError
from kafka08.protocol.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafka08.protocol.types import Request, Response
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.errors import NotAllowed
from tests.broker.controller.conftest import AT_0_10_2, Cluster, led
from tests.broker.scripted_broker import agree
from tests.waiting import until


def test_added_partitions_get_leaders(cluster: Cluster) -> None:
    """The controller watches the topic's znode and elects leaders for the new partitions
    alone."""
    one = cluster.broker(1)
    cluster.active_controller(1)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    one.wait_for(UpdateMetadataRequest)
    cluster.zk.set(paths.topic("t"), nodes.encode_assignment({0: (1,), 1: (1,), 2: (1,)}))
    cluster.wait_for_state("t", 2, 1, (1,))
    assert led(one.wait_for(LeaderAndIsrRequest)) == {("t", 1): (1, 0), ("t", 2): (1, 0)}


def test_a_topic_that_vanishes_while_it_is_created(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its znodes are deleted by hand between two steps of the controller, which then makes none
    of them again (0.8.2.2 makes a topic without an assignment), and whose term goes on."""
    cluster.broker(1)
    controller = cluster.active_controller(1)
    read = Term._read_assignments

    def read_before(term: Term, topics: Iterable[str]) -> object:
        found = read(term, topics)
        if found:
            monkeypatch.undo()
            cluster.zk.delete_recursive(paths.topic("t"))
        return found

    monkeypatch.setattr(Term, "_read_assignments", read_before)
    cluster.create_topic("t", {0: (1,)})
    until(lambda: Term._read_assignments is read, "the controller to read the topic")
    cluster.create_topic("u", {0: (1,)})
    cluster.wait_for_state("u", 0, 1, (1,))
    assert cluster.store.topics() == ["u"]
    assert (1, {"u"}) == (controller.epoch, controller.context and controller.context.topics)


def _make_again_around(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    """Another program deletes the topic `t` directly before the next call of this method that is
    about a topic or partition, and makes it again directly after it."""
    call = getattr(owner, name)

    def between(part: object, wanted: Collection[object]) -> object:
        if not wanted:
            return call(part, wanted)
        monkeypatch.undo()
        cluster.zk.delete_recursive(paths.topic("t"))
        found = call(part, wanted)
        cluster.zk.create(paths.topic("t"), nodes.encode_assignment({0: (1,)}))
        return found

    monkeypatch.setattr(owner, name, between)


def test_a_topic_that_is_made_again_while_it_is_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is gone when the controller reads it is new once it is back: it has no watch
    yet. 0.8.2.2 takes it for known, and elects no leader."""
    cluster.broker(1)
    cluster.active_controller(1)
    _make_again_around(cluster, monkeypatch, Term, "_read_assignments")
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))


def test_a_topic_that_is_made_again_while_its_leaders_are_elected(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic of which the controller could not write a state is new, if another program deleted
    it and made it again before the controller looks."""
    cluster.broker(1)
    cluster.active_controller(1)
    _make_again_around(cluster, monkeypatch, Leadership, "create")
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))


def test_a_topic_that_vanishes_while_it_is_moved(cluster: Cluster) -> None:
    """Its moves leave the request, so that tools may ask for other ones. 0.8.2.2 leaves them
    there until another controller begins."""
    cluster.broker(1), cluster.broker(2)
    cluster.active_controller(1)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    moves = nodes.encode_reassignment({TopicPartition("t", 0): (2,)})
    cluster.zk.create(paths.REASSIGN_PARTITIONS, moves)
    until(lambda: cluster.store.assignments(["t"])["t"][0] == (2, 1), "the move to begin")
    cluster.zk.delete_recursive(paths.topic("t"))
    until(lambda: not cluster.zk.exists(paths.REASSIGN_PARTITIONS), "the end of the request")


def test_a_topic_without_live_replicas_waits_for_one(cluster: Cluster) -> None:
    """A topic without live replicas stays NEW, without state znodes, until its broker
    registers."""
    cluster.broker(1)
    cluster.active_controller(1)
    cluster.create_topic("t", {0: (2,), 1: (1,)})
    cluster.wait_for_state("t", 1, 1, (1,))
    assert cluster.state("t", 0) is None
    cluster.broker(2)
    assert cluster.wait_for_state("t", 0, 2, (2,)).leader_epoch == 0


def test_a_topic_created_without_a_controller(cluster: Cluster) -> None:
    """The next controller finds a topic that was created while there was no controller."""
    cluster.broker(1)
    cluster.create_topic("t", {0: (1,)})
    cluster.active_controller(1)
    cluster.wait_for_state("t", 0, 1, (1,))


def test_a_broker_that_died_with_the_last_controller_leaves_the_isr(cluster: Cluster) -> None:
    """A broker that dies with the last controller leaves the ISRs of partitions that others
    lead. Otherwise acks=-1 would wait for it."""
    one = cluster.broker(1)
    cluster.broker(2)
    first = cluster.active_controller(1)
    cluster.create_topic("t", {0: (2, 1)})
    cluster.wait_for_state("t", 0, 2, (2, 1))
    cluster.kill(first)
    one.leave()
    cluster.active_controller(2)
    assert 1 == cluster.wait_for_state("t", 0, 2, (2,)).leader_epoch


@pytest.mark.parametrize(
    ("keys", "kinds"),
    [
        (
            {"api_level": "0.9.0", "inter_broker_protocol_version": "0.8.2"},
            [LeaderAndIsrRequest, UpdateMetadataRequest, UpdateMetadataRequest],
        ),
        (AT_0_10_2, [UpdateMetadataRequest, LeaderAndIsrRequest, UpdateMetadataRequest]),
    ],
)
def test_the_first_requests_of_a_new_controller(
    cluster: Cluster, keys: dict[str, str], kinds: list[type]
) -> None:
    """A controller of 0.10.2 sends the metadata of all partitions first: a follower of 0.10.2.2
    looks up the leader's address there. Earlier ones send it last (onControllerFailover)."""
    one = cluster.broker(1)
    cluster.create_topic("t", {0: (1,)})
    cluster.stop(cluster.active_controller(1))
    cluster.wait_for_state("t", 0, 1, (1,))
    one.take()
    cluster.active_controller(2, **keys)
    assert kinds == [type(received.request) for received in one.take()]


def test_a_deletion_waits_for_a_dead_broker(cluster: Cluster) -> None:
    """Live brokers delete their replicas at once. The dead one does it when it is back, and
    then the znodes go."""
    cluster.broker(1)
    two = cluster.broker(2)
    cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("t", {0: (1, 2)})
    cluster.wait_for_state("t", 0, 1, (1, 2))
    two.leave()
    cluster.wait_for_state("t", 0, 1, (1,))
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    cluster.wait_for_state("t", 0, -1, ())
    assert cluster.store.topics() == ["t"]
    two.take()
    two.register()
    until(lambda: cluster.store.topics() == [], "the deletion to finish")
    stops = [r.request for r in two.take() if isinstance(r.request, StopReplicaRequest)]
    assert [stop.delete_partitions for stop in stops] == [0, 1]


def test_a_deletion_survives_its_controller(cluster: Cluster) -> None:
    """The request for a deletion stays in ZooKeeper until all is done, so the next controller
    finishes it."""
    one = cluster.broker(1)
    first = cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    one.silent.set()
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    cluster.wait_for_state("t", 0, -1, ())
    cluster.kill(first)
    one.silent.clear()
    cluster.active_controller(2, delete_topic_enable=True)
    until(lambda: cluster.store.topics_to_delete() == [], "the deletion to finish")
    assert cluster.store.topics() == []


def test_a_deletion_whose_znodes_stay_is_finished_later(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another program's access list, say, refuses the removal once: the next attempt removes them,
    and makes no transition again."""
    cluster.broker(1)
    remove, attempts = RequestZnodes.remove_topic, []

    def refused(requests: RequestZnodes, topic: str) -> None:
        attempts.append(topic)
        if len(attempts) == 1:
            raise NotAllowed(paths.topic(topic))
        remove(requests, topic)

    monkeypatch.setattr(RequestZnodes, "remove_topic", refused)
    cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    until(lambda: "znodes of topic t cannot be removed" in caplog.text)
    cluster.broker(2)
    until(lambda: cluster.store.topics() == [], "the deletion to finish")
    assert "should be in one of the states" not in caplog.text


def test_a_deletion_that_a_broker_refuses_starts_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker without descriptors, say, refuses it once. No event tells when it can."""
    monkeypatch.setattr(term, "RETRY_S", 0.1)
    one = cluster.broker(1)
    cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("t", {0: (1,), 1: (1,)})
    cluster.wait_for_state("t", 1, 1, (1,))
    refusals = [NotLeaderForPartition.code]

    def refuse_once(request: Request) -> Response:
        if isinstance(request, StopReplicaRequest) and request.delete_partitions and refusals:
            return StopReplicaResponse(refusals.pop(), [])
        return agree(request)

    one.answer = refuse_once
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    until(lambda: cluster.store.topics_to_delete() == [], "the deletion to finish")
    assert cluster.store.topics() == []
    assert refusals == []


def test_a_deletion_that_starts_again_while_responses_wait(cluster: Cluster) -> None:
    """The response to the second StopReplica of a replica counts, although one to the first is
    still queued: a broker that registered again has answered both while the controller was
    busy."""
    one = cluster.broker(1)
    controller = cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    term, context = controller._term, controller.context
    assert term is not None
    assert context is not None
    one.silent.set()
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    until(lambda: bool(context.awaited_deletions), "the deletion to start")
    replica = PartitionReplica("t", 0, 1)
    done = StopReplicaResponse(NO_ERROR, [PartitionError("t", 0, NO_ERROR)])
    first, second = {replica}, context.awaited_deletions["t"]

    def busy() -> None:
        for awaited in (first, second):
            term._on_stopped(awaited, replica, done)

    controller._post(None, busy)
    until(lambda: cluster.store.topics() == [], "the deletion to finish")


def test_a_request_to_delete_may_be_seen_before_its_topic(cluster: Cluster) -> None:
    """A controller that was busy reads the request with an earlier one, before it hears of the
    topic. The earlier topic waits for a dead broker, so no further event comes."""
    cluster.broker(1)
    two = cluster.broker(2)
    controller = cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("other", {0: (1, 2)})
    cluster.wait_for_state("other", 0, 1, (1, 2))
    two.leave()
    cluster.wait_for_state("other", 0, 1, (1,))
    ready = threading.Event()

    def work() -> None:
        until(ready.is_set, "the end of other work")

    controller._post(None, work)
    cluster.zk.create(paths.delete_topic("other"), nodes.encode_delete_topic())
    until(
        lambda: any(paths.DELETE_TOPICS in name for name in controller._waiting.copy()),
        "the event of the earlier request to be queued",
    )
    cluster.create_topic("t", {0: (1,)})
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    ready.set()
    until(lambda: cluster.store.topics() == ["other"], "the new topic to be deleted")


def test_a_topic_whose_znode_another_program_deletes_is_forgotten(cluster: Cluster) -> None:
    """The controller also stops waiting for responses of brokers that delete its replicas."""
    one = cluster.broker(1)
    controller = cluster.active_controller(1, delete_topic_enable=True)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    context = controller.context
    assert context is not None
    one.silent.set()
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    until(lambda: bool(context.awaited_deletions), "the deletion to start")
    cluster.zk.delete_recursive(paths.topic("t"))
    until(lambda: not context.topics, "the controller to forget the topic")
    assert {} == context.awaited_deletions


def test_a_request_to_delete_nothing_is_removed(cluster: Cluster) -> None:
    """A request to delete a topic that does not exist is removed and blocks no other."""
    cluster.active_controller(1, delete_topic_enable=True)
    cluster.zk.create(paths.delete_topic("never"), nodes.encode_delete_topic())
    until(lambda: cluster.store.topics_to_delete() == [], "the request to go")


def test_deletion_is_off_by_default(cluster: Cluster) -> None:
    """With delete.topic.enable=false, the default of 0.8, the request and the topic stay."""
    one = cluster.broker(1)
    cluster.active_controller(1)
    cluster.create_topic("t", {0: (1,)})
    cluster.wait_for_state("t", 0, 1, (1,))
    cluster.zk.create(paths.delete_topic("t"), nodes.encode_delete_topic())
    one.take()
    assert cluster.store.topics() == ["t"]
    assert cluster.store.topics_to_delete() == ["t"]


def test_where_deletion_is_off_requests_are_removed_at_0_10_2(cluster: Cluster) -> None:
    """With delete.topic.enable=false a 0.10.2.2 controller removes requests, old and new, of
    existing and of missing topics (KAFKA-3175)."""
    requests = [paths.delete_topic("t"), paths.delete_topic("missing")]

    def removed() -> bool:
        return cluster.store.topics_to_delete() == []

    cluster.broker(1)
    cluster.create_topic("t", {0: (1,)})
    for request in requests:
        cluster.zk.create(request, nodes.encode_delete_topic())
    cluster.active_controller(1, **AT_0_10_2)
    until(removed, "the old requests to go")
    for request in requests:
        cluster.zk.create(request, nodes.encode_delete_topic())
    until(removed, "the new requests to go")
    assert cluster.store.topics() == ["t"]
