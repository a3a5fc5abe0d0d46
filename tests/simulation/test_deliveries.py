"""What counts as received and committed by a ZooKeeper group."""

from __future__ import annotations

import pytest

from kafka08.simulation.members import GROUP, Deliveries
from kafka08.simulation.network import Network
from kafka08.simulation.zookeeper import ADDRESS, SimZooKeeper
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.model.server import Server
from kafka08.zk.operations import Create
from kafka08.zk.zookeeper import SessionSettings
from tests.simulation.conftest import STEPS, NewProcess

OWNED, FREE = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def wrong() -> list[str]:
    return []


@pytest.fixture
def deliveries(network: Network, new_process: NewProcess, wrong: list[str]) -> Deliveries:
    """Of a group whose member "new" owns one partition of the two."""
    zookeeper = SimZooKeeper(network, Server())
    process = new_process("new")
    session = zookeeper.session(process, SessionSettings(ADDRESS))
    owner = paths.owner(GROUP, *OWNED)

    def claim() -> None:
        session.start()
        parents = [owner[:end] for end, letter in enumerate(owner) if letter == "/" and end]
        for path, data in [*((parent, "") for parent in parents), (owner, "new-0")]:
            answer = session.send(Create(path, data))
            answer.wait(60)
            answer.outcome()
        network.scheduler.is_over = True

    process.spawn(claim, (), "claim")
    network.scheduler.run(STEPS)
    return Deliveries(zookeeper, wrong.append)


def test_only_the_owner_may_be_handed_a_message(deliveries: Deliveries, wrong: list[str]) -> None:
    """Neither may a former one, nor anybody while it has no owner."""
    deliveries.note("new", OWNED, 7)
    assert wrong == []
    deliveries.note("old", OWNED, 7)
    deliveries.note("new", FREE, 7)
    assert wrong == [
        "old was handed [t,0] offset 7, which new-0 owns",
        "new was handed [t,1] offset 7, which None owns",
    ]


def test_only_the_owners_commits_count(deliveries: Deliveries) -> None:
    """A former owner may hear of its commit when its successor has started from an earlier one."""
    deliveries.committed("new", OWNED, 7)
    deliveries.committed("new", OWNED, 6)
    deliveries.committed("old", OWNED, 9)
    deliveries.committed("old", FREE, 9)
    assert deliveries.committed_offsets == {OWNED: 7}
