"""After a new ZooKeeper session a broker finds out whether it still leads what it led."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kafka08.broker.replication import unconfirmed_leaderships
from kafka08.broker.replication.unconfirmed_leaderships import CHECKS, UnconfirmedLeaderships
from kafka08.errors import SessionLost
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest, PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from kafka08.structs import LeaderAndIsr, TopicPartition
from tests.broker.world import BROKER_ID, CONTROLLER_EPOCH, Client, World

TP = TopicPartition("t", 0)


class Broker:
    """A broker that leads a partition, whose state ZooKeeper has. `pauses` counts those between
    two checks; each call of `during` happens in one."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World(directory)
        self.world.lead("t", isr=(1, 2), replicas=(1, 2))
        self.in_zookeeper(BROKER_ID, 0)
        self.pauses = 0
        self.during: list[Callable[[], object]] = []
        monkeypatch.setattr(self.world.runtime, "sleep", self._sleep)

    def _sleep(self, _seconds: float) -> None:
        self.pauses += 1
        assert self.pauses <= 2 * CHECKS, "it asks for ever"
        if self.during:
            self.during.pop(0)()

    @property
    def successors(self) -> UnconfirmedLeaderships:
        return self.world.context.unconfirmed_leaderships

    @property
    def leads(self) -> bool:
        is_leader: bool = self.world.partition("t").is_leader
        return is_leader

    def in_zookeeper(self, leader: int, leader_epoch: int) -> None:
        state = LeaderAndIsr(leader, leader_epoch, (leader,), 7, CONTROLLER_EPOCH)
        self.world.store.states[TP] = state

    def loses_session(self) -> None:
        self.world.store.session_id += 1

    def hears(self, *topics: str, connection: int | None = None) -> None:
        """Over a new connection, if none is named."""
        states = [
            PartitionStateInfo(topic, 0, CONTROLLER_EPOCH, BROKER_ID, 0, [1], 0, [1, 2])
            for topic in topics
        ]
        live = [LiveBroker.plaintext(BROKER_ID, "127.0.0.1", 19091)]
        request = UpdateMetadataRequest(9, CONTROLLER_EPOCH, states, live)
        number = next(NUMBERS) if connection is None else connection
        assert 0 == Client(self.world, number=number).call(request).error_code

    def is_led_again(self, epoch: int, connection: int) -> None:
        """The controller elects it."""
        state = PartitionStateInfo(
            "t", 0, CONTROLLER_EPOCH, BROKER_ID, epoch, [1, 2], epoch, [1, 2]
        )
        leaders = [BrokerEndpoint(BROKER_ID, "127.0.0.1", 19091)]
        request = LeaderAndIsrRequest(9, CONTROLLER_EPOCH, [state], leaders)
        assert 0 == Client(self.world, number=connection).call(request).error_code


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(tmp_path, monkeypatch)


def test_a_session_that_goes_on_leaves_no_doubt(broker: Broker) -> None:
    """A healthy broker asks ZooKeeper nothing."""
    assert not broker.successors.is_unconfirmed(TP)
    assert 0 == broker.pauses


def test_the_end_of_the_session_makes_all_doubtful(broker: Broker) -> None:
    """Already before the broker registers again."""
    broker.loses_session()
    assert broker.successors.is_unconfirmed(TP)


def test_a_successor_in_zookeeper_ends_the_leadership(broker: Broker) -> None:
    """Without a word of the controller."""
    broker.in_zookeeper(2, 1)
    broker.loses_session()
    broker.successors.session_begins()
    assert (False, 1) == (broker.leads, broker.pauses)


def test_a_successor_that_is_elected_later_ends_it(broker: Broker) -> None:
    """The controller may be slow: ZooKeeper is asked again."""
    doubts: list[bool] = []
    broker.during = [
        lambda: doubts.append(broker.successors.is_unconfirmed(TP)),
        lambda: broker.in_zookeeper(2, 1),
    ]
    broker.loses_session()
    broker.successors.session_begins()
    assert ([True], False, 3) == (doubts, broker.leads, broker.pauses)


def test_the_word_of_the_controller_ends_the_doubt(broker: Broker) -> None:
    """That of the partition; an UpdateMetadata of others does not."""
    broker.during = [lambda: broker.hears("other"), lambda: broker.hears("t")]
    broker.loses_session()
    broker.successors.session_begins()
    assert (True, 2) == (broker.leads, broker.pauses)
    assert not broker.successors.is_unconfirmed(TP)


def test_what_the_controller_sent_before_it_noticed_ends_no_doubt(broker: Broker) -> None:
    """A request over a connection from before the session: it may have been on its way, while the
    controller elected another leader. Over a later connection it does."""
    old = next(NUMBERS)
    doubts: list[bool] = []

    def doubted() -> None:
        doubts.append(broker.successors.is_unconfirmed(TP))

    broker.during = [
        lambda: broker.hears("t", connection=old),
        doubted,
        lambda: broker.is_led_again(1, old),
        doubted,
        lambda: broker.is_led_again(2, next(NUMBERS)),
    ]
    broker.loses_session()
    broker.successors.session_begins()
    assert ([True, True], 5) == (doubts, broker.pauses)
    assert not broker.successors.is_unconfirmed(TP)


