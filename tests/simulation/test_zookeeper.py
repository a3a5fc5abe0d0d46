"""The simulated ZooKeeper: connections that break at a write, sessions that outlive an outage."""

from __future__ import annotations

from functools import partial

import pytest

from kafka08.errors import SessionLost
from kafka08.simulation.network import Network
from kafka08.simulation.zookeeper import ADDRESS, AtNextWrite, SimZooKeeper, WriteFault
from kafka08.zk.model.server import Server
from kafka08.zk.operations import Create, Exists
from kafka08.zk.zookeeper import SessionSettings
from tests.simulation.conftest import STEPS, NewProcess


@pytest.mark.parametrize("when", AtNextWrite)
def test_a_connection_breaks_at_its_next_write(
    network: Network, new_process: NewProcess, when: AtNextWrite
) -> None:
    """A connection with a fault survives reads and breaks at its next write, which is applied or
    not; its client cannot know."""
    zookeeper = SimZooKeeper(network, Server())
    process = new_process("client")
    session = zookeeper.session(process, SessionSettings(ADDRESS))
    outcomes: list[object] = []

    def use() -> None:
        session.start()
        for operation in (Exists("/a"), Create("/a"), Exists("/a")):
            response = session.send(operation)
            response.wait(60)
            outcomes.append(response.outcome())
            [link] = zookeeper.links.values() or [None]
            if link is not None and len(outcomes) == 1:
                breaks = partial(zookeeper.break_link, link, loses_requests=True)
                link.fault = WriteFault(when, breaks)
        network.scheduler.is_over = True

    process.spawn(use, (), "client")
    network.scheduler.run(STEPS)
    before, created, after = outcomes
    assert before is None
    assert isinstance(created, SessionLost)
    assert (after is not None) == (when is AtNextWrite.AFTER)


def test_a_session_outlives_an_outage(network: Network, new_process: NewProcess) -> None:
    """A server that is down expires no session: after its start each has its whole timeout."""
    zookeeper = SimZooKeeper(network, Server())
    process = new_process("client")
    session = zookeeper.session(process, SessionSettings(ADDRESS))
    ids: list[int | None] = []

    def use() -> None:
        session.start()
        process.sleep(5.0)
        ids.append(session.session_id)
        zookeeper.stop()
        process.sleep(1000.0)
        zookeeper.start()
        process.sleep(5.0)
        ids.append(session.session_id)
        network.scheduler.is_over = True

    process.spawn(use, (), "client")
    network.scheduler.run(STEPS)
    assert ids[0] is not None
    assert ids[0] == ids[1]
