"""A topic that the members of the group subscribe to before it exists.

Rule: it is made when nothing has happened for a while and nothing else happens, and the group
processes what is then written to it.
"""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08.admin.client import AdminClient
from kafka08.producer.old.config import ProducerConfig
from kafka08.producer.old.producer import Producer
from kafka08.producer.record import KeyedMessage
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.polling_member import Topics
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import TOPIC, Target, key_of
from kafka08.simulation.zookeeper import ADDRESS
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.simulation.plan import Plan

LATE: Final = TopicPartition("late", 0)
MESSAGES: Final = 5
LEADER_MS: Final = 60_000
BOTH: Final = (TOPIC, LATE.topic)


class Subscription(NamedTuple):
    """first   what a member subscribes to when it starts
    later   what it subscribes to before the topic is made
    """

    first: Topics
    later: Topics


def drawn_subscription(random: Random) -> Subscription:
    """One by names at once, by a pattern, or by one name and later by both."""
    pattern = re.compile("|".join(BOTH))
    return random.choice(
        [Subscription(BOTH, BOTH), Subscription(pattern, pattern), Subscription(TOPIC, BOTH)]
    )


class LateTopic:
    """The topic of a run, if its plan has one. Else nothing."""

    def __init__(
        self, plan: Plan, target: Target, group: GroupHistory, director: SimClientRuntime
    ) -> None:
        self._plan = plan
        self._target = target
        self._group = group
        self._director = director

    @property
    def is_planned(self) -> bool:
        return self._plan.late and self._plan.members > 0

    def make(self) -> None:
        """Create it and write its messages. KafkaError."""
        with AdminClient(ADDRESS, runtime=self._director) as admin:
            admin.create_topic(LATE.topic, 1, self._plan.replication_factor)
            admin.await_leaders(LATE.topic, timeout_ms=LEADER_MS)
        config = ProducerConfig(
            {"metadata.broker.list": self._target.broker_list, "request.required.acks": -1}
        )
        values = [b"director/%d" % number for number in range(MESSAGES)]
        with Producer(config, runtime=self._director) as producer:
            producer.send([KeyedMessage(LATE.topic, value, key_of(value)) for value in values])

    def unprocessed(self) -> str:
        """A sentence about messages that the group has not processed; ""."""
        missing = self._group.missing(LATE, range(MESSAGES))
        return (
            f"{LATE} offset {min(missing)} and {len(missing) - 1} more; it belongs to "
            f"{self._group.owner(LATE)}"
            if missing
            else ""
        )
