"""A leader that leads no more for a while, and a follower that hears nothing of it.

Drawn runs hardly ever find this, so these have a script instead of faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from kafka08.admin.client import AdminClient
from kafka08.broker.replica.partition import Partition
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.plan import Plan
from kafka08.simulation.run import Run
from kafka08.simulation.trace import Trace
from kafka08.simulation.watched_logs import watched_logs
from kafka08.simulation.zookeeper import ADDRESS
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from tests.simulation.scripted import quiet_plan, wait_until

STEP_S: Final = 30.0


def plan_without_faults() -> Plan:
    properties = {"auto.leader.rebalance.enable": "false", "replica.lag.time.max.ms": "10000"}
    return quiet_plan(
        "0.8.2",
        properties,
        partitions=3,
        new_producers=6,
        retries=1000,
        in_flight=5,
        pause_seconds=0.05,
    )


class Script:
    """What happens in the run. Of the three replicas `second` leads for a while, and is the
    controller; `follower` is suspended meanwhile, and then cut off from the controller."""

    def __init__(self, run: Run) -> None:
        self._run = run
        run.faults.run = self._play  # type: ignore[assignment, method-assign]

    def _play(self, _seconds: float) -> None:
        run = self._run
        tp, leader, second, follower = self._roles()
        assert follower.process is not None
        run.director.sleep(1.0)
        run.network.cut(leader.host, second.host)
        self._until(lambda: end(follower, tp) > end(second, tp) + 1)
        follower.process.stop()
        known = end(follower, tp)
        # Its request is answered, so it is not refused when the leader stops leading.
        self._until(lambda: end(leader, tp) > known)
        run.director.sleep(0.1)
        lost = end(leader, tp)
        run.network.cut(second.host, follower.host)
        links = run.zookeeper.links.values()
        run.zookeeper.expire_session(next(one for one in links if one.process is leader.process))
        self._until(lambda: partition(second, tp).is_leader)
        run.network.mend(leader.host, second.host)
        self._until(lambda: end(second, tp) > partition(second, tp).epoch_start)
        self._until(lambda: leader.id in partition(second, tp).isr)
        with AdminClient(ADDRESS, runtime=run.director) as admin:
            admin.elect_preferred()
        self._until(lambda: partition(leader, tp).is_leader and end(leader, tp) > lost)
        follower.process.resume()
        run.director.sleep(2.0)

    def _roles(self) -> tuple[TopicPartition, SimBroker, SimBroker, SimBroker]:
        """A partition and its replicas, of which the controller is the second."""
        znode = self._run.zookeeper.server.find(paths.CONTROLLER)
        assert znode is not None
        assert znode.data is not None
        controller = nodes.decode_controller(znode.data.decode()).broker_id
        brokers = {broker.id: broker for broker in self._run.brokers}
        for tp in self._run.target.partitions:
            first, second, third = partition(brokers[controller], tp).replicas
            if second == controller:
                return tp, brokers[first], brokers[second], brokers[third]
        raise AssertionError("the controller is nowhere the second replica")

    def _until(self, happens: Callable[[], bool]) -> None:
        wait_until(self._run, happens, STEP_S)


def partition(broker: SimBroker, tp: TopicPartition) -> Partition:
    found = broker.partition(tp)
    assert found is not None
    return found


def end(broker: SimBroker, tp: TopicPartition) -> int:
    log = partition(broker, tp).log
    assert log is not None
    return log.log_end_offset


def verdict_of_run() -> str | None:
    run = Run(1, plan_without_faults(), Trace())
    Script(run)
    with watched_logs(run.on_caught):
        return run.go()


def test_a_leader_that_leads_again_does_not_believe_its_followers() -> None:
    """It has other messages than before. A follower that goes on at its log end is refused once,
    compares its log, and gets what it lacks."""
    assert verdict_of_run() is None


def test_a_leader_that_believes_them_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the refusal the follower stays in the ISR with other messages than its leader, also
    below the HW, under the safe profile."""
    monkeypatch.setattr(Partition, "doubts", lambda *_: False)
    verdict = verdict_of_run()
    assert verdict is not None
    assert "which is in the ISR, have different messages" in verdict
