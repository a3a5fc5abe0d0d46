"""Connections to the simulated ZooKeeper that break at a write."""

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
    """A read passes. The write is applied or not, and its client cannot tell."""
    zookeeper = SimZooKeeper(network, Server())
    process = new_process("client")
    session = zookeeper.session(process, SessionSettings(ADDRESS))
    outcomes: list[object] = []

    def use() -> None:
        session.start()
        for operation in (Exists("/a"), Create("/a"), Exists("/a")):
            answer = session.send(operation)
            answer.wait(60)
            outcomes.append(answer.outcome())
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