def test_a_request_that_fails_ends_no_doubt_either(broker: Broker) -> None:
    """It may have raised the epoch before it failed."""
    old = next(NUMBERS)
    doubts: list[bool] = []

    def fail() -> None:
        state = PartitionStateInfo("t", 0, CONTROLLER_EPOCH, BROKER_ID, 1, [1, 2], 1, [1, 2])
        with suppress(RuntimeError), broker.successors.hearing([state], old):
            led = LeaderAndIsr(BROKER_ID, 1, (1, 2), 1, CONTROLLER_EPOCH)
            broker.world.partition("t").make_leader(led, (1, 2), 0.0)
            raise RuntimeError("a bug")
        doubts.append(broker.successors.is_unconfirmed(TP))

    broker.during = [fail, lambda: broker.hears("t")]
    broker.loses_session()
    broker.successors.session_begins()
    assert [True] == doubts


def test_a_controller_that_noticed_nothing_leaves_the_leader(broker: Broker) -> None:
    """That of 0.8.2.2, if the broker is back before it has looked, never sends anything."""
    broker.loses_session()
    broker.successors.session_begins()
    assert (True, CHECKS) == (broker.leads, broker.pauses)
    assert not broker.successors.is_unconfirmed(TP)


def test_a_new_leadership_of_ones_own_waits_for_the_controller(broker: Broker) -> None:
    """Another broker may have led in between, so that offsets in memory are old."""
    broker.in_zookeeper(BROKER_ID, 2)
    broker.during = [*[lambda: None] * (CHECKS + 2), lambda: broker.hears("t")]
    broker.loses_session()
    broker.successors.session_begins()
    assert (True, CHECKS + 3) == (broker.leads, broker.pauses)


def test_an_error_while_a_leadership_ends_is_followed_by_another_check(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nothing would end the doubt."""
    manager = broker.world.replica_manager
    hear = manager.on_leader_announced

    def fail_once(*_: object) -> None:
        monkeypatch.setattr(manager, "on_leader_announced", hear)
        raise RuntimeError("a bug")

    monkeypatch.setattr(manager, "on_leader_announced", fail_once)
    broker.in_zookeeper(2, 1)
    broker.loses_session()
    broker.successors.session_begins()
    assert (False, 2) == (broker.leads, broker.pauses)


def test_a_successor_in_a_deleted_topic_is_none_in_the_next_one(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is deleted and created again while the state of the former one is on its way."""

    def create_again(_wanted: object) -> object:
        states = dict(broker.world.store.states)
        deletion = StopReplicaRequest(9, CONTROLLER_EPOCH, 1, [StopReplicaPartition(*TP)])
        broker.world.replica_manager.stop_replicas(deletion)
        broker.world.lead("t", isr=(1, 2), replicas=(1, 2))
        return states

    monkeypatch.setattr(broker.world.store, "leader_and_isr", create_again)
    broker.in_zookeeper(2, 9)
    broker.loses_session()
    broker.successors.session_begins()
    assert broker.leads
    assert not broker.successors.is_unconfirmed(TP)


def test_thousands_are_read_in_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """To decode the states of all at once would hold the event loop; and what was read first is
    known first."""
    monkeypatch.setattr(unconfirmed_leaderships, "PARTITIONS_AT_ONCE", 2)
    others = ["a", "b", "c", "d"]
    for topic in others:
        broker.world.lead(topic)
    read = broker.world.store.leader_and_isr
    turns: list[tuple[int, bool]] = []

    def note(wanted: list[TopicPartition]) -> object:
        turns.append((len(wanted), broker.leads))
        return read(wanted)

    monkeypatch.setattr(broker.world.store, "leader_and_isr", note)
    broker.during = [lambda: None, lambda: None, lambda: broker.hears("t", *others)]
    broker.in_zookeeper(2, 1)
    broker.loses_session()
    broker.successors.session_begins()
    assert [(2, True), (2, False), (1, False)] == turns


@pytest.mark.parametrize("error", [SessionLost("no reply"), RuntimeError("a bug")])
def test_an_error_is_followed_by_another_check(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The greenlet goes on after any exception."""
    read = broker.world.store.leader_and_isr

    def fail_once(wanted: object) -> object:
        monkeypatch.setattr(broker.world.store, "leader_and_isr", read)
        raise error

    monkeypatch.setattr(broker.world.store, "leader_and_isr", fail_once)
    broker.in_zookeeper(2, 1)
    broker.loses_session()
    broker.successors.session_begins()
    assert (False, 2) == (broker.leads, broker.pauses)


def test_a_session_that_begins_during_a_check_is_checked_anew(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All checks of the earlier one count for nothing."""
    read = broker.world.store.leader_and_isr
    calls = 0

    def begin_another(wanted: list[TopicPartition]) -> object:
        nonlocal calls
        calls += 1
        if calls == CHECKS:
            broker.successors.session_begins()
        return read(wanted)

    monkeypatch.setattr(broker.world.store, "leader_and_isr", begin_another)
    broker.loses_session()
    broker.successors.session_begins()
    assert 2 * CHECKS == broker.pauses
