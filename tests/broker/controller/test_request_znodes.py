"""The controller's writes to znodes of tools never undo another client's write, and happen only
while it is the controller."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kafka08.broker.controller.leadership import ControllerMoved
from kafka08.broker.controller.request_znodes import RequestZnodes
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Step
from kafka08.zk.store import ClusterStore

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def requests(zk: ZkClient) -> RequestZnodes:
    """The requests of an active controller, a topic of two partitions, and a request to move
    one."""
    zk.create(paths.CONTROLLER_EPOCH, "1")
    zk.put(paths.topic("t"), nodes.encode_assignment({0: (1,), 1: (2,)}))
    zk.put(paths.REASSIGN_PARTITIONS, nodes.encode_reassignment({T0: (3,), T1: (3,)}))
    zk.put(paths.PREFERRED_ELECTION, nodes.encode_preferred_election([T0]))
    zk.put(paths.delete_topic("t"), nodes.encode_delete_topic())
    return RequestZnodes(ClusterStore(zk), 0, lambda _: None)


def before_the_next_write(
    monkeypatch: pytest.MonkeyPatch, zk: ZkClient, act: Callable[[], object]
) -> None:
    """Makes another client run `act` between the controller's read and its write."""
    write_all = zk.write_all

    def late(*args: object) -> object:
        monkeypatch.undo()
        act()
        return write_all(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(zk, "write_all", late)


def test_partitions_that_were_added_meanwhile_stay(
    requests: RequestZnodes, zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions that were added after the assignment was read stay, because the controller reads
    it again."""
    added = nodes.encode_assignment({0: (1,), 1: (2,), 2: (1,)})
    before_the_next_write(monkeypatch, zk, lambda: zk.set(paths.topic("t"), added))
    requests.write_assignments({T0: (3, 1), TopicPartition("gone", 0): (1,)})
    assert nodes.encode_assignment({0: (3, 1), 1: (2,), 2: (1,)}) == zk.get(paths.topic("t")).data
    assert not zk.exists(paths.topic("gone"))


def test_moves_are_taken_from_the_request_as_it_is(
    requests: RequestZnodes, zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished moves are taken out of the present request. The last ones delete the znode."""
    less = nodes.encode_reassignment({T0: (3,)})
    before_the_next_write(monkeypatch, zk, lambda: zk.set(paths.REASSIGN_PARTITIONS, less))
    requests.remove_reassignments([T1])
    assert less == zk.get(paths.REASSIGN_PARTITIONS).data
    requests.remove_reassignments([T0])
    assert not zk.exists(paths.REASSIGN_PARTITIONS)


def test_a_request_for_nothing_is_removed(requests: RequestZnodes, zk: ZkClient) -> None:
    """Tools refuse a request while there is one, and nothing else would end this one."""
    zk.put(paths.REASSIGN_PARTITIONS, nodes.encode_reassignment({}))
    zk.put(paths.PREFERRED_ELECTION, nodes.encode_preferred_election([]))
    assert not requests.reassignments()
    assert not requests.preferred_elections()
    assert not zk.exists(paths.REASSIGN_PARTITIONS)
    assert not zk.exists(paths.PREFERRED_ELECTION)


def test_a_state_that_cannot_be_read_is_watched(zk: ZkClient) -> None:
    """A move whose state znode cannot be parsed waits until it is repaired. Other moves
    continue."""
    store, state = ClusterStore(zk), LeaderAndIsr(1, 0, (1,), -1, 1)
    zk.ensure(paths.topic(T0.topic))
    made = store.create_leader_and_isr({T0: state, T1: state})
    path = paths.partition_state(*T0)
    zk.put(path, "no json")
    changed: queue.SimpleQueue[str] = queue.SimpleQueue()
    assert {T1: made[T1]} == RequestZnodes(store, 0, changed.put).watch_states([T0, T1])
    zk.put(path, nodes.encode_leader_and_isr(state))
    assert path == changed.get(timeout=20)


def test_a_topic_and_the_request_to_delete_it_go_together(
    requests: RequestZnodes, zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic is gone exactly when the request for its deletion is, and its configuration before
    both: whenever this controller dies, the next one neither leaves the configuration nor deletes a
    new topic of that name. A topic that a tool has removed meanwhile is no error."""
    znodes = [paths.topic_config("t"), paths.topic("t"), paths.delete_topic("t")]
    zk.put(paths.topic_config("t"), nodes.encode_topic_config({}))
    zk.put(paths.partition_state(*T0), "")
    seen = []

    def noted(write: Callable[..., object]) -> Callable[..., object]:
        def noting(*args: object, **keywords: object) -> object:
            seen.append([zk.exists(path) for path in znodes])
            return write(*args, **keywords)

        return noting

    for name in ("write_all", "multi"):
        monkeypatch.setattr(zk, name, noted(getattr(zk, name)))
    requests.remove_topic("t")
    assert [[True] * 3, [False, True, True], [False, True, True]] == seen
    assert not any(map(zk.exists, znodes))
    zk.put(paths.delete_topic("t"), nodes.encode_delete_topic())
    requests.remove_topic("t")
    assert not zk.exists(paths.delete_topic("t"))


def test_a_new_topic_survives_the_end_of_the_deletion_of_the_former(
    requests: RequestZnodes, zk: ZkClient
) -> None:
    """ZooKeeper has done the last write of a deletion, but the connection was lost, and meanwhile a
    client created the topic again. When the controller writes once more, the new one stays, and its
    configuration too."""

    def done_but_lost(steps: Sequence[Step], *, again: bool) -> list[Any]:
        patch.undo()
        zk.multi(steps)
        ClusterStore(zk).create_topic("t", {0: (1,)}, {})
        return zk.multi(steps, again=again)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zk, "multi", done_but_lost)
        requests.remove_topic("t")
    assert zk.exists(paths.topic("t"))
    assert zk.exists(paths.topic_config("t"))


def test_what_others_put_below_a_request_goes_with_it(
    requests: RequestZnodes, zk: ZkClient
) -> None:
    """Any client can create znodes below those of tools and topics. ZooKeeper deletes no znode that
    has children, so they are deleted before; a controller that failed there would fail again in
    every term."""
    removed: dict[str, Callable[[], None]] = {
        paths.REASSIGN_PARTITIONS: lambda: requests.remove_reassignments([T0, T1]),
        paths.PREFERRED_ELECTION: requests.remove_preferred_elections,
        paths.isr_change("isr_change_1"): lambda: requests.remove_isr_changes(["isr_change_1"]),
        paths.delete_topic("u"): lambda: requests.remove_deletion("u"),
        paths.topic("t"): lambda: requests.remove_topic("t"),
    }
    for path, remove in removed.items():
        for one in {path, paths.delete_topic("t")}:
            zk.ensure(f"{one}/other/below")
        remove()
        assert not zk.exists(path)


WRITES: dict[str, Callable[[RequestZnodes], None]] = {
    "an assignment": lambda requests: requests.write_assignments({T0: (3, 1)}),
    "the end of some moves": lambda requests: requests.remove_reassignments([T0]),
    "the end of all moves": lambda requests: requests.remove_reassignments([T0, T1]),
    "the end of an election": lambda requests: requests.remove_preferred_elections(),
    "the end of a topic": lambda requests: requests.remove_topic("t"),
    "the end of a deletion": lambda requests: requests.remove_deletion("t"),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_controller_that_was_replaced_writes_nothing(
    requests: RequestZnodes, zk: ZkClient, write: str
) -> None:
    """A replaced controller writes nothing: the next one has read these znodes and acts on them."""
    written = [
        paths.topic("t"),
        paths.REASSIGN_PARTITIONS,
        paths.PREFERRED_ELECTION,
        paths.delete_topic("t"),
    ]
    before = [zk.get(path) for path in written]
    zk.set(paths.CONTROLLER_EPOCH, "2")
    with pytest.raises(ControllerMoved):
        WRITES[write](requests)
    assert before == [zk.get(path) for path in written]
