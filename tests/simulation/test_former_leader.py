"""A leader that was replaced and does not hear of it: only clients and ZooKeeper reach it.

Drawn runs hardly ever find this, so these have a script instead of faults.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import pytest

from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.replication.unconfirmed_leaderships import CHECK_S, UnconfirmedLeaderships
from kafka08.client.cluster import ClusterClient
from kafka08.errors import NotCoordinatorForConsumer
from kafka08.network.connection import Connection
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.simulation.cluster import BROKER_PORT, SimBroker
from kafka08.simulation.plan import Plan
from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace
from kafka08.simulation.watched_logs import watched_logs
from kafka08.simulation.workload import TOPIC
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from tests.simulation.scripted import quiet_plan, wait_until

STEP_S: Final = 60.0
WATCHED_S: Final = 30.0
GROUP: Final = "watched"
OLD, NEW = 1, 2
"""Offsets: the one that is committed to the former coordinator, and the one to its successor."""
OFFSETS: Final = TopicPartition(OFFSETS_TOPIC, 0)
LAG_S: Final = 4.0
"""Followers that do not fetch for so long leave the ISR."""


def plan_without_faults(level: str) -> Plan:
    properties = {
        "auto.leader.rebalance.enable": "false",
        "offsets.topic.num.partitions": "1",
        "replica.lag.time.max.ms": str(int(LAG_S * 1000)),
    }
    return quiet_plan(level, properties, retries=1000, pause_seconds=0.2)


class Script:
    """What happens in the run. The other brokers cannot reach the coordinator of a group; its
    session expires, it has a new one at once, and another broker is elected. A member commits
    there. Then the former coordinator is asked until it stops leading, at most WATCHED_S.

    told          the offsets that it told, or minus the error code
    led_seconds   how long it led beside its successor
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.told: list[int] = []
        self.led_seconds = 0.0
        run.faults.run = self._play  # type: ignore[assignment, method-assign]

    def _play(self, _seconds: float) -> None:
        run = self._run
        with closing(ClusterClient(run.target.bootstrap, runtime=run.director)) as cluster:
            cluster.coordinator(GROUP)
        self._until(lambda: all(one.partition(OFFSETS) for one in run.brokers))
        former = self._leader()
        self._until(lambda: len(self._partition(former).isr) == 3)
        self._until(lambda: self._commit(former, OLD) == 0)
        for one in run.brokers:
            if one is not former:
                run.network.cut(former.host, one.host)
                run.network.cut(one.host, former.host)
        links = run.zookeeper.links.values()
        run.zookeeper.expire_session(next(one for one in links if one.process is former.process))
        self._until(lambda: self._leader() is not former)
        replaced_at = run.scheduler.now
        self._until(lambda: self._commit(self._leader(), NEW) == 0)
        while self._partition(former).is_leader and self.led_seconds < WATCHED_S:
            self.told.append(self._fetch(former))
            run.director.sleep(0.1)
            self.led_seconds = run.scheduler.now - replaced_at
        self.told.append(self._fetch(former))

    def _leader(self) -> SimBroker:
        """The coordinator, according to ZooKeeper."""
        state = self._run.zookeeper.leader_and_isr(OFFSETS)
        assert state is not None
        return next(one for one in self._run.brokers if one.id == state.leader)

    def _partition(self, broker: SimBroker) -> Partition:
        found = broker.partition(OFFSETS)
        assert found is not None
        return found

    def _commit(self, broker: SimBroker, offset: int) -> int:
        topics = [OffsetCommitTopic(TOPIC, [OffsetCommitPartition(0, offset, "")])]
        response = self._send(broker, OffsetCommitRequest(GROUP, topics, version=1))
        code: int = response.topics[0].partitions[0].error_code
        return code

    def _fetch(self, broker: SimBroker) -> int:
        request = OffsetFetchRequest(GROUP, [OffsetFetchTopic(TOPIC, [0])], version=1)
        found = self._send(broker, request).topics[0].partitions[0]
        offset: int = -found.error_code or found.offset
        return offset

    def _send(self, broker: SimBroker, request: Any) -> Any:
        with Connection(broker.host, BROKER_PORT, runtime=self._run.director) as connection:
            return connection.send(request)

    def _until(self, happens: Callable[[], bool]) -> None:
        wait_until(self._run, happens, STEP_S)


def played(level: str) -> Script:
    run = Run(1, plan_without_faults(level), Trace())
    script = Script(run)
    with watched_logs(run.on_caught):
        assert run.go() is None
    return script


@pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
def test_it_finds_its_successor_in_zookeeper(level: str) -> None:
    """It looks there when its new session begins."""
    script = played(level)
    assert script.led_seconds < 2 * CHECK_S
    assert {-NotCoordinatorForConsumer.code} == set(script.told)


@pytest.mark.parametrize("level", ["0.8.2", "0.10.2"])
def test_it_finds_its_successor_when_the_followers_are_gone(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it does not look, it tries to take the followers that left it out of the ISR, and finds
    its successor then. Until then it tells no offsets under the safe profile: it has not heard who
    leads."""
    monkeypatch.setattr(UnconfirmedLeaderships, "session_begins", lambda *_: None)
    script = played(level)
    assert LAG_S / 2 < script.led_seconds < 3 * LAG_S
    assert {-NotCoordinatorForConsumer.code} == set(script.told)


def test_one_that_looks_nowhere_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 0.8.2.2 to 0.10.2.2, it goes on leading for ever, and tells the old offset."""
    monkeypatch.setattr(UnconfirmedLeaderships, "is_unconfirmed", lambda *_: False)
    monkeypatch.setattr(ReplicaManager, "on_leader_announced", lambda *_: None)
    script = played("0.8.2")
    assert script.led_seconds >= WATCHED_S
    assert {OLD} == set(script.told)
