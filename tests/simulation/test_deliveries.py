"""Messages that count as received and committed by a ZooKeeper group."""

from __future__ import annotations

import pytest

from kafka08.simulation.members import GROUP, Deliveries
from kafka08.simulation.network import Network
from kafka08.simulation.zookeeper import ADDRESS, SimZooKeeper
from kafka08.structs import NO_OFFSET, TopicPartition
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
            response = session.send(Create(path, data))
            response.wait(60)
            response.outcome()
        network.scheduler.is_over = True

    process.spawn(claim, (), "claim")
    network.scheduler.run(STEPS)
    return Deliveries(zookeeper, [], wrong.append, is_safe=True)


def test_only_the_owner_may_be_handed_a_message(deliveries: Deliveries, wrong: list[str]) -> None:
    """A message that is handed to a former owner, or while its partition has no owner, is a
    violation."""
    deliveries.note("new", OWNED, 7)
    assert wrong == []
    deliveries.note("old", OWNED, 7)
    deliveries.note("new", FREE, 7)
    assert wrong == [
        "old was handed [t,0] offset 7, which new-0 owns",
        "new was handed [t,1] offset 7, which None owns",
    ]


def test_only_the_owners_commits_count(deliveries: Deliveries) -> None:
    """A commit counts if it is acknowledged to the owner of its partition: the successor of a
    former owner may have started from an earlier offset."""
    deliveries.committed("new", OWNED, 7)
    deliveries.committed("new", OWNED, 6)
    deliveries.committed("old", OWNED, 9)
    deliveries.committed("old", FREE, 9)
    assert deliveries.committed_offsets == {OWNED: 7}


def test_a_member_begins_at_no_offset_before_a_committed_one(
    deliveries: Deliveries, wrong: list[str]
) -> None:
    """A member that finds less than what was committed before it asked breaks the rule: it would
    process the log again."""
    before = deliveries.least_offsets()
    deliveries.committed("new", OWNED, 7)
    deliveries.found("new", {OWNED: NO_OFFSET}, before)
    least = deliveries.least_offsets()
    deliveries.found("new", {OWNED: 7, FREE: NO_OFFSET}, least)
    assert wrong == []
    deliveries.found("new", {OWNED: NO_OFFSET}, least)
    assert wrong == ["new begins [t,0] at -1, though 7 was committed"]
