"""Callbacks of a ConsumerConnector's rebalances, and commits of chosen offsets."""

from __future__ import annotations

import pytest

from kafka08.consumer import ConsumerConnector
from kafka08.errors import MessageStreamsExist
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Create, Delete
from tests.consumer.groups import MakeMember, PaperCluster, expire_session, owned
from tests.waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def committed(cluster: PaperCluster) -> dict[int, int]:
    found = GroupStore(cluster.store.zk).offsets("g", [T0, T1])
    return {tp.partition: offset for tp, offset in found.items()}


class Calls:
    """The callbacks of a member that commits what it is about to lose, at offset 7."""

    def __init__(self, member: ConsumerConnector) -> None:
        self.log: list[tuple[str, list[TopicPartition]]] = []
        self._member = member
        member.set_rebalance_callbacks(on_assigned=self.assigned, on_revoked=self.revoked)

    def assigned(self, partitions: list[TopicPartition]) -> None:
        self.log.append(("assigned", partitions))

    def revoked(self, partitions: list[TopicPartition]) -> None:
        self.log.append(("revoked", partitions))
        self._member.commit_offsets(dict.fromkeys(partitions, 7))


def test_a_member_commits_what_it_is_about_to_lose(
    cluster: PaperCluster, member: MakeMember
) -> None:
    """The commit in the callback counts, and comes before another member owns the partition."""
    cluster.create_topic("t", 2)
    first = member("a", auto_commit_enable=False)
    calls = Calls(first)
    first.create_message_streams({"t": 1})
    assert calls.log == [("assigned", [T0, T1])]
    second = member("b")
    second.create_message_streams({"t": 1})
    until(lambda: owned(second) == [T1])
    assert calls.log[1:] == [("revoked", [T1])]
    assert committed(cluster) == {1: 7}
    second.shutdown()
    until(lambda: calls.log[2:] == [("assigned", [T1])])


def test_a_commit_for_a_topic_made_again_moves_nobody(
    cluster: PaperCluster, member: MakeMember
) -> None:
    """Its offset is of the former topic: the new one is read from its start all the same."""
    cluster.create_topic("t", 2)
    first = member("a", auto_commit_enable=False)
    calls = Calls(first)
    first.create_message_streams({"t": 1})
    text = cluster.zk.get(paths.topic("t")).data or ""
    cluster.zk.multi([Delete(paths.topic("t")), Create(paths.topic("t"), text)])
    until(lambda: calls.log[1:] == [("revoked", [T0, T1]), ("assigned", [T0, T1])])
    assert committed(cluster) == {0: 0, 1: 0}


def test_the_partitions_of_a_lost_session_are_revoked(
    cluster: PaperCluster, member: MakeMember
) -> None:
    """Then a commit is too late, and its error in the callback is logged; the member goes on."""
    cluster.create_topic("t", 1)
    first = member("a")
    calls = Calls(first)
    first.create_message_streams({"t": 1})
    expire_session(first._member._zk)
    until(lambda: [what for what, _ in calls.log] == ["assigned", "revoked", "assigned"])
    assert committed(cluster) == {}
    assert owned(first) == [T0]


def test_chosen_offsets_are_those_of_owned_partitions(
    cluster: PaperCluster, member: MakeMember
) -> None:
    """Others are refused, before there are streams all of them. Callbacks are set before too."""
    cluster.create_topic("t", 1)
    first = member("a", auto_commit_enable=False)
    with pytest.raises(ValueError, match="owns no partition before it has streams"):
        first.commit_offsets({T0: 1})
    first.create_message_streams({"t": 1})
    first.commit_offsets({T0: 5})
    assert committed(cluster) == {0: 5}
    with pytest.raises(ValueError, match=r"does not own \[t,1\]"):
        first.commit_offsets({T0: 6, T1: 6})
    assert committed(cluster) == {0: 5}
    with pytest.raises(MessageStreamsExist):
        first.set_rebalance_callbacks(on_revoked=print)
