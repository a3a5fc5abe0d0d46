"""Which stream of which member reads which partition. Pure; every member computes it for itself.

The result must be the one that the JVM connector computes from the same members, or mixed groups
would claim each other's partitions for ever. Both functions return the whole assignment, of which
a member claims its own part. Threads are named `<consumer id>-<n>` and sort as strings, so
`x-10` stands before `x-2`. Source: kafka.consumer.PartitionAssignor 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TypeAlias

from kafka08.errors import ConsumerRebalanceFailed
from kafka08.hashing import java_string_hash
from kafka08.structs import TopicPartition

Assignment: TypeAlias = dict[TopicPartition, str]
"""partition → thread id of the stream that reads it."""


def range_assign(
    partitions: Mapping[str, Sequence[int]], threads: Mapping[str, Iterable[str]]
) -> Assignment:
    """Each topic by itself: sorted partitions dealt to sorted threads in runs of equal length, the
    first threads getting one more where it does not divide.

    partitions   topic → its partition numbers, in any order
    threads      topic → the thread ids that subscribe to it; a topic without any has no owner
    """
    assignment: Assignment = {}
    for topic, numbers in partitions.items():
        readers = sorted(threads.get(topic, ()))
        if not readers:
            continue
        ordered = sorted(numbers)
        each, extra = divmod(len(ordered), len(readers))
        start = 0
        for position, thread in enumerate(readers):
            end = start + each + (position < extra)
            for number in ordered[start:end]:
                assignment[TopicPartition(topic, number)] = thread
            start = end
    return assignment


def round_robin_assign(
    partitions: Mapping[str, Sequence[int]], threads: Mapping[str, Iterable[str]]
) -> Assignment:
    """All partitions, sorted by the Java hash of `[topic,partition]`, dealt in turn to all sorted
    threads. Topics without partitions take part in the condition, as in 0.8.2.2.

    Raises ConsumerRebalanceFailed unless every topic has the same set of threads. Equal hashes
    (never of one topic's partitions) are dealt in the order of topic name and number; 0.8.2.2
    leaves their order to a hash map.
    """
    sets = {topic: frozenset(readers) for topic, readers in threads.items()}
    if not sets:
        return {}
    first_topic, first = min(sets.items())
    for topic, readers in sorted(sets.items()):
        if readers != first:
            raise ConsumerRebalanceFailed(
                "round-robin assignment needs every topic to be subscribed to by the same streams: "
                f"{topic} has {sorted(readers)}, {first_topic} has {sorted(first)}"
            )
    ordered = sorted(
        TopicPartition(topic, number) for topic in sets for number in partitions.get(topic, ())
    )
    ordered.sort(key=lambda partition: java_string_hash(str(partition)))
    return dict(zip(ordered, cycle(sorted(first)), strict=False)) if first else {}
