"""A broker comes back at another host, and leads at once what it led before.

Hosts have fixed names in drawn runs, so this has a script instead of faults.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest

from kafka08.broker.replication.replica_fetcher_manager import ReplicaFetcherManager
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.plan import Plan
from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace
from kafka08.simulation.watched_logs import watched_logs
from kafka08.structs import TopicPartition
from tests.simulation.scripted import quiet_plan, wait_until

STEP_S: Final = 60.0


def plan_without_faults() -> Plan:
    properties = {"auto.leader.rebalance.enable": "false", "replica.lag.time.max.ms": "4000"}
    return quiet_plan("0.8.2", properties, retries=1000, pause_seconds=0.2)


class Script:
    """What happens in the run: the followers are cut off from the leader until it is alone in the
    ISR. Then it ends with its session, and starts with its directory at a host that they reach.

    are_in_sync   whether the followers join the ISR again
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.are_in_sync = False
        run.faults.run = self._play  # type: ignore[assignment, method-assign]

    def _play(self, _seconds: float) -> None:
        run = self._run
        (tp,) = run.target.partitions
        self._until(lambda: len(self._isr(tp)) == 3)
        leader = self._leader(tp)
        for one in run.brokers:
            if one is not leader:
                run.network.cut(leader.host, one.host)
                run.network.cut(one.host, leader.host)
        self._until(lambda: self._isr(tp) == (leader.id,))
        assert leader.process is not None
        # A start at another address waits for the end of the session.
        for link in list(run.zookeeper.links.values()):
            if link.process is leader.process:
                run.zookeeper.expire_session(link)
        leader.hosts.kill(leader.process, silently=False)
        leader.host = f"{leader.host}-moved"
        leader.start()
        with suppress(AssertionError):
            self._until(lambda: len(self._isr(tp)) == 3)
            self.are_in_sync = True

    def _isr(self, tp: TopicPartition) -> tuple[int, ...]:
        state = self._run.zookeeper.leader_and_isr(tp)
        return () if state is None else state.isr

    def _leader(self, tp: TopicPartition) -> SimBroker:
        state = self._run.zookeeper.leader_and_isr(tp)
        assert state is not None
        return next(one for one in self._run.brokers if one.id == state.leader)

    def _until(self, happens: Callable[[], bool]) -> None:
        wait_until(self._run, happens, STEP_S)


def played() -> tuple[str | None, bool]:
    run = Run(1, plan_without_faults(), Trace())
    script = Script(run)
    with watched_logs(run.on_caught):
        return run.go(), script.are_in_sync


def test_its_followers_find_it_there() -> None:
    """No other replica was in sync, so no other broker led in between."""
    assert (None, True) == played()


def test_followers_that_stay_at_the_former_host_are_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those of 0.8.2.2, they never join the ISR again."""
    monkeypatch.setattr(ReplicaFetcherManager, "follows", lambda *_: True)
    monkeypatch.setattr(ReplicaFetcherManager, "moved", lambda *_: [])
    verdict, are_in_sync = played()
    assert verdict is not None
    assert not are_in_sync
