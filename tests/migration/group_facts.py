"""Small groups, named and drawn, and members of them: what plans and rollbacks are made of."""

from __future__ import annotations

from hypothesis import strategies as st

from kafka08.admin.group_facts import GroupFacts, Offset
from kafka08.observe.group import PartitionFacts
from kafka08.observe.members import Member
from kafka08.structs import TopicPartition
from kafka08.zk.migration_protocol import OffsetStorage, Order
from kafka08.zk.nodes import ConsumerRegistration

TP = TopicPartition("t", 0)

offsets = st.none() | st.integers(0, 30)
ranges = st.tuples(st.integers(0, 15), st.integers(0, 15)).map(lambda r: (r[0], r[0] + r[1]))


@st.composite
def partition_facts(draw: st.DrawFn, number: int = 0) -> PartitionFacts:
    start, end = draw(ranges)
    return PartitionFacts(TopicPartition("t", number), draw(offsets), draw(offsets), start, end)


groups = st.integers(0, 5).flatmap(
    lambda count: st.tuples(*(partition_facts(number) for number in range(count)))
)


def facts(zookeeper: Offset, kafka: Offset, start: Offset = 0, end: Offset = 100) -> PartitionFacts:
    """`start` None: the partition does not exist."""
    return PartitionFacts(TP, zookeeper, kafka, start, end, exists=start is not None)


def ours(consumer_id: str, configured: OffsetStorage, confirmed: Order | None = None) -> Member:
    """A kafka08 member."""
    says = ConsumerRegistration({}, kafka08=configured.properties)
    return Member(consumer_id, says, session=1, confirmed=confirmed)


def foreign(consumer_id: str) -> Member:
    """A member that is not ours."""
    return Member(consumer_id, ConsumerRegistration({}), session=1)


def group(*partitions: PartitionFacts) -> GroupFacts:
    return GroupFacts("g", (), partitions)
