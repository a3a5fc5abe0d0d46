"""The rules for a ZooKeeper group, on hand-made histories: one test for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kafka08.simulation.network import Network
from kafka08.simulation.zookeeper import ADDRESS, SimZooKeeper
from kafka08.simulation.zookeeper_group_history import GROUP, ZooKeeperGroupHistory
from kafka08.structs import NO_OFFSET, TopicPartition
from kafka08.zk import paths
from kafka08.zk.model.server import Server
from kafka08.zk.operations import Create
from kafka08.zk.zookeeper import SessionSettings
from tests.simulation.conftest import STEPS, NewProcess

OWNED, FREE = TopicPartition("t", 0), TopicPartition("t", 1)
Made = Callable[[Mapping[str, str]], ZooKeeperGroupHistory]


@pytest.fixture
def wrong() -> list[str]:
    return []


@pytest.fixture
def made(network: Network, new_process: NewProcess, wrong: list[str]) -> Made:
    """Makes a history with these znodes. The group's offsets are in ZooKeeper alone."""

    def make(znodes: Mapping[str, str]) -> ZooKeeperGroupHistory:
        zookeeper = SimZooKeeper(network, Server())
        process = new_process("new")
        session = zookeeper.session(process, SessionSettings(ADDRESS))

        def create() -> None:
            session.start()
            made = {""}
            for path, data in znodes.items():
                ends = [end for end, letter in enumerate(path) if letter == "/" and end]
                for node in [*(path[:end] for end in ends), path]:
                    if node not in made:
                        made.add(node)
                        response = session.send(Create(node, data if node == path else ""))
                        response.wait(60)
                        response.outcome()
            network.scheduler.is_over = True

        process.spawn(create, (), "create")
        network.scheduler.run(STEPS)
        return ZooKeeperGroupHistory(zookeeper, [], wrong.append, is_safe=True, is_exact=True)

    return make


@pytest.fixture
def history(made: Made) -> ZooKeeperGroupHistory:
    """Of a group whose member "new" owns one partition of the two, and has claimed it at 7, after
    another had processed 0 to 6."""
    history = made({paths.owner(GROUP, *OWNED): "new-0", paths.offset(GROUP, *OWNED): "7"})
    for offset in range(7):
        history.processed(OWNED, offset)
    history.claimed("new", {OWNED: 7})
    return history


def test_1_only_the_owner_may_be_handed_a_message(
    history: ZooKeeperGroupHistory, wrong: list[str]
) -> None:
    """A message that is handed to a former owner, or while its partition has no owner, is a
    violation."""
    history.handed("new", OWNED, 7)
    assert wrong == []
    history.handed("old", OWNED, 7)
    history.handed("new", FREE, 7)
    assert wrong == [
        "old was handed [t,0] offset 7, which new owns",
        "new was handed [t,1] offset 7, which None owns",
    ]


def test_2_a_claim_begins_at_the_offset_in_zookeeper(
    history: ZooKeeperGroupHistory, wrong: list[str]
) -> None:
    """A claim at another offset than the one in ZooKeeper is a violation, and so is a first message
    at another one than that of the claim."""
    history.claimed("new", {OWNED: 6, FREE: NO_OFFSET})
    assert wrong == ["new begins [t,0] at 6, though ZooKeeper has offset 7"]
    history.handed("new", OWNED, 7)
    assert wrong[1:] == ["new was handed [t,0] offset 7 instead of 6"]


def test_2_no_claim_begins_before_a_commit_to_kafka(
    history: ZooKeeperGroupHistory, wrong: list[str]
) -> None:
    """A member that finds less than what was committed before it asked breaks the rule: it would
    process the log again."""
    before = history.least_offsets()
    history.committed("new", {OWNED: 7})
    history.found("new", {OWNED: NO_OFFSET}, before)
    least = history.least_offsets()
    history.found("new", {OWNED: 7, FREE: NO_OFFSET}, least)
    assert wrong == []
    history.found("new", {OWNED: NO_OFFSET}, least)
    assert wrong == [
        "new begins [t,0] at -1, though 7 was committed, by new; the partition belongs to new"
    ]


def test_2_with_both_stores_a_claim_begins_at_the_larger_offset(
    history: ZooKeeperGroupHistory, wrong: list[str]
) -> None:
    """A member of both stores that begins at the smaller of two offsets breaks the rule; a store
    without an offset is behind too."""
    history.starts("new", {OWNED: 7, FREE: 3}, {"kafka": {OWNED: 7, FREE: 3}})
    history.starts("new", {OWNED: 7}, {"kafka": {OWNED: 5}, "zookeeper": {OWNED: 7}})
    assert wrong == []
    history.starts("new", {OWNED: NO_OFFSET}, {"kafka": {OWNED: 7}, "zookeeper": {}})
    assert wrong == ["new begins [t,0] at -1, though it has found {'kafka': 7, 'zookeeper': -1}"]


def test_2_only_the_owners_commits_count(history: ZooKeeperGroupHistory) -> None:
    """A commit counts if it is acknowledged to the owner of its partition: the successor of a
    former owner may have started from an earlier offset."""
    history.committed("new", {OWNED: 7})
    history.committed("new", {OWNED: 6})
    history.committed("old", {OWNED: 9, FREE: 9})
    assert history.committed_offsets == {OWNED: 7}


def test_3_an_offset_in_zookeeper_follows_processed_messages(
    history: ZooKeeperGroupHistory, wrong: list[str]
) -> None:
    """An offset after a message that was handed out, but not processed, is a violation."""
    history.handed("new", OWNED, 7)
    history.stored("new", OWNED, 7)
    assert wrong == []
    history.stored("new", OWNED, 8)
    assert wrong == ["new committed [t,0] offset 8, but no member has processed 7"]


def test_4_a_member_that_stops_has_committed_what_it_finished(
    history: ZooKeeperGroupHistory, wrong: list[str]
) -> None:
    """A clean stop that leaves finished messages uncommitted is a violation."""
    history.stopped("new", {OWNED: 7}, {OWNED: 7})
    assert wrong == []
    history.stopped("new", {OWNED: 7, FREE: 1}, {OWNED: 6})
    assert wrong == [
        "new has stopped and finished [t,0] before 7, but committed 6",
        "new has stopped and finished [t,1] before 1, but committed None",
    ]


@pytest.mark.parametrize(
    ("owners", "uneven"),
    [("aab", ""), ("abb", "{'a': 1, 'b': 2}"), ("aaa", "{'a': 3}"), ("aa", "{'a': 2, None: 1}")],
)
def test_the_first_members_have_one_partition_more(made: Made, owners: str, uneven: str) -> None:
    """Two members share three partitions as 0.8.2.2's range assignor does."""
    partitions = [TopicPartition("t", number) for number in range(3)]
    history = made(
        {paths.owner(GROUP, *tp): of for tp, of in zip(partitions, owners, strict=False)}
    )
    assert history.uneven(2, partitions) == uneven
