"""Findings of groups that have a coordinator, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.groups import CoordinatedFacts, CoordinatedGroup, CoordinatedMember, PartitionFacts
from kafka08.groups.coordinated_findings import explain_coordinated
from kafka08.groups.views import ShownCoordinatedGroup
from kafka08.observe.coordinated import group_of
from kafka08.protocol import consumer_protocol
from kafka08.protocol.consumer_protocol import AssignedTopic, Assignment, Subscription
from kafka08.protocol.describe_groups import DescribedGroup, DescribedMember
from kafka08.structs import Broker, TopicPartition

COORDINATOR = Broker(1, "b1", 9092)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MEMBER = CoordinatedMember("m-1", "m", "/10.0.0.1", ("t",), (T0, T1))
GROUP = CoordinatedGroup("g", COORDINATOR, "Stable", "consumer", "range", (MEMBER,))


def partition(tp: TopicPartition, committed: int | None = 5, **other: object) -> PartitionFacts:
    found = PartitionFacts(tp, None, committed, 0, 10, exists=True, leader=1, owner=None)
    return replace(found, **other)  # type: ignore[arg-type]


WELL = CoordinatedFacts(GROUP, (partition(T0), partition(T1)), {"t": (0, 1)})


def kinds(facts: CoordinatedFacts) -> list[str]:
    return [finding.kind for finding in explain_coordinated(facts)]


def test_all_is_well() -> None:
    """A stable group that owns all of its topic and has committed it."""
    assert kinds(WELL) == []


def test_a_healthy_group_may_still_not_read() -> None:
    """One look cannot tell a slow group from one that fails at a record again and again: the
    sentence says how many messages are unread, and where to look next."""
    assert "10 messages are unread: kafka08 top shows" in ShownCoordinatedGroup(WELL).all_is_well()
    read = replace(WELL, partitions=(partition(T0, 10), partition(T1, 10)))
    assert "No problems: 1 member owns 2 partitions." == ShownCoordinatedGroup(read).all_is_well()


def with_group(**changed: object) -> CoordinatedFacts:
    return replace(WELL, group=replace(GROUP, **changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (with_group(state="PreparingRebalance"), ["rebalancing"]),
        (with_group(state="AwaitingSync"), ["rebalancing"]),
        (  # nobody knows what they subscribe to then
            with_group(state="PreparingRebalance", members=(replace(MEMBER, topics=(), owns=()),)),
            ["rebalancing"],
        ),
        (with_group(members=(), state="Empty"), ["no-members"]),
        (with_group(members=(replace(MEMBER, owns=(T0,)),)), ["no-owner"]),
        (
            with_group(members=(MEMBER, CoordinatedMember("m-2", "m", "/10.0.0.2", ("t",)))),
            ["idle-members"],
        ),
        (with_group(members=(replace(MEMBER, fault="bad bytes"),)), ["unreadable-member"]),
        (with_group(members=(replace(MEMBER, topics=("t", "u")),)), ["absent-topic"]),
        (replace(WELL, partitions=(partition(T0), partition(T1, None))), ["never-committed"]),
        (replace(WELL, partitions=(partition(T0), partition(T1, 11))), ["outside-log"]),
        (replace(WELL, partitions=(partition(T0), partition(T1, leader=None))), ["no-leader"]),
        (replace(WELL, failed_requests=("offsets in Kafka: x",)), ["request-failed"]),
        (with_group(members=(replace(MEMBER, topics=()),)), ["unread-topic"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_each_fault_is_found(facts: CoordinatedFacts, expected: list[str]) -> None:
    """A fault causes the finding of its kind, and no other."""
    assert kinds(facts) == expected


@pytest.mark.parametrize(("committed", "problem"), [(10, False), (3, True), (None, True)])
def test_a_stopped_group_is_a_problem_if_messages_wait(
    committed: int | None, problem: bool
) -> None:
    """It is a problem even if it never committed an offset."""
    facts = replace(with_group(members=(), state="Empty"), partitions=(partition(T0, committed),))
    [finding, *_] = explain_coordinated(facts)
    assert (finding.kind, finding.problem) == ("no-members", problem)


def described(metadata: bytes, assignment: bytes, state: str = "Stable") -> DescribedGroup:
    member = DescribedMember("m-1", "m", "/10.0.0.1", metadata, assignment)
    return DescribedGroup(0, "g", state, "consumer", "range", [member])


SUBSCRIPTION = consumer_protocol.encode(Subscription(["u", "t"], None))
ASSIGNMENT = consumer_protocol.encode(Assignment([AssignedTopic("t", [1, 0])], b""))


def test_the_bytes_of_consumers_are_read() -> None:
    """Topics and partitions sorted; a member that its leader forgot owns nothing."""
    [member] = group_of(described(SUBSCRIPTION, ASSIGNMENT), COORDINATOR).members
    assert (member.topics, member.owns, member.fault) == (("t", "u"), (T0, T1), None)
    [forgotten] = group_of(described(SUBSCRIPTION, b""), COORDINATOR).members
    assert (forgotten.topics, forgotten.owns, forgotten.fault) == (("t", "u"), (), None)


@pytest.mark.parametrize("metadata", [b"", b"\xff\xff", SUBSCRIPTION[:-3]])
def test_bytes_that_are_not_understood_are_a_fault_of_the_member(metadata: bytes) -> None:
    """The rest of the group is shown all the same."""
    [member] = group_of(described(metadata, ASSIGNMENT), COORDINATOR).members
    assert member.fault is not None
    assert member.owns == ()


def test_bytes_of_other_protocols_are_left_alone() -> None:
    """Those of Kafka Connect mean something else, and a rebalancing group has none."""
    other = replace(described(b"\xff", b"\xff"), protocol_type="connect")
    rebalancing = described(b"", b"", "PreparingRebalance")
    for group in (other, rebalancing):
        [member] = group_of(group, COORDINATOR).members
        assert (member.fault, member.owns) == (None, ())
