"""A member's assignment, computed from the group's znodes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kafka08.consumer.subscription import Subscription, thread_ids
from kafka08.consumer.zookeeper.assignors import Assignment, range_assign, round_robin_assign
from kafka08.consumer.zookeeper.config import ROUND_ROBIN
from kafka08.structs import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as one member has read it.

    members      consumer id → subscription
    topics       names of all existing topics, if a subscription by pattern needs them
    partitions   topic → partition numbers, for the reader's own topics that exist
    created      topic → the transaction that made it: another one if it was deleted and made again
    """

    members: Mapping[str, Subscription]
    topics: tuple[str, ...]
    partitions: Mapping[str, tuple[int, ...]]
    created: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """The steps from the owned partitions to the assigned ones: first `release`, then `claim`.

    Partitions that stay with the same stream are in neither and are not interrupted.
    """

    release: frozenset[TopicPartition]
    claim: Assignment


def threads_by_topic(view: GroupView) -> dict[str, list[str]]:
    """topic → the thread ids of all members that read it."""
    threads: dict[str, list[str]] = {}
    for consumer_id, subscription in view.members.items():
        for topic, streams in subscription.topics(view.topics).items():
            threads.setdefault(topic, []).extend(thread_ids(consumer_id, streams))
    return threads


def assign(view: GroupView, consumer_id: str, strategy: str) -> Assignment:
    """The part of the group's assignment that belongs to `consumer_id`.

    Round robin distributes the partitions of the member's own topics over all threads of the group.
    Any strategy but `roundrobin` is range, as in 0.8.2.2. Raises ConsumerRebalanceFailed if round
    robin is not possible.
    """
    own_topics = view.members[consumer_id].topics(view.topics)
    partitions = {topic: view.partitions.get(topic, ()) for topic in own_topics}
    dealt = round_robin_assign if strategy == ROUND_ROBIN else range_assign
    everybody = dealt(partitions, threads_by_topic(view))
    own = {t for streams in own_topics.values() for t in thread_ids(consumer_id, streams)}
    return {tp: thread for tp, thread in everybody.items() if thread in own}


def changes(owned: Assignment, wanted: Assignment, anew: Collection[str] = ()) -> Changes:
    """The fewest steps. A partition that moves to another stream of the same member is released and
    claimed, since its owner znode names the stream; and so is one of a topic that was made anew."""
    stays = {
        tp for tp, thread in owned.items() if wanted.get(tp) == thread and tp.topic not in anew
    }
    return Changes(
        release=frozenset(owned.keys() - stays),
        claim={tp: thread for tp, thread in wanted.items() if tp not in stays},
    )
