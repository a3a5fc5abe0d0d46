"""Static and cooperative members, on brokers of any release that has them: each scenario gets the
brokers' addresses and a new topic of four partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kafka08.consumer import KafkaConsumer
from kafka08.errors import CommitFailed, FencedInstanceId
from kafka08.producer import KafkaProducer
from kafka08.structs import TopicPartition
from tests.integration.polling_cluster import consumer_at
from tests.waiting import until

GroupScenario = Callable[[str, str], None]
COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}


class Member:
    """A consumer, what was called, and what it has read."""

    def __init__(self, bootstrap: str, topic: str, **keys: Any) -> None:
        self.events: list[tuple[str, int]] = []
        self.read: list[tuple[int, int]] = []
        self.consumer: KafkaConsumer = consumer_at(
            bootstrap, topic, **{"session_timeout_ms": 6000, **keys}
        )
        self.consumer.subscribe(
            [topic],
            on_assigned=self._noting("assigned"),
            on_revoked=self._noting("revoked"),
            on_lost=self._noting("lost"),
        )

    def _noting(self, what: str) -> Callable[[Sequence[TopicPartition]], None]:
        return lambda partitions: self.events.append((what, len(partitions)))

    def poll(self) -> None:
        self.read += [(m.partition, m.offset) for m in self.consumer.poll(0.1)]

    @property
    def numbers(self) -> set[int]:
        return {tp.partition for tp in self.consumer.assignment()}


def together(*members: Member, until_done: Callable[[], bool]) -> None:
    def done() -> bool:
        for member in members:
            member.poll()
        return until_done()

    until(done, "the members", seconds=60)


def fill(bootstrap: str, topic: str, count: int) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap, acks="all", retries=1000) as producer:
        for partition in range(4):
            producer.send_many(topic, [b"x"] * count, partition=partition).result(30)


def only_what_moves_is_revoked(bootstrap: str, topic: str) -> None:
    """A member that joins gets half of the partitions; the other half is read on. Each message is
    read once, and a member that leaves gives its own back."""
    fill(bootstrap, topic, 10)
    one = Member(bootstrap, topic, **COOPERATIVE)
    together(one, until_done=lambda: len(one.read) == 40)
    assert one.events == [("assigned", 4)]
    two = Member(bootstrap, topic, **COOPERATIVE)
    together(one, two, until_done=lambda: len(one.numbers) == len(two.numbers) == 2)
    fill(bootstrap, topic, 10)
    together(one, two, until_done=lambda: len(one.read) + len(two.read) == 80)
    assert ("revoked", 2) in one.events
    assert sum(count for what, count in one.events if what == "revoked") == 2
    assert sum(count for what, count in one.events if what == "assigned") == 4
    assert sum(count for what, count in two.events if what == "assigned") == 2
    assert sum(count for what, count in two.events if what == "revoked") == 0
    two.consumer.commit()
    two.consumer.close()
    together(one, until_done=lambda: len(one.numbers) == 4)
    assert sum(count for what, count in one.events if what == "assigned") == 6
    one.consumer.close()
    seen = one.read + two.read
    assert sorted(seen) == [(number, at) for number in range(4) for at in range(20)]


def a_member_returns_under_its_name(bootstrap: str, topic: str) -> None:
    """Within its session it gets its partitions, and the others notice nothing."""
    one = Member(bootstrap, topic, group_instance_id="one", session_timeout_ms=30_000)
    two = Member(bootstrap, topic, group_instance_id="two", session_timeout_ms=30_000)
    together(one, two, until_done=lambda: len(one.numbers) == len(two.numbers) == 2)
    had, events = one.numbers, list(two.events)
    one.consumer.close()
    again = Member(bootstrap, topic, group_instance_id="one", session_timeout_ms=30_000)
    together(again, two, until_done=lambda: bool(again.numbers))
    assert again.numbers == had
    for _ in range(5):
        two.poll()
    assert two.events == events
    fill(bootstrap, topic, 5)
    together(again, two, until_done=lambda: len(again.read) + len(two.read) == 20)
    again.consumer.commit()
    again.consumer.close()
    two.consumer.close()


def one_name_is_for_one_member(bootstrap: str, topic: str) -> None:
    """The first one is fenced, for good: its partitions are lost, and it does not come back."""
    fill(bootstrap, topic, 5)
    one = Member(bootstrap, topic, group_instance_id="name", enable_auto_commit=False)
    together(one, until_done=lambda: len(one.read) == 20)
    two = Member(bootstrap, topic, group_instance_id="name")
    together(two, until_done=lambda: len(two.read) == 20)

    def is_fenced() -> bool:
        try:
            one.poll()
        except FencedInstanceId:
            return True
        return False

    until(is_fenced, "the first member is fenced")
    assert one.events == [("assigned", 4), ("lost", 4)]
    assert one.numbers == set()
    with pytest.raises(FencedInstanceId, match=r"group\.instance\.id"):
        one.consumer.poll(0.1)
    with pytest.raises(CommitFailed):
        one.consumer.commit({TopicPartition(topic, 0): 3})
    for _ in range(5):
        two.poll()
    assert two.events == [("assigned", 4)]
    one.consumer.close()
    two.consumer.close()


def a_commit_of_a_fenced_member(bootstrap: str, topic: str) -> None:
    """It is refused, and tells the member, which does not fence the other one."""
    one = Member(bootstrap, topic, group_instance_id="name", heartbeat_interval_ms=5000)
    together(one, until_done=lambda: len(one.numbers) == 4)
    two = Member(bootstrap, topic, group_instance_id="name")
    together(two, until_done=lambda: len(two.numbers) == 4)
    with pytest.raises(FencedInstanceId):
        one.consumer.commit({TopicPartition(topic, 0): 3})
    with pytest.raises(FencedInstanceId):
        one.consumer.poll(0.1)
    for _ in range(5):
        two.poll()
    assert two.events == [("assigned", 4)]
    one.consumer.close()
    two.consumer.close()


STATIC: tuple[GroupScenario, ...] = (
    a_member_returns_under_its_name,
    one_name_is_for_one_member,
    a_commit_of_a_fenced_member,
)
