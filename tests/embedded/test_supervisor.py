"""The process of a cluster goes on when a broker dies, and does what it is asked to do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka08.embedded.broker_state import BrokerState, Condition
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.control import ControlServer
from kafka08.embedded.detached import ClusterDirectory
from kafka08.embedded.supervisor import Supervisor
from kafka08.errors import KafkaError, ZooKeeperError


class Broker:
    """As `EmbeddedBroker`, without a process."""

    def __init__(self, broker_id: int) -> None:
        self.id = broker_id
        self.condition: Condition = "running"
        self.unnoted = False
        self.process = SimpleNamespace(describe_failure=lambda: f"broker {broker_id} ended")

        self.is_paused = False

    @property
    def running(self) -> bool:
        return self.condition == "running"

    @property
    def state(self) -> BrokerState:
        return BrokerState(self.id, "h:1", self.condition, None, None, 0.0, "/log")

    def die(self) -> None:
        self.condition, self.unnoted = "died", True

    def note_death(self) -> bool:
        noted, self.unnoted = self.unnoted, False
        return noted

    def stop(self) -> None:
        assert self.running
        self.condition = "stopped"

    def kill(self) -> None:
        assert self.running
        self.condition = "killed"


class Cluster:
    """As `EmbeddedCluster`, with three such brokers."""

    def __init__(self) -> None:
        self.brokers = [Broker(number) for number in range(3)]
        self.zookeeper = SimpleNamespace(connect_string="h:2181", check_alive=lambda: None)
        self.bootstrap = "h:1"
        self.cannot_start = False
        self.expired: list[int] = []

    def find(self, broker: Broker | int) -> Broker:
        if isinstance(broker, Broker):
            return broker
        if broker not in range(3):
            raise KafkaError(f"there is no broker {broker}; the cluster has: 0, 1, 2")
        return self.brokers[broker]

    def kill(self, broker: Broker, *, expire: bool) -> None:
        assert not expire
        broker.kill()

    def expire_session(self, broker: Broker) -> None:
        self.expired.append(broker.id)

    def restart(self, broker: Broker) -> None:
        if self.cannot_start:
            broker.die()
            raise KafkaError("port taken")
        broker.condition = "running"


class Seat:
    """A supervisor, what it said, and what others read."""

    def __init__(self, path: Path) -> None:
        self.cluster = Cluster()
        self.directory = ClusterDirectory(path)
        self.directory.claim()
        self.said: list[int] = []
        self.supervisor = Supervisor(
            cast(EmbeddedCluster, self.cluster),
            self.directory,
            cast(ControlServer, SimpleNamespace()),
            lambda state: self.said.append(state.id),
        )
        self.supervisor.announce()

    def ask(self, verb: str, broker: int) -> str:
        """The broker's state after a request."""
        text: str = self.supervisor.verbs.execute(verb, {"broker": broker})["text"]
        return text

    def conditions(self) -> list[str]:
        state = ClusterDirectory(self.directory.path).running()
        assert state is not None
        return [broker.condition for broker in state.brokers]


@pytest.fixture
def seat(tmp_path: Path) -> Any:
    seat = Seat(tmp_path)
    yield seat
    seat.directory.release()


def test_a_death_is_reported_once(seat: Seat) -> None:
    """The terminal and other commands show the death; the other brokers continue."""
    seat.supervisor.look()
    seat.cluster.brokers[1].die()
    seat.supervisor.look()
    seat.supervisor.look()
    assert seat.said == [1]
    assert seat.conditions() == ["running", "died", "running"]


def test_it_ends_with_the_last_broker(seat: Seat) -> None:
    """The supervisor ends with the last broker, and gives its end as the cause."""
    seat.cluster.brokers[0].die()
    seat.supervisor.look()
    seat.cluster.brokers[1].kill()
    seat.supervisor.look()
    seat.cluster.brokers[2].die()
    with pytest.raises(KafkaError, match="no broker is running: broker 2 ended"):
        seat.supervisor.look()
    assert seat.said == [0, 2]


def test_requested_stops_do_not_end_it(seat: Seat) -> None:
    """The supervisor continues even if all brokers were stopped by request."""
    for number in range(3):
        seat.ask("stop", number)
        seat.supervisor.look()
    assert seat.conditions() == ["stopped"] * 3
    assert seat.said == []


def test_it_ends_with_zookeeper(seat: Seat) -> None:
    """The supervisor ends with ZooKeeper, and gives its end as the cause."""

    def check_alive() -> None:
        raise ZooKeeperError("ZooKeeper ended")

    seat.cluster.zookeeper.check_alive = check_alive
    with pytest.raises(ZooKeeperError, match="ZooKeeper ended"):
        seat.supervisor.look()


def test_it_carries_out_requests(seat: Seat) -> None:
    """Each request changes a broker and returns its state; a broker that does not run is not
    stopped again."""
    assert seat.ask("kill", 1).startswith("Broker 1 was killed")
    assert seat.ask("stop", 1).startswith("Broker 1 was killed")
    assert seat.conditions() == ["running", "killed", "running"]
    assert seat.ask("restart", 1).startswith("Broker 1 runs")
    assert seat.cluster.expired == [1]
    assert seat.ask("restart", 2).startswith("Broker 2 runs")
    assert seat.cluster.expired == [1]
    assert seat.conditions() == ["running"] * 3


def test_an_unknown_id_is_refused(seat: Seat) -> None:
    """The error lists the ids of the cluster."""
    with pytest.raises(KafkaError, match="there is no broker 3; the cluster has: 0, 1, 2"):
        seat.ask("kill", 3)


def test_a_failed_restart_is_an_error_of_its_request(seat: Seat) -> None:
    """The cluster continues, even without any broker."""
    for number in range(3):
        seat.ask("stop", number)
    seat.cluster.cannot_start = True
    with pytest.raises(KafkaError, match="port taken"):
        seat.ask("restart", 0)
    assert seat.conditions() == ["died", "stopped", "stopped"]
    seat.supervisor.look()


def test_a_full_disk_does_not_end_it(
    seat: Seat, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The supervisor continues and reports that the state on disk is out of date."""

    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(ClusterDirectory, "_write", fail)
    seat.cluster.brokers[1].die()
    seat.supervisor.look()
    assert "old state of the brokers: No space left on device" in caplog.text
    assert seat.said == [1]
