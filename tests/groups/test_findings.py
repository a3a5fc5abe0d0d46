"""Facts → findings: each kind by the smallest group that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kafka08.consumer.zookeeper.assignors import range_assign, round_robin_assign
from kafka08.groups import GroupFacts, Member, Owner, PartitionFacts, explain
from kafka08.structs import TopicPartition
from kafka08.zk.nodes import WHITE_LIST, ConsumerRegistration


def member(name: str, session: int, **streams: int) -> Member:
    asked = streams or {"tt": 1}
    return Member(f"g_{name}", ConsumerRegistration(asked), session)


def partition(
    number: int, owner: str | None, session: int = 1, topic: str = "tt"
) -> PartitionFacts:
    """A partition with a log from 10 to 100 and offset 50 in ZooKeeper."""
    held = None if owner is None else Owner(f"g_{owner}-0", session)
    return PartitionFacts(TopicPartition(topic, number), 50, None, 10, 100, True, 1, held)


def group(members: Sequence[Member], partitions: Sequence[PartitionFacts]) -> GroupFacts:
    topics: dict[str, tuple[int, ...]] = {}
    for facts in partitions:
        if facts.exists:
            topic, number = facts.topic_partition
            topics[topic] = (*topics.get(topic, ()), number)
    return GroupFacts("g", (1,), topics, tuple(members), tuple(partitions))


A, B = member("a", 1), member("b", 2)
SETTLED = group([A, B], [partition(0, "a"), partition(1, "b", 2)])


def kinds(facts: GroupFacts) -> list[str]:
    return [finding.kind for finding in explain(facts)]


def test_a_settled_group_has_no_findings() -> None:
    """Nothing is said where nothing is wrong."""
    assert explain(SETTLED) == []


def never_committed(number: int, owner: str | None, end: int = 100) -> PartitionFacts:
    """A partition with a log from 10 to `end` and an offset in no store."""
    return replace(partition(number, owner), zookeeper=None, log_end=end)


def test_a_partition_without_an_offset_may_be_skipped() -> None:
    """It has messages, and the next owner may begin at their end: the finding says what to do."""
    facts = group([], [partition(0, None), never_committed(1, None), never_committed(2, None)])
    found = {finding.kind: finding for finding in explain(facts)}
    finding = found["never-committed"]
    assert finding.problem
    assert finding.subject == "[tt,1], [tt,2]"
    assert "180 messages" in finding.says
    assert "largest (the default) skips" in finding.says
    assert "auto.offset.reset=smallest" in finding.advice
    assert "at least 230 messages are unread" in found["no-members"].says


def test_an_owner_that_has_not_committed_yet_is_a_note() -> None:
    """So it is in the first minute of every group."""
    [finding] = explain(group([A], [never_committed(0, "a")]))
    assert (finding.kind, finding.problem) == ("never-committed", False)


def test_an_empty_partition_needs_no_offset() -> None:
    """There is nothing to skip."""
    assert kinds(group([A], [replace(never_committed(0, "a", 0), log_start=0)])) == []


def test_a_topic_of_old_znodes_alone_is_not_unread() -> None:
    """Members have left it and committed nothing there: nothing is said of its offsets."""
    other = replace(partition(0, None, topic="uu"), zookeeper=None)
    assert "unread-topic" not in kinds(group([A], [partition(0, "a"), other]))


@pytest.mark.parametrize("assign", [range_assign, round_robin_assign])
def test_either_strategy_is_right(assign: object) -> None:
    """The group does not say which it uses, so owners by either one are no finding."""
    threads = {topic: ["g_a-0", "g_b-0"] for topic in ("tt", "uu")}
    owners = assign({"tt": range(3), "uu": range(3)}, threads)  # type: ignore[operator]
    members = [member("a", 1, tt=1, uu=1), member("b", 2, tt=1, uu=1)]
    sessions = {"g_a-0": 1, "g_b-0": 2}
    partitions = [
        replace(partition(tp.partition, None, topic=tp.topic), owner=Owner(t, sessions[t]))
        for tp, t in sorted(owners.items())
    ]
    assert kinds(group(members, partitions)) == []


def test_a_persistent_owner_blocks_for_ever() -> None:
    """The finding names the znode, the member that it blocks, and that it must be deleted; the
    waiting partition names its cause."""
    facts = group([A], [partition(0, "zombie", 0), partition(1, None)])
    blocking, unowned = explain(facts)
    assert (blocking.kind, unowned.kind) == ("blocking-owner", "no-owner")
    assert blocking.subject == "/consumers/g/owners/tt/0"
    assert "it blocks g_a-0" in blocking.says
    assert blocking.advice.startswith("delete that znode")
    assert unowned.subject == "[tt,1]"
    assert "/consumers/g/owners/tt/0" in unowned.says


@pytest.mark.parametrize(
    ("owner", "advice"),
    [
        (Owner("g_gone-0", 9), "end process of session 0x9"),
        (Owner("g_a-0", 9), "two processes use one consumer.id"),
    ],
)
def test_an_owner_of_no_live_member_blocks(owner: Owner, advice: str) -> None:
    """A member that is not registered, or an earlier session of one that is."""
    [finding] = explain(group([A], [replace(partition(0, None), owner=owner)]))
    assert finding.kind == "blocking-owner"
    assert advice in finding.advice


def test_an_unclaimed_partition() -> None:
    """No owner blocks it: the member that should have it has given up."""
    [finding] = explain(group([A, B], [partition(0, "a"), partition(1, None)]))
    assert (finding.kind, finding.subject) == ("no-owner", "[tt,1]")
    assert "g_b-0" in finding.says


def test_owners_by_no_strategy() -> None:
    """Two live owners the wrong way round cause one finding."""
    facts = group([A, B], [partition(0, "b", 2), partition(1, "a")])
    assert kinds(facts) == ["misplaced"]


def test_an_unreadable_registration() -> None:
    """The finding has its fault, and the partitions that wait for it."""
    odd = Member("g_odd", ConsumerRegistration({"(?<x": 1}, WHITE_LIST), 3)
    facts = group([A, odd], [partition(0, None)])
    unreadable, unowned = explain(facts)
    assert unreadable.subject == "/consumers/g/ids/g_odd"
    assert "a named group at position 0 is not supported" in unreadable.says
    assert "no member can rebalance" in unowned.says


def test_threads_without_partitions_are_a_note() -> None:
    """More threads than partitions are reported, but are no problem."""
    [finding] = explain(group([A, B], [partition(0, "a")]))
    assert (finding.kind, finding.problem) == ("idle-threads", False)


def test_topics_that_are_missing_or_unread() -> None:
    """A subscription to no topic, and an offset of an unread or deleted topic, are found."""
    facts = group([member("a", 1, nowhere=1)], [partition(0, None)])
    assert kinds(facts) == ["absent-topic", "unread-topic"]
    gone = replace(partition(1, None), exists=False, leader=None)
    assert kinds(group([A], [partition(0, "a"), gone])) == ["gone-partition"]


def test_a_pattern_subscribes_to_matching_topics() -> None:
    """Its topics are those that exist; none is absent."""
    by_pattern = Member("g_a", ConsumerRegistration({"t.*": 1}, WHITE_LIST), 1)
    assert kinds(group([by_pattern], [partition(0, "a")])) == []


def test_a_znode_among_the_owners_that_names_no_partition() -> None:
    """It is a note, since it blocks no member."""
    [finding] = explain(replace(SETTLED, strays=("/consumers/g/owners/tt/0.lock",)))
    assert (finding.kind, finding.problem) == ("stray-znode", False)
    assert finding.subject == "/consumers/g/owners/tt/0.lock"


def test_a_stopped_group_and_no_broker() -> None:
    """A stopped group is a problem only while messages wait for it; a cluster without brokers
    always is."""
    stopped = group([], [partition(0, None)])
    assert [(f.kind, f.problem) for f in explain(stopped)] == [("no-members", True)]
    assert "50 messages" in explain(stopped)[0].says
    caught_up = group([], [replace(partition(0, None), zookeeper=100)])
    assert [(f.kind, f.problem) for f in explain(caught_up)] == [("no-members", False)]
    assert "no-brokers" in kinds(replace(SETTLED, brokers=()))


def test_a_partition_without_leader() -> None:
    """It is owned, but cannot be read."""
    facts = group([A], [replace(partition(0, "a"), leader=None, log_start=None, log_end=None)])
    assert kinds(facts) == ["no-leader"]


@pytest.mark.parametrize(("at", "says"), [(3, "7 messages deleted before"), (101, "created again")])
def test_an_offset_outside_the_log(at: int, says: str) -> None:
    """Below its start messages are lost, beyond its end the log is another one."""
    [finding] = explain(group([A], [replace(partition(0, "a"), zookeeper=at)]))
    assert (finding.kind, finding.problem) == ("outside-log", True)
    assert says in finding.says


def test_differences_between_the_stores() -> None:
    """The finding says which store is ahead and by how much, or that Kafka alone has an offset
    while others are in both."""
    [finding] = explain(group([A], [replace(partition(0, "a"), kafka=57)]))
    assert "Kafka is 7 messages ahead" in finding.says
    alone = replace(partition(1, "a"), zookeeper=None, kafka=57)
    assert kinds(group([A], [partition(0, "a"), alone])) == ["only-in-kafka"]


def test_problems_come_first() -> None:
    """A failed request is a problem."""
    facts = replace(SETTLED, failed_requests=("offsets in Kafka: no broker responded",))
    noted = replace(facts.partitions[0], kafka=57)
    found = explain(replace(facts, partitions=(noted, facts.partitions[1])))
    assert [f.kind for f in found] == ["request-failed", "stores-disagree"]
    assert str(found[0]).startswith("Problem: g: offsets in Kafka: no broker responded\n  Advice: ")


def test_many_partitions_make_one_finding() -> None:
    """Seven partitions without a leader are one finding that names five and counts the others."""
    lost = [replace(partition(n, "a"), leader=None, log_start=None, log_end=None) for n in range(7)]
    [finding] = explain(group([A], lost))
    assert finding.subject == "[tt,0], [tt,1], [tt,2], [tt,3], [tt,4] and 2 more"
